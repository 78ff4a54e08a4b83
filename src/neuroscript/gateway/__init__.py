"""The gateway: one MCP endpoint in front of many MCP servers and installed toolsets, under a policy for each client."""
