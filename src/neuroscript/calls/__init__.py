"""One call, from its arguments to its result."""
