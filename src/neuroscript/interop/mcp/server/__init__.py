"""MCP server: the tools of an engine for MCP clients."""
