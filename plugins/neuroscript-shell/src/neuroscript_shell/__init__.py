"""The toolsets shell and os of neuroscript: programs without a shell, the environment, the clock."""

__version__ = "0.1.0"
