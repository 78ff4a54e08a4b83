"""The tools of an engine: a list to search, a page for each tool, and calls with live results."""
