"""MCP client: the tools of MCP servers as tools of an engine."""
