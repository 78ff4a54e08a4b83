"""``neuroscript mcp``: tools served and used over MCP."""
