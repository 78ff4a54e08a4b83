"""MCP, the Model Context Protocol: serve an engine's tools to MCP clients, and load the tools of MCP servers.

Names are imported lazily. Only `serve`, the `Service` it returns, `from_mcp` and `add_servers` need the SDK; install
the extra ``mcp``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.interop.mcp.client.accepted_definitions import Definition, Difference
    from neuroscript.interop.mcp.client.load import McpServer, OAuth, from_mcp
    from neuroscript.interop.mcp.client.login import login, logout
    from neuroscript.interop.mcp.client.resources import (
        RemoteArgument,
        RemoteContent,
        RemoteMessage,
        RemotePrompt,
        RemotePrompts,
        RemoteResource,
        RemoteResources,
    )
    from neuroscript.interop.mcp.client.servers import add_servers
    from neuroscript.interop.mcp.schema import to_mcp
    from neuroscript.interop.mcp.server.client_config import CLIENTS, snippet
    from neuroscript.interop.mcp.server.elicitation import (
        ask_client,
        can_request,
        continue_as_task,
        request_input,
    )
    from neuroscript.interop.mcp.server.request_states import RequestStates
    from neuroscript.interop.mcp.server.results import to_result
    from neuroscript.interop.mcp.server.serve import Service, serve
    from neuroscript.interop.mcp.server.used_states import UsedStates, UsedStatesInFile, UsedStatesInMemory

__all__ = [
    "CLIENTS",
    "Definition",
    "Difference",
    "McpServer",
    "OAuth",
    "RemoteArgument",
    "RemoteContent",
    "RemoteMessage",
    "RemotePrompt",
    "RemotePrompts",
    "RemoteResource",
    "RemoteResources",
    "RequestStates",
    "Service",
    "UsedStates",
    "UsedStatesInFile",
    "UsedStatesInMemory",
    "add_servers",
    "ask_client",
    "can_request",
    "continue_as_task",
    "from_mcp",
    "login",
    "logout",
    "request_input",
    "serve",
    "snippet",
    "to_mcp",
    "to_result",
]

__getattr__ = lazy_getattr(
    __name__,
    {
        "client.accepted_definitions": "Definition Difference",
        "client.load": "McpServer OAuth from_mcp",
        "client.login": "login logout",
        "client.resources": """
            RemoteArgument RemoteContent RemoteMessage RemotePrompt RemotePrompts RemoteResource RemoteResources
        """,
        "client.servers": "add_servers",
        "schema": "to_mcp",
        "server.client_config": "CLIENTS snippet",
        "server.elicitation": "ask_client can_request continue_as_task request_input",
        "server.request_states": "RequestStates",
        "server.results": "to_result",
        "server.serve": "Service serve",
        "server.used_states": "UsedStates UsedStatesInFile UsedStatesInMemory",
    },
)
