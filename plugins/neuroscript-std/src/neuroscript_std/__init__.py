"""The standard toolset of neuroscript: tools that need no authority."""
