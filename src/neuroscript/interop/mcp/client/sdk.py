"""The interface to the MCP SDK: requests to a server and their responses.

The client declares no capability of its own: no sampling, no elicitation and no roots.

Supports MCP 2025-11-25 and 2026-07-28.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

from neuroscript._imports import missing_extra
from neuroscript.errors import Retry, SpecError, ToolFailed
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS
from neuroscript.interop.mcp.client.accepted_definitions import Definition, Listing
from neuroscript.interop.mcp.client.connection import connection_closed_error
from neuroscript.interop.mcp.client.location import Location
from neuroscript.interop.mcp.client.pending_requests import MAX_TOOLS
from neuroscript.interop.mcp.client.results import Unusable, response_error
from neuroscript.interop.mcp.client.transports import open_transport
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
    raise missing_extra("reaching an MCP server needs the SDK of MCP", "mcp", error) from None

MAX_PAGES: Final = 100
"""Maximum number of pages in a tool list."""

MAX_LIST_ATTEMPTS: Final = 5
"""Maximum number of attempts to list tools that change meanwhile; then the last list is used once."""

MAX_DEFINITION_CHARS: Final = 4 * 1024 * 1024
"""Maximum size of all definitions of a server together, in characters of JSON."""

MAX_INVALID_LINES: Final = 100
"""Maximum number of invalid lines before the connection is ended."""

SESSION_TERMINATED: Final = "Session terminated"
"""The SDK's message when an HTTP server no longer knows the session."""

CLOSED: Final = ("Connection closed", "SSE stream ended", "SSE stream failed")
"""Prefixes of the SDK's message for an ended connection; the error code is ambiguous, because servers also use it."""


@asynccontextmanager
async def open_dialogue(place: Location, ended: Callable[[], None]) -> AsyncIterator[Dialogue]:
    """Open a connection and close it at the end; *ended* is called if the other side closes it."""
    async with AsyncExitStack() as stack:
        made = Dialogue(ended)
        transport = await open_transport(place, ended, stack)
        made.client = await stack.enter_async_context(
            Client(transport, client_info=CLIENT, message_handler=made.heard, cache=None)
        )
        listening = asyncio.create_task(made.listen())
        stack.push_async_callback(_cancel_task, listening)
        yield made


CLIENT: Final = types.Implementation(name="neuroscript", version="1")


async def _cancel_task(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


class Dialogue:
    """Requests to a server over one connection, in its event loop.

    Attributes:
        client: The SDK client, or another client with a ``session`` of the SDK.
    """

    client: Any

    def __init__(self, ended: Callable[[], None]) -> None:
        self._end = ended
        self._listed: Listing | None = None
        self._listing = asyncio.Lock()
        self._garbage = 0

    async def heard(self, message: Any) -> None:
        """Handle an unsolicited message; a changed tool list is requested again before its next use."""
        if isinstance(message, types.ToolListChangedNotification):
            self._listed = None
        elif isinstance(message, Exception):
            self._garbage += 1
            if self._garbage > MAX_INVALID_LINES:
                self._end()

    async def listen(self) -> None:
        """Subscribe to changes of the tool list; servers with protocols since 2026 notify only subscribers."""
        if self.client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        with suppress(MCPError, SubscriptionLost, ValidationError, RuntimeError):
            async with self.client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._listed = None
        self._listed = None

    async def definitions(self) -> Mapping[str, Definition]:
        """Return the current definitions of the server, without tools that cannot be used.

        Raises:
            ToolFailed: The server does not list its tools.
        """
        return (await self.listing()).definitions

    async def listing(self) -> Listing:
        """Return what the server lists now.

        Raises:
            ToolFailed: The server does not list its tools.
        """
        async with self._listing:
            if self._listed is not None:
                return self._listed
            for _ in range(MAX_LIST_ATTEMPTS):
                self._listed = Listing()
                try:
                    found: Listing = await _response(self._pages())
                except BaseException:  # the list is still unknown
                    self._listed = None
                    raise
                if self._listed is not None:  # otherwise it has changed meanwhile
                    self._listed = found
                    break
            return found

    async def _pages(self) -> Listing:
        found: dict[str, Definition] = {}
        faults: dict[str, tuple[str, ...]] = {}
        cursor: str | None = None
        size = 0
        for _ in range(MAX_PAGES):
            page = await self.client.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            for each in page.tools:
                if each.name in found or each.name in faults or len(found) + len(faults) == MAX_TOOLS:
                    raise response_error(f"lists a tool twice, or more than {MAX_TOOLS} tools")
                try:
                    found[each.name] = Definition.of_data(_data_of(each))
                except SpecError as error:
                    faults[each.name] = error.problems
                    continue
                size += len(json.dumps(found[each.name].data))
                if size > MAX_DEFINITION_CHARS:
                    raise response_error(f"lists tools of more than {MAX_DEFINITION_CHARS} characters")
            cursor = page.next_cursor
            if cursor is None:
                return Listing(found, faults)
        raise response_error(f"lists its tools on more than {MAX_PAGES} pages")

    async def call(
        self, definition: Definition, arguments: dict[str, Any], on_progress: ProgressFnT
    ) -> Mapping[str, Any]:
        """Call a tool if its definition has not changed, and return the result in the wire format of MCP.

        Raises:
            ToolFailed: ``mcp.changed``: its definition has changed. Other codes: there is no result.
        """
        now = (await self.definitions()).get(definition.name)
        if now is None or now.digest != definition.digest:
            what = "is no longer on the server" if now is None else "differs from its accepted definition"
            raise ToolFailed(f"the tool {what}; review and accept it again", code="mcp.changed", retry="host")
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=definition.name, arguments=arguments))
        try:
            answer = await _response(self._send_call(request, on_progress))
        except ToolFailed as error:
            if error.code == "mcp.closed":
                self._end()
            raise
        return _data_of(answer)

    async def _send_call(self, request: types.CallToolRequest, on_progress: ProgressFnT) -> Any:
        return await self.client.session.send_request(request, types.CallToolResult, progress_callback=on_progress)


def _data_of(model: BaseModel) -> dict[str, Any]:
    """Return a message with the key names of the protocol; mode ``json`` would turn ``NaN`` into None."""
    return model.model_dump(mode="python", by_alias=True, exclude_unset=True, warnings=False)


async def _response(request: Awaitable[Any]) -> Any:
    """Return a response; raise any error as a `ToolFailed`."""
    try:
        return await request
    except ToolFailed:
        raise
    except MCPError as error:
        raise _mcp_error(error) from None
    except ValidationError:
        raise response_error("does not conform to the protocol") from None
    except Exception as error:
        raise connection_closed_error() from error


def _mcp_error(error: MCPError) -> ToolFailed:
    if isinstance(error.data, Unusable):
        return response_error(error.data.reason)
    is_closed = error.code == types.CONNECTION_CLOSED and error.message.startswith(CLOSED)
    if is_closed or error.message == SESSION_TERMINATED:
        return connection_closed_error()
    return ToolFailed(
        f"the server refused: {one_line(error.message, MAX_DESCRIPTION_CHARS)}", code="mcp.refused", retry=_retry(error)
    )


def _retry(error: MCPError) -> Retry:
    match error.code:
        case types.INVALID_PARAMS:
            return "model"
        case types.INTERNAL_ERROR:
            return "later"
        case _:
            return "host"
