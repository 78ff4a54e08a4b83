"""The HTTP toolset of neuroscript: requests to granted hosts, at public addresses only."""

__version__ = "0.1.0"
