"""Load a FastMCP server in this process, or a single tool, in the same way as any other MCP server.

The server runs on its own event loop, as it does standalone: its lifespan is entered, and FastMCP injects arguments
such as the ``Context`` into its tools.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from neuroscript._imports import missing_extra
from neuroscript.config.mcp_servers import SECONDS
from neuroscript.errors import SpecError
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS
from neuroscript.interop.mcp.client.accepted_definitions import Definition
from neuroscript.interop.mcp.client.connection import Connection
from neuroscript.interop.mcp.client.definition import Trust
from neuroscript.interop.mcp.client.load import McpServer, group_of, load_tools
from neuroscript.io.text import one_line

try:
    from fastmcp import Client, FastMCP
    from fastmcp.tools import Tool
except ImportError as error:
    raise missing_extra("tools of FastMCP need it", "fastmcp", error) from None

from neuroscript.interop.mcp.client.sdk import CLIENT, Dialogue


def from_fastmcp(
    source: FastMCP[Any] | Tool | Callable[..., Any],
    *,
    group: str,
    trusted: bool = False,
    trust_annotations: bool = False,
    select: str | Iterable[str] | None = None,
    skip: bool = False,
    timeout: float = SECONDS,
    formats: bool = False,
) -> McpServer:
    """Return the tools of a FastMCP server in this process, or one tool; they run on their own event loop.

    Args:
        source: A server, a tool, or a function decorated as a tool.
        group: The group of the tools, and the name of the server in the capability ``mcp:call:GROUP/TOOL``.
        trusted: Call the tools without approval.
        trust_annotations: Accept the server's annotations about the effects of its tools.
        select: Patterns of the tools to load, such as ``files.read_*``. None loads all.
        skip: Leave out tools that cannot be loaded; ``skipped`` contains the reasons.
        timeout: Timeout of a call, and of the start of the server, in seconds.
        formats: Check the standard formats of strings, such as ``date-time``. The string itself is sent unchanged.

    Raises:
        SpecError: With every problem found in the arguments, or in the tools.
        PluginError: ``mcp.start``: the server cannot be started.
    """
    word = group_of(group, timeout)
    server, accepted = _served(source)
    connection = Connection(lambda ended: _dialogue(server, ended), timeout)
    return load_tools(connection, word, Trust(trusted, trust_annotations, formats), accepted, select, skip)


def _served(source: Any) -> tuple[FastMCP[Any], dict[str, Definition] | None]:
    """Return a server, and the accepted definition if it was created for one tool; do not start the server."""
    if isinstance(source, FastMCP):
        return source, None
    if not callable(source) and not isinstance(source, Tool):
        raise SpecError("fastmcp", ["expected a FastMCP server, a FastMCP tool, or a function decorated as a tool"])
    server: FastMCP[Any] = FastMCP("neuroscript")
    try:
        tool = server.add_tool(source).to_mcp_tool()
    except (TypeError, ValueError) as error:  # a lambda, or parameters that FastMCP cannot describe
        raise SpecError("fastmcp", [one_line(str(error), MAX_DESCRIPTION_CHARS)]) from None
    return server, {tool.name: Definition.of_data(tool.model_dump(mode="json", by_alias=True, exclude_none=True))}


@asynccontextmanager
async def _dialogue(server: FastMCP[Any], ended: Callable[[], None]) -> AsyncIterator[Dialogue]:
    made = Dialogue(ended)
    client = Client(server, client_info=CLIENT, message_handler=made.heard, log_handler=_unheard, mode="legacy")
    async with client as made.client:
        yield made


async def _unheard(message: Any) -> None:
    """Ignore a log message of the server; its own logger has already received it."""
