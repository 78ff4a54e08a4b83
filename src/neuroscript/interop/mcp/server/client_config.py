"""Configuration snippets with which MCP clients start this server, in the format of each client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

CLIENTS: Final[Mapping[str, tuple[str, str]]] = {
    "claude": ("mcpServers", "claude_desktop_config.json, or .mcp.json for Claude Code"),
    "claude-code": ("mcpServers", ".mcp.json of a project, for Claude Code"),
    "claude-desktop": ("mcpServers", "claude_desktop_config.json"),
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


HTTP: Final[Mapping[str, tuple[str, str]]] = {
    "claude-code": ("url", "${%s}"),
    "cursor": ("url", "${env:%s}"),
    "windsurf": ("serverUrl", "${env:%s}"),
    "gemini": ("httpUrl", "$%s"),
    "vscode": ("url", "${input:%s}"),
}
"""The key for the URL in each client that can use servers over HTTP, and how it names a variable with a token."""


def http_snippet(client: str, name: str, url: str, variable: str = "") -> dict[str, Any]:
    """Return the configuration with which a client uses a server over HTTP; it never contains a token.

    Args:
        client: A key of `HTTP`.
        variable: The environment variable from which the client takes its token, or ``""`` for no token. Visual Studio
            Code asks its user for the token instead.

    >>> http_snippet("cursor", "mine", "http://127.0.0.1:8080/mcp")
    {'mcpServers': {'mine': {'url': 'http://127.0.0.1:8080/mcp'}}}
    """
    key, form = HTTP[client]
    kind = {"type": "http"} if client in ("vscode", "claude-code") else {}
    headers = {"headers": {"Authorization": f"Bearer {form % variable}"}} if variable else {}
    found: dict[str, Any] = {CLIENTS[client][0]: {name: {**kind, key: url, **headers}}}
    if client == "vscode" and variable:
        found["inputs"] = [{"type": "promptString", "id": variable, "description": "Token", "password": True}]
    return found
