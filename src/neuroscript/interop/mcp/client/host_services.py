"""A client that somebody else has connected, and one tool of its server.

Source: seed-systems.md AH-53; issue "MCP and the frameworks".
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import attrs

from neuroscript._imports import missing
from neuroscript.errors import SpecError, ToolFailed
from neuroscript.interop.foreign import LONGEST
from neuroscript.interop.mcp.client.accepted_definitions import Definition
from neuroscript.interop.mcp.client.connection import late, over
from neuroscript.io.text import one_line

T = TypeVar("T")

WAITING: Final = "a client is answered on the loop that it lives on, which waits here; await acall or aexec there"


class Lent:
    """What is asked of a server over a client of others, on the loop that the client lives on.

    Args:
        dialogue: Over that client.
        seconds: How long a call may take.
    """

    def __init__(self, dialogue: Any, seconds: float) -> None:
        self.seconds = seconds
        self._dialogue = dialogue
        self._loop = asyncio.get_running_loop()

    async def asked(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Return what *work* makes of the dialogue; whoever cancels this cancels it on the client's loop too."""
        if asyncio.get_running_loop() is self._loop:
            return await work(self._dialogue)
        asking = self._asked(work)
        try:
            future = asyncio.run_coroutine_threadsafe(asking, self._loop)
        except RuntimeError:  # it has been closed
            asking.close()
            raise over() from None
        return await asyncio.wrap_future(future)

    async def _asked(self, work: Callable[[Any], Awaitable[T]]) -> T:
        return await work(self._dialogue)

    def refuse_to_wait(self, tool: str) -> None:
        """Raise a `ToolFailed`, ``mcp.waiting``, where the client's own loop would wait for an answer in vain."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            return
        if running is self._loop:
            raise ToolFailed(WAITING, tool=tool, code="mcp.waiting", retry="host")


@attrs.frozen(eq=False)
class _Session:
    """A session of the SDK, in place of a client that has one.

    Attributes:
        session: The session.
    """

    session: Any


async def lent(client: Any, seconds: float) -> tuple[Lent, dict[str, Definition]]:
    """Return a client as a connection, and what its server says its tools are, by the server's names.

    Args:
        client: One that is connected: a session or a client of the SDK, or a client of FastMCP.
        seconds: How long a call may take, and the list of tools.

    Raises:
        SpecError: It is none, or none that is connected.
        ToolFailed: The server does not say what its tools are.
        ModuleNotFoundError: The extra ``mcp`` is not installed.
    """
    try:
        from mcp import ClientSession

        from neuroscript.interop.mcp.client.sdk import Dialogue
    except ImportError as error:
        raise missing("a client of MCP needs its SDK", "mcp", error) from None
    dialogue = Dialogue(lambda: None)
    dialogue.client = _Session(client) if isinstance(client, ClientSession) else client
    try:
        is_connected = isinstance(getattr(client, "session", client), ClientSession)
    except RuntimeError:  # it says so where it is not
        is_connected = False
    if not is_connected:
        raise SpecError("client", ["expected a session or a client of the SDK of MCP or of FastMCP that is connected"])
    connection = Lent(dialogue, seconds)
    try:
        return connection, dict(await asyncio.wait_for(dialogue.definitions(), seconds))
    except TimeoutError:
        raise late(seconds) from None


class ToolMissing(SpecError):
    """A server has no tool of the name that was asked for; it is said in the words of AgentHeaven alone."""

    def __str__(self) -> str:
        return self.problems[0]


def one_of(definitions: Mapping[str, Definition], name: str) -> Definition:
    """Return the definition of a name.

    Raises:
        ToolMissing: There is none; the names are those that the server told, escaped and cut.
    """
    if name not in definitions:
        text = f"Tool {name!r} not found on server. Available tools: {[*definitions]!r}"
        raise ToolMissing("client", [one_line(text, LONGEST)])
    return definitions[name]
