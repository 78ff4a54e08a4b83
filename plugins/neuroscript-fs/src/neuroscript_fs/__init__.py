"""The file toolset of neuroscript: files in the host's sandbox directory, limited by grants."""

__version__ = "0.1.0"
