"""The HTTP toolset of neuroscript: requests to granted hosts, at public addresses only."""
