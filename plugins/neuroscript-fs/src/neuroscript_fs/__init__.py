"""The file toolset of neuroscript: files in the host's sandbox directory, limited by grants."""
