"""The git toolset of neuroscript: repositories of the sandbox, in which nothing of theirs is executed."""

__version__ = "0.1.0"
