"""The git toolset of neuroscript, for repositories in the sandbox. git runs no program that a repository names."""
