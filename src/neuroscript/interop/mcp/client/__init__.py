"""Tools of MCP servers, as tools of an engine."""
