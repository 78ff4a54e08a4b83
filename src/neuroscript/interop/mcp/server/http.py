"""The streamable HTTP application, behind the guard of our HTTP services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

from neuroscript._imports import missing_extra

try:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.routing import Route
except ImportError as error:
    raise missing_extra("serving over MCP needs its SDK", "mcp", error) from None

from neuroscript.interop.http_server.guard import BODY_TIMEOUT_SECONDS, MAX_BODY_BYTES, RequestGuard, check_access
from neuroscript.interop.http_server.principals import Authenticator, StaticTokens
from neuroscript.interop.mcp.server.serve import Service

PATH: Final = "/mcp"
"""The path of the server."""

IDLE_SECONDS: Final = 30 * 60.0
"""Time without a request after which a client counts as disconnected, in seconds."""

MAX_CLIENTS: Final = 1_000
"""Maximum number of connected clients."""

SINGLE_HEADERS: Final = {"mcp-protocol-version": "the protocol version must be sent once"}
"""Headers that may occur only once, and what to respond otherwise."""


def app(
    service: Service,
    *,
    token: str = "",
    authenticator: Authenticator | None = None,
    origins: Iterable[str] = (),
    is_local: bool = True,
    most_bytes: int = MAX_BODY_BYTES,
    idle: float = IDLE_SECONDS,
    slowest: float = BODY_TIMEOUT_SECONDS,
) -> Starlette:
    """Return an ASGI application that serves clients at `PATH`; its lifespan must be run.

    Args:
        token: The token that clients must send as ``Authorization: Bearer TOKEN``; ``""`` requires none.
        authenticator: Finds out who sent a request, in place of *token*.
        origins: Origins of web pages that may access the server, in addition to those of this machine.
        is_local: Whether only this machine may access the server; requests must then name a local host.
        most_bytes: Maximum size of a request body, in bytes.
        idle: Time without a request after which a client counts as disconnected, in seconds.
        slowest: Timeout for receiving a whole request body, in seconds.

    Raises:
        ValueError: It is neither local nor authenticates its clients, the token is invalid, or there are both a token
            and an authenticator.
    """
    if token and authenticator is not None:
        raise ValueError("expected a token or an authenticator, not both")
    authenticator = StaticTokens.anonymous(token) if token else authenticator
    check_access(is_local=is_local, authenticator=authenticator)
    manager = StreamableHTTPSessionManager(
        service.server, max_request_body_size=most_bytes, session_idle_timeout=idle, max_sessions=MAX_CLIENTS
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    guard = RequestGuard(
        manager.handle_request,
        authenticator=authenticator,
        origins=origins,
        is_local=is_local,
        slowest=slowest,
        single_headers=SINGLE_HEADERS,
    )
    return Starlette(routes=[Route(PATH, endpoint=guard)], lifespan=lifespan)
