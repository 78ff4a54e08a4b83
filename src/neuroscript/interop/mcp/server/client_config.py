"""What a client has to be told to start our server, in the shape of its own configuration.

Source: the documents of each client on MCP servers; ecosystem.md part 19, "MCP client snippet".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

CLIENTS: Final[Mapping[str, tuple[str, str]]] = {
    "claude": ("mcpServers", "claude_desktop_config.json, or .mcp.json for Claude Code"),
    "cursor": ("mcpServers", "~/.cursor/mcp.json, or .cursor/mcp.json"),
    "windsurf": ("mcpServers", "~/.codeium/windsurf/mcp_config.json"),
    "gemini": ("mcpServers", "~/.gemini/settings.json"),
    "vscode": ("servers", ".vscode/mcp.json"),
    "zed": ("context_servers", "settings.json of Zed"),
}
"""The key under which each client looks for servers, and the file in which it does."""


def snippet(client: str, name: str, command: str, words: Sequence[str]) -> dict[str, Any]:
    """Return the configuration that makes a client start a command and talk with it over its standard streams.

    >>> snippet("vscode", "mine", "neuroscript", ["mcp", "serve"])
    {'servers': {'mine': {'type': 'stdio', 'command': 'neuroscript', 'args': ['mcp', 'serve']}}}
    """
    kind = {"type": "stdio"} if client == "vscode" else {}
    return {CLIENTS[client][0]: {name: {**kind, "command": command, "args": [*words]}}}
