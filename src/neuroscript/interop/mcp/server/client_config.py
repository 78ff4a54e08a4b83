"""Configuration snippets with which MCP clients start this server, in the format of each client."""

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
"""The key under which each client lists servers, and its configuration file."""


def snippet(client: str, name: str, command: str, words: Sequence[str]) -> dict[str, Any]:
    """Return the configuration with which a client starts a command and uses it over standard streams.

    >>> snippet("vscode", "mine", "neuroscript", ["mcp", "serve"])
    {'servers': {'mine': {'type': 'stdio', 'command': 'neuroscript', 'args': ['mcp', 'serve']}}}
    """
    kind = {"type": "stdio"} if client == "vscode" else {}
    return {CLIENTS[client][0]: {name: {**kind, "command": command, "args": [*words]}}}
