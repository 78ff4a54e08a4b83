"""The file toolset of neuroscript: files of the host's sandbox, as far as the host grants them."""

__version__ = "0.1.0"
