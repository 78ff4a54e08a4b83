"""The door to the SDK: what is asked of a server, and what it answers.

Nothing that a server asks of its client is offered: no sampling, no elicitation, no roots.

Source: Model Context Protocol, 2025-11-25 and 2026-07-28; ecosystem.md part 9.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

from neuroscript._imports import missing
from neuroscript.errors import Retry, SpecError, ToolFailed
from neuroscript.interop.foreign import LONGEST
from neuroscript.interop.mcp.client.accepted_definitions import Definition, Listing
from neuroscript.interop.mcp.client.connection import over
from neuroscript.interop.mcp.client.location import Place
from neuroscript.interop.mcp.client.pending_requests import MAX_TOOLS
from neuroscript.interop.mcp.client.results import Unusable, unlike
from neuroscript.interop.mcp.client.transports import reached
from neuroscript.io.text import one_line

try:
    import mcp_types as types
    from mcp.client.client import Client
    from mcp.client.subscriptions import SubscriptionLost
    from mcp.shared.dispatcher import ProgressFnT
    from mcp.shared.exceptions import MCPError
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
    from pydantic import BaseModel, ValidationError
except ImportError as error:
    raise missing("reaching an MCP server needs the SDK of MCP", "mcp", error) from None

PAGES: Final = 100
"""On how many pages a server may list its tools."""

TRIES: Final = 5
"""How often in a row tools are listed that change meanwhile; then what came last is taken, for this once."""

LARGEST: Final = 4 * 1024 * 1024
"""How many characters all definitions of a server may have together, as JSON."""

GARBAGE: Final = 100
"""How many lines that are no message a server may write before its connection is ended."""

GONE: Final = "Session terminated"
"""What the SDK says where a server over HTTP has forgotten the session."""

CLOSED: Final = ("Connection closed", "SSE stream ended", "SSE stream failed")
"""How it begins where a connection has ended; its code alone says nothing, for servers have it for their own errors."""


@asynccontextmanager
async def opened(place: Place, ended: Callable[[], None]) -> AsyncIterator[Dialogue]:
    """Open a connection, and close it again; *ended* is called where the other side does that."""
    async with AsyncExitStack() as stack:
        made = Dialogue(ended)
        transport = await reached(place, ended, stack)
        made.client = await stack.enter_async_context(
            Client(transport, client_info=CLIENT, message_handler=made.heard, cache=None)
        )
        listening = asyncio.create_task(made.listen())
        stack.push_async_callback(_ended, listening)
        yield made


CLIENT: Final = types.Implementation(name="neuroscript", version="1")


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


class Dialogue:
    """What is asked of a server over one connection, in its loop.

    Attributes:
        client: The SDK's, or another one that has a ``session`` of the SDK.
    """

    client: Any

    def __init__(self, ended: Callable[[], None]) -> None:
        self._end = ended
        self._listed: Listing | None = None
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
        """Return what the server says its tools are now, without those that cannot be used.

        Raises:
            ToolFailed: It does not say so.
        """
        return (await self.listing()).definitions

    async def listing(self) -> Listing:
        """Return what the server lists now.

        Raises:
            ToolFailed: It does not list its tools.
        """
        async with self._listing:
            if self._listed is not None:
                return self._listed
            for _ in range(TRIES):
                self._listed = Listing()
                try:
                    found: Listing = await _answered(self._pages())
                except BaseException:  # nobody knows them yet
                    self._listed = None
                    raise
                if self._listed is not None:  # else it has changed meanwhile
                    self._listed = found
                    break
            return found

    async def _pages(self) -> Listing:
        found: dict[str, Definition] = {}
        faults: dict[str, tuple[str, ...]] = {}
        cursor: str | None = None
        size = 0
        for _ in range(PAGES):
            page = await self.client.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            for each in page.tools:
                if each.name in found or each.name in faults or len(found) + len(faults) == MAX_TOOLS:
                    raise unlike(f"lists a tool twice, or more than {MAX_TOOLS} tools")
                try:
                    found[each.name] = Definition.of_data(_data_of(each))
                except SpecError as error:
                    faults[each.name] = error.problems
                    continue
                size += len(json.dumps(found[each.name].data))
                if size > LARGEST:
                    raise unlike(f"lists tools of more than {LARGEST} characters")
            cursor = page.next_cursor
            if cursor is None:
                return Listing(found, faults)
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
        try:
            answer = await _answered(self._sent(request, told))
        except ToolFailed as error:
            if error.code == "mcp.closed":
                self._end()
            raise
        return _data_of(answer)

    async def _sent(self, request: types.CallToolRequest, told: ProgressFnT) -> Any:
        return await self.client.session.send_request(request, types.CallToolResult, progress_callback=told)


def _data_of(model: BaseModel) -> dict[str, Any]:
    """Return what came over the wire, under the wire's names; to dump it as JSON would make None of ``NaN``."""
    return model.model_dump(mode="python", by_alias=True, exclude_unset=True, warnings=False)


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
    if isinstance(error.data, Unusable):
        return unlike(error.data.reason)
    is_closed = error.code == types.CONNECTION_CLOSED and error.message.startswith(CLOSED)
    if is_closed or error.message == GONE:
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
