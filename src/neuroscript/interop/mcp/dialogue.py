"""The door to the SDK: how a server is reached, and what is asked of it.

Nothing that a server asks of its client is offered: no sampling, no elicitation, no roots.

Source: Model Context Protocol, 2025-11-25 and 2026-07-28; ecosystem.md part 9.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TextIO

import attrs
import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from neuroscript.errors import Retry, SpecError, ToolFailed
from neuroscript.interop.dumped import dumped
from neuroscript.interop.mcp.accepted import Definition
from neuroscript.interop.mcp.answers import unlike
from neuroscript.interop.mcp.connecting import over
from neuroscript.interop.mcp.foreign_text import LONGEST
from neuroscript.interop.openapi.documents import one_line

MOST: Final = 1_000
PAGES: Final = 100
"""How many tools a server may list, and on how many pages."""

LARGEST: Final = 4 * 1024 * 1024
"""How many characters all definitions of a server may have together, as JSON."""

GARBAGE: Final = 100
"""How many lines that are no message a server may write before its connection is ended."""

READING: Final = 300.0
"""Seconds between two pieces of an answer over HTTP; how long a call may take is its own timeout's to say."""

GONE: Final = "Session terminated"
"""What the SDK says where a server over HTTP has forgotten the session."""


@attrs.frozen
class Place:
    """Where a server is: a command, or a URL.

    Attributes:
        command: The program and its arguments; no shell reads them.
        url: Of streamable HTTP.
        env: What the program gets besides ``HOME``, ``LOGNAME``, ``PATH``, ``SHELL``, ``TERM`` and ``USER``.
        headers: What goes with each request.
        cwd: The program's working directory.
    """

    command: tuple[str, ...]
    url: str
    env: Mapping[str, str] = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(repr=False)
    cwd: str | None

    @asynccontextmanager
    async def dialogue(self, ended: Callable[[], None]) -> AsyncIterator[Dialogue]:
        """Open a connection, and close it again; *ended* is called where the other side does that."""
        async with AsyncExitStack() as stack:
            made = Dialogue(ended)
            transport = _Watched(await self._transport(stack), ended)
            made.client = await stack.enter_async_context(
                Client(transport, client_info=CLIENT, message_handler=made.heard, cache=None)
            )
            listening = asyncio.create_task(made.listen())
            stack.push_async_callback(_ended, listening)
            yield made

    async def _transport(self, stack: AsyncExitStack) -> Any:
        if self.url:
            timeout = httpx2.Timeout(30.0, read=READING)
            client = httpx2.AsyncClient(headers=dict(self.headers), timeout=timeout)
            return streamable_http_client(self.url, http_client=await stack.enter_async_context(client))
        program, *args = self.command
        nowhere = stack.enter_context(_nowhere())
        server = StdioServerParameters(command=program, args=args, env=dict(self.env), cwd=self.cwd)
        return stdio_client(server, errlog=nowhere)


CLIENT: Final = types.Implementation(name="neuroscript", version="1")


@contextmanager
def _nowhere() -> Iterator[TextIO]:
    """Lend what a program's errors are written to, so that it waits for nobody to read them."""
    with Path(os.devnull).open("w") as file:
        yield file


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


class _Watched:
    """A transport that says when its reading side has ended."""

    def __init__(self, inner: Any, ended: Callable[[], None]) -> None:
        self._inner = inner
        self._ended = ended

    async def __aenter__(self) -> Any:
        read, write = await self._inner.__aenter__()
        return _Reading(read, self._ended), write

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


class _Reading:
    """A stream that says when it has ended; all else is that of the SDK."""

    def __init__(self, inner: Any, ended: Callable[[], None]) -> None:
        self._inner = inner
        self._ended = ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __aiter__(self) -> _Reading:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:
            self._ended()
            raise

    async def __aenter__(self) -> _Reading:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


class Dialogue:
    """What is asked of a server over one connection, in its loop.

    Attributes:
        client: That of the SDK.
    """

    client: Client

    def __init__(self, ended: Callable[[], None]) -> None:
        self._end = ended
        self._listed: dict[str, Definition] | None = None
        self._listing = asyncio.Lock()
        self._garbage = 0

    async def heard(self, message: Any) -> None:
        """Take a message that was not asked for: lists that changed are asked for again before they are used."""
        if isinstance(message, types.ToolListChangedNotification):
            self._listed = None
        elif isinstance(message, Exception):
            self._garbage += 1
            if self._garbage > GARBAGE:
                self._end()

    async def listen(self) -> None:
        """Hear of lists that changed from servers of protocols since 2026, which tell only those who ask."""
        if self.client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        with suppress(MCPError, SubscriptionLost, ValidationError, RuntimeError):
            async with self.client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._listed = None
        self._listed = None

    async def definitions(self) -> Mapping[str, Definition]:
        """Return what the server says its tools are now.

        Raises:
            ToolFailed: It does not say so.
        """
        async with self._listing:
            while self._listed is None:
                self._listed = {}
                found = await _answered(self._pages())
                if self._listed is not None:  # else it has changed meanwhile
                    self._listed = found
            return self._listed

    async def _pages(self) -> dict[str, Definition]:
        found: dict[str, Definition] = {}
        cursor: str | None = None
        size = 0
        for _ in range(PAGES):
            page = await self.client.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            for each in page.tools:
                definition = _definition(each)
                size += len(json.dumps(definition.data))
                if definition.name in found or len(found) == MOST or size > LARGEST:
                    raise unlike(f"lists a tool twice, or more than {MOST} tools, or more than {LARGEST} characters")
                found[definition.name] = definition
            cursor = page.next_cursor
            if cursor is None:
                return found
        raise unlike(f"lists its tools on more than {PAGES} pages")

    async def call(self, definition: Definition, arguments: dict[str, Any], told: ProgressFnT) -> Mapping[str, Any]:
        """Call a tool that is what it was, and return its result as plain data of the protocol.

        Raises:
            ToolFailed: ``mcp.changed``, it is not what it was; or there is no result.
        """
        now = (await self.definitions()).get(definition.name)
        if now is None or now.digest != definition.digest:
            what = "is gone from the server" if now is None else "is not what was accepted"
            raise ToolFailed(
                f"the tool {what}; its definition has to be accepted again", code="mcp.changed", retry="host"
            )
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=definition.name, arguments=arguments))
        session = self.client.session
        try:
            answer = await _answered(session.send_request(request, types.CallToolResult, progress_callback=told))
        except ToolFailed as error:
            if error.code == "mcp.closed":
                self._end()
            raise
        result: Mapping[str, Any] = dumped(answer)
        return result


def _definition(tool: types.Tool) -> Definition:
    try:
        return Definition.of_data(dumped(tool))
    except SpecError:
        raise unlike("lists a tool that is none, or is too large") from None


async def _answered(asked: Awaitable[Any]) -> Any:
    """Return an answer, or raise what there is instead as `ToolFailed`."""
    try:
        return await asked
    except ToolFailed:
        raise
    except MCPError as error:
        raise _refused(error) from None
    except ValidationError:
        raise unlike("is not what the protocol says") from None
    except Exception as error:
        raise over() from error


def _refused(error: MCPError) -> ToolFailed:
    if error.code == types.CONNECTION_CLOSED or error.message == GONE:
        return over()
    return ToolFailed(
        f"the server refused: {one_line(error.message, LONGEST)}", code="mcp.refused", retry=_retry(error)
    )


def _retry(error: MCPError) -> Retry:
    match error.code:
        case types.INVALID_PARAMS:
            return "model"
        case types.INTERNAL_ERROR:
            return "later"
        case _:
            return "host"
