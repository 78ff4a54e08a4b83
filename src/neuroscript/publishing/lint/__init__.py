"""What can be told of a toolset without running it: its sources are read, and nothing of it is imported."""
