"""The streamable HTTP application: checks which requests may reach the server, and detects disconnected clients.

See MCP 2025-11-25 and 2026-07-28, "Transports", security warning, and RFC 6750.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any, Final

from neuroscript._imports import missing_extra

try:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.datastructures import Headers
    from starlette.responses import Response
    from starlette.routing import Route
except ImportError as error:
    raise missing_extra("serving over MCP needs its SDK", "mcp", error) from None

from neuroscript.interop.mcp.addresses import host_of, is_loopback
from neuroscript.interop.mcp.server.request import CLIENT_GONE
from neuroscript.interop.mcp.server.request_states import PRINCIPAL
from neuroscript.interop.mcp.server.serve import Service

PATH: Final = "/mcp"
"""The path of the server."""

CONNECTION: Final = "neuroscript.connection"
"""The key for the `listener.Connection` in the state of a request, if `listener.server` serves it."""

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of a request body, in bytes."""

IDLE_SECONDS: Final = 30 * 60.0
"""Time without a request after which a client counts as disconnected, in seconds."""

MAX_CLIENTS: Final = 1_000
"""Maximum number of connected clients."""

BODY_TIMEOUT_SECONDS: Final = 30.0
"""Timeout for receiving a whole request body, in seconds."""

TOKEN: Final = re.compile(r"[!-~]+")
"""A token: visible ASCII characters, because clients encode others differently."""

BEARER_RULE: Final = "expected a token of visible ASCII characters without spaces"


def app(
    service: Service,
    *,
    token: str = "",
    origins: Iterable[str] = (),
    is_local: bool = True,
    most_bytes: int = MAX_BODY_BYTES,
    idle: float = IDLE_SECONDS,
    slowest: float = BODY_TIMEOUT_SECONDS,
) -> Starlette:
    """Return an ASGI application that serves clients at `PATH`; its lifespan must be run.

    Args:
        token: The token that clients must send as ``Authorization: Bearer TOKEN``; ``""`` requires none.
        origins: Origins of web pages that may access the server, in addition to those of this machine.
        is_local: Whether only this machine may access the server; requests must then name a local host.
        most_bytes: Maximum size of a request body, in bytes.
        idle: Time without a request after which a client counts as disconnected, in seconds.
        slowest: Timeout for receiving a whole request body, in seconds.

    Raises:
        ValueError: It is neither local nor has a token, or the token is invalid.
    """
    if not (is_local or token):
        raise ValueError("a server that other machines can reach needs a token")
    if token and not TOKEN.fullmatch(token):
        raise ValueError(BEARER_RULE)
    manager = StreamableHTTPSessionManager(
        service.server, max_request_body_size=most_bytes, session_idle_timeout=idle, max_sessions=MAX_CLIENTS
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    guard = RequestGuard(manager.handle_request, token, frozenset(origins), is_local, slowest)
    return Starlette(routes=[Route(PATH, endpoint=guard)], lifespan=lifespan)


class RequestGuard:
    """A guard in front of the SDK transport: rejects unauthorized requests, and detects disconnected clients."""

    def __init__(
        self, inside: Callable[..., Any], token: str, origins: frozenset[str], is_local: bool, slowest: float
    ) -> None:
        self._inside = inside
        self._token = token.encode()
        self._origins = origins
        self._is_local = is_local
        self._slowest = slowest

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to one request."""
        refusal = self._refusal(Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        connection = scope.get("state", {}).get(CONNECTION)
        if connection is None:
            await self._admitted(scope, receive, send)
            return
        connection.admit()
        try:
            await self._admitted(scope, receive, send)
        finally:
            connection.release()

    async def _admitted(self, scope: Any, receive: Any, send: Any) -> None:
        disconnected = scope[CLIENT_GONE] = asyncio.Event()
        if self._token:
            scope[PRINCIPAL] = sha256(self._token).hexdigest()
        clock = asyncio.timeout(self._slowest)

        async def hearing() -> Any:
            message = await receive()
            if message["type"].endswith(".disconnect"):
                disconnected.set()
            if not message.get("more_body") and clock.when() is not None:
                clock.reschedule(None)
            return message

        try:
            async with clock:
                await self._inside(scope, hearing, send)
        except TimeoutError:
            if not clock.expired():
                raise
            await Response("the body did not arrive in time", 408, {"connection": "close"})(scope, receive, send)

    def _refusal(self, headers: Headers) -> Response | None:
        """Return the response to an invalid request, or None; every occurrence of a repeated header must be valid."""
        hosts = headers.getlist("host")
        if self._is_local and not (hosts and all(is_loopback(host_of(each)) for each in hosts)):
            return Response("this server only accepts requests from its own machine", 421)
        if not all(map(self._is_origin, headers.getlist("origin"))):
            return Response("pages of this origin may not access this server", 403)
        if self._token and not self._knows(headers.getlist("authorization")):
            return Response("a token is required", 401, {"www-authenticate": "Bearer"})
        if len(headers.getlist("mcp-protocol-version")) > 1:
            return Response("the protocol version must be sent once", 400)
        return None

    def _is_origin(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return origin in self._origins or (scheme in ("http", "https") and is_loopback(host_of(host)))

    def _knows(self, headers: list[str]) -> bool:
        scheme, _, token = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode("latin-1"), self._token)
