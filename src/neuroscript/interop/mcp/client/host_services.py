"""An MCP client that the host has connected, and one tool of its server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import attrs

from neuroscript._imports import missing_extra
from neuroscript.errors import SpecError, ToolFailed
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS
from neuroscript.interop.mcp.client.accepted_definitions import Definition
from neuroscript.interop.mcp.client.connection import connection_closed_error, timeout_error
from neuroscript.io.text import one_line

T = TypeVar("T")

WAITING: Final = "the client's event loop is blocked by this call; use await with acall or aexec in that loop"


class HostClient:
    """Sends requests to a server through a client of the host, on the client's event loop.

    Args:
        dialogue: The dialogue that uses the client.
        seconds: Timeout of a call, in seconds.
    """

    def __init__(self, dialogue: Any, seconds: float) -> None:
        self.seconds = seconds
        self._dialogue = dialogue
        self._loop = asyncio.get_running_loop()

    async def request(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Run *work* with the dialogue and return its result; cancelling this cancels it on the client's loop too."""
        if asyncio.get_running_loop() is self._loop:
            return await work(self._dialogue)
        asking = self._run_request(work)
        try:
            future = asyncio.run_coroutine_threadsafe(asking, self._loop)
        except RuntimeError:  # the loop has been closed
            asking.close()
            raise connection_closed_error() from None
        return await asyncio.wrap_future(future)

    async def _run_request(self, work: Callable[[Any], Awaitable[T]]) -> T:
        return await work(self._dialogue)

    def refuse_to_wait(self, tool: str) -> None:
        """Raise a `ToolFailed` with ``mcp.would_block`` if the client's own loop would block forever."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            return
        if running is self._loop:
            raise ToolFailed(WAITING, tool=tool, code="mcp.would_block", retry="host")


@attrs.frozen(eq=False)
class _Session:
    """A session of the SDK, in place of a client that has one.

    Attributes:
        session: The session.
    """

    session: Any


async def host_client(client: Any, seconds: float) -> tuple[HostClient, dict[str, Definition]]:
    """Return a client as a connection, and the definitions of its server's tools by name on the server.

    Args:
        client: A connected session or client of the SDK, or a connected FastMCP client.
        seconds: Timeout of a call, and of listing the tools, in seconds.

    Raises:
        SpecError: It is not a client, or it is not connected.
        ToolFailed: The server does not list its tools.
        ModuleNotFoundError: The extra ``mcp`` is not installed.
    """
    try:
        from mcp import ClientSession

        from neuroscript.interop.mcp.client.sdk import Dialogue
    except ImportError as error:
        raise missing_extra("using an MCP client needs the SDK of MCP", "mcp", error) from None
    dialogue = Dialogue(lambda: None)
    dialogue.client = _Session(client) if isinstance(client, ClientSession) else client
    try:
        is_connected = isinstance(getattr(client, "session", client), ClientSession)
    except RuntimeError:  # raised by a client that is not connected
        is_connected = False
    if not is_connected:
        raise SpecError("client", ["expected a connected session or client of the MCP SDK or of FastMCP"])
    connection = HostClient(dialogue, seconds)
    try:
        return connection, dict(await asyncio.wait_for(dialogue.definitions(), seconds))
    except TimeoutError:
        raise timeout_error(seconds) from None


class ToolMissing(SpecError):
    """The server has no tool with the requested name; the message is worded as in AgentHeaven."""

    def __str__(self) -> str:
        return self.problems[0]


def find_definition(definitions: Mapping[str, Definition], name: str) -> Definition:
    """Return the definition with a name.

    Raises:
        ToolMissing: It does not exist; the error lists the names from the server, escaped and truncated.
    """
    if name not in definitions:
        text = f"Tool {name!r} not found on server. Available tools: {[*definitions]!r}"
        raise ToolMissing("client", [one_line(text, MAX_DESCRIPTION_CHARS)])
    return definitions[name]
