"""Configuration files: policies, locks and MCP servers."""
