"""MCP, the Model Context Protocol: an engine's tools for every client, and those of servers under our contract.

Each name is loaded when it is first asked for. Nothing here but `serve` with what it gives, `from_mcp` and
`add_servers` needs the SDK, which is the extra ``mcp``.

Source: Model Context Protocol, "Tools"; issue "MCP".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript.lazily import lazy

if TYPE_CHECKING:
    from neuroscript.interop.mcp.accepted import Definition, Difference
    from neuroscript.interop.mcp.asking import ask_client
    from neuroscript.interop.mcp.configuring import CLIENTS, snippet
    from neuroscript.interop.mcp.results import to_result
    from neuroscript.interop.mcp.servers import add_servers
    from neuroscript.interop.mcp.serving import Service, serve
    from neuroscript.interop.mcp.shapes import to_mcp
    from neuroscript.interop.mcp.taking import McpServer, from_mcp

__all__ = [
    "CLIENTS",
    "Definition",
    "Difference",
    "McpServer",
    "Service",
    "add_servers",
    "ask_client",
    "from_mcp",
    "serve",
    "snippet",
    "to_mcp",
    "to_result",
]

__getattr__ = lazy(
    __name__,
    {
        "accepted": "Definition Difference",
        "asking": "ask_client",
        "results": "to_result",
        "servers": "add_servers",
        "serving": "Service serve",
        "shapes": "to_mcp",
        "configuring": "CLIENTS snippet",
        "taking": "McpServer from_mcp",
    },
)
