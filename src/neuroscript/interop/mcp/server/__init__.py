"""The tools of an engine, served over MCP."""
