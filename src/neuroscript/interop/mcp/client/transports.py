"""Transports to a server: a child process or HTTP, with detection of the end of the connection.

See MCP 2025-11-25, "Transports".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Self, TextIO

from neuroscript._imports import missing_extra
from neuroscript.interop.http_server.addresses import is_local_url
from neuroscript.interop.mcp.client import size_limits as bounds
from neuroscript.interop.mcp.client.location import Location
from neuroscript.interop.mcp.client.log_filter import install_filter
from neuroscript.interop.mcp.client.pending_requests import Pending

try:
    import httpx2
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client
except ImportError as error:
    raise missing_extra("reaching an MCP server needs the SDK of MCP", "mcp", error) from None

READ_TIMEOUT_SECONDS: Final = 300.0
"""Timeout between two pieces of an HTTP response, in seconds; the call has its own timeout."""


async def open_transport(place: Location, ended: Callable[[], None], stack: AsyncExitStack, auth: Any = None) -> Any:
    """Return a transport of the SDK; its resources are released with *stack*.

    Args:
        auth: Authorizes each HTTP request, or None.
        ended: Called when the other side closes the connection or exceeds a size limit.
    """
    bounds.OVERLONG.set(ended)  # for this task and the tasks that the SDK starts
    install_filter()
    return _Watched(await _transport(place, stack, auth), ended)


async def _transport(place: Location, stack: AsyncExitStack, auth: Any) -> Any:
    if place.url:
        timeout = httpx2.Timeout(30.0, read=READ_TIMEOUT_SECONDS)
        headers = {**place.headers, "Accept-Encoding": "identity"}
        hooks = {"response": [bounds.limit_response]}
        is_here = is_local_url(place.url)  # no proxy from the environment for local addresses
        client = httpx2.AsyncClient(
            headers=headers, timeout=timeout, event_hooks=hooks, trust_env=not is_here, auth=auth
        )
        http_client = await stack.enter_async_context(client)
        return streamable_http_client(place.url, http_client=http_client, max_sse_event_size=bounds.MAX_MESSAGE_SIZE)
    program, *args = place.command
    if place.access is not None:
        from neuroscript.interop.mcp.client.confined_server import confined_command

        program, *args = confined_command(place.command, place.env, place.cwd, place.access)
    nowhere = stack.enter_context(_nowhere())
    encoding = bounds.register_codec()
    server = StdioServerParameters(command=program, args=args, env=dict(place.env), cwd=place.cwd, encoding=encoding)
    return stdio_client(server, errlog=nowhere)


@contextmanager
def _nowhere() -> Iterator[TextIO]:
    """Provide the null device for a program's standard error, so that the program never blocks on a full pipe."""
    with Path(os.devnull).open("w") as file:
        yield file


class _Watched:
    """A transport that reports the end of its reading side, and the requests without a usable response."""

    def __init__(self, inner: Any, ended: Callable[[], None]) -> None:
        self._inner = inner
        self._ended = ended

    async def __aenter__(self) -> Any:
        read, write = await self._inner.__aenter__()
        pending = Pending()
        return _Reading(read, pending, self._ended), _Writing(write, pending)

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


class _Stream:
    """A stream of the SDK, with all its attributes."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


class _Reading(_Stream):
    """The messages from a server."""

    def __init__(self, inner: Any, pending: Pending, ended: Callable[[], None]) -> None:
        super().__init__(inner)
        self._pending = pending
        self._ended = ended

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return self._pending.received(await self._inner.__anext__())
        except StopAsyncIteration:
            self._ended()
            raise


class _Writing(_Stream):
    """The messages to a server."""

    def __init__(self, inner: Any, pending: Pending) -> None:
        super().__init__(inner)
        self._pending = pending

    async def send(self, item: Any) -> None:
        """Send a message."""
        self._pending.sent(item)
        await self._inner.send(item)
