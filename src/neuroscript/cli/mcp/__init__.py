"""``neuroscript mcp``: serve tools over MCP, and inspect MCP servers."""
