"""The standard toolset of neuroscript: tools that need no authority."""

__version__ = "0.1.0"
