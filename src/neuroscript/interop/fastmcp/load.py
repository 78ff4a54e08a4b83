"""The tools of a FastMCP server in this process, or one tool, under our contract, as those of any server of MCP.

The server runs on a loop of its own, as it would by itself: what its lifespan opens is there, and what its tools are
given besides their arguments, such as its ``Context``, is given to them.

Source: issue "MCP and the frameworks"; FastMCP 4.1, "In-memory transport"; seed-systems.md AH-2, AH-69.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from neuroscript._imports import missing
from neuroscript.config.mcp_servers import SECONDS
from neuroscript.errors import SpecError
from neuroscript.interop.foreign import LONGEST
from neuroscript.interop.mcp.client.accepted_definitions import Definition
from neuroscript.interop.mcp.client.connection import Connection
from neuroscript.interop.mcp.client.definition import Belief
from neuroscript.interop.mcp.client.load import McpServer, group_of, taken
from neuroscript.io.text import one_line

try:
    from fastmcp import Client, FastMCP
    from fastmcp.tools import Tool
except ImportError as error:
    raise missing("tools of FastMCP need it", "fastmcp", error) from None

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
) -> McpServer:
    """Return the tools of a FastMCP server in this process, or one tool; they run on a loop of their own.

    Args:
        source: A server, a tool, or a function that is decorated as one.
        group: The group of the tools, and what the server is called in needs: ``mcp:call:GROUP/TOOL``.
        trusted: Whether its tools are called without an approval.
        trust_annotations: Whether what it says of what its tools do is believed.
        select: Patterns of the tools to take, as in ``files.read_*``. None takes all.
        skip: Whether tools that can not be taken are left out; ``skipped`` says why.
        timeout: Seconds that a call may take, and the start of the server.

    Raises:
        SpecError: With everything that is wrong: with what was given here, or with the tools.
        PluginError: ``mcp.start``, the server can not be started.
    """
    word = group_of(group, timeout)
    server, accepted = _served(source)
    connection = Connection(lambda ended: _dialogue(server, ended), timeout)
    return taken(connection, word, Belief(trusted, trust_annotations), accepted, select, skip)


def _served(source: Any) -> tuple[FastMCP[Any], dict[str, Definition] | None]:
    """Return a server, and what is accepted of it where it was made for one tool; nothing is started for that."""
    if isinstance(source, FastMCP):
        return source, None
    if not callable(source) and not isinstance(source, Tool):
        raise SpecError("fastmcp", ["expected a server or a tool of FastMCP, or a function that is decorated as one"])
    server: FastMCP[Any] = FastMCP("neuroscript")
    try:
        tool = server.add_tool(source).to_mcp_tool()
    except (TypeError, ValueError) as error:  # a lambda, or parameters that it can not tell
        raise SpecError("fastmcp", [one_line(str(error), LONGEST)]) from None
    return server, {tool.name: Definition.of_data(tool.model_dump(mode="json", by_alias=True, exclude_none=True))}


@asynccontextmanager
async def _dialogue(server: FastMCP[Any], ended: Callable[[], None]) -> AsyncIterator[Dialogue]:
    made = Dialogue(ended)
    client = Client(server, client_info=CLIENT, message_handler=made.heard, log_handler=_unheard, mode="legacy")
    async with client as made.client:
        yield made


async def _unheard(message: Any) -> None:
    """Let a log message of the server go: its own logger has it."""
