"""Pages about the health of an engine: checks of the installation, plugins, MCP servers and isolated workers."""
