"""Contract checks for every tool of a toolset."""
