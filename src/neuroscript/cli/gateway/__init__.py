"""``neuroscript gateway``: one MCP endpoint in front of many servers."""
