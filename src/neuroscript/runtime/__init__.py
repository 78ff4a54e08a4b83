"""The runtime that a tool receives, the host that provides it, and the redaction of secrets between the two."""
