"""The shell and os toolsets of neuroscript: run programs without a shell, read the environment and the clock."""
