"""The HTTP toolset of neuroscript: requests to hosts that the host grants, and to public addresses alone."""

__version__ = "0.1.0"
