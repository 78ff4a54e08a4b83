"""Streamable HTTP: who may speak with the server at all, and who has gone.

Source: MCP 2025-11-25, "Transports", security warning; RFC 6750; issue "MCP", HTTP only on loopback unless told.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from neuroscript.interop.mcp.serving import GONE, Service

PATH: Final = "/mcp"
"""Where the server is found."""

MOST_BYTES: Final = 4 * 1024 * 1024
"""How long the body of a request may be."""

IDLE: Final = 30 * 60.0
"""Seconds after which a client that has said nothing is taken for gone."""

MOST_CLIENTS: Final = 1_000
"""How many clients may be connected at once."""


def app(
    service: Service,
    *,
    token: str = "",
    origins: Iterable[str] = (),
    is_local: bool = True,
    most_bytes: int = MOST_BYTES,
    idle: float = IDLE,
) -> Starlette:
    """Return an ASGI application that serves clients at `PATH`; its lifespan has to be run.

    Args:
        token: What a client has to say, ``Authorization: Bearer TOKEN``; ``""`` asks for none.
        origins: Web pages of these origins may speak with it, besides those of this machine.
        is_local: Whether it is meant for this machine alone, so that its name in a request is one of this machine's.
        most_bytes: How long the body of a request may be.
        idle: Seconds after which a client that has said nothing is taken for gone.

    Raises:
        ValueError: It is not local, and asks for no token.
    """
    if not (is_local or token):
        raise ValueError("a server that others can reach needs a token")
    manager = StreamableHTTPSessionManager(
        service.server, max_request_body_size=most_bytes, session_idle_timeout=idle, max_sessions=MOST_CLIENTS
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    door = Door(manager.handle_request, token, frozenset(origins), is_local)
    return Starlette(routes=[Route(PATH, endpoint=door)], lifespan=lifespan)


class Door:
    """Stands before the transport of the SDK, lets nobody in who may not, and hears when somebody goes."""

    def __init__(self, inside: Callable[..., Any], token: str, origins: frozenset[str], is_local: bool) -> None:
        self._inside = inside
        self._token = token.encode()
        self._origins = origins
        self._is_local = is_local

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        gone = scope[GONE] = asyncio.Event()

        async def hearing() -> Any:
            heard = await receive()
            if heard["type"].endswith(".disconnect"):
                gone.set()
            return heard

        await self._inside(scope, hearing, send)

    def _refusal(self, headers: dict[str, str]) -> Response | None:
        if self._is_local and not is_loopback(_host_of(f"//{headers.get('host', '')}")):
            return Response("this server is for its own machine alone", 421)
        if not self._is_origin(headers.get("origin")):
            return Response("no page of this origin may speak with this server", 403)
        if self._token and not self._knows(headers.get("authorization", "")):
            return Response("a token is wanted", 401, {"www-authenticate": "Bearer"})
        version = headers.get("mcp-protocol-version")
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return _unspoken(version)
        return None

    def _is_origin(self, origin: str | None) -> bool:
        return origin is None or origin in self._origins or is_loopback(_host_of(origin))

    def _knows(self, said: str) -> bool:
        scheme, _, token = said.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), self._token)


def is_loopback(host: str | None) -> bool:
    """Tell whether a name or an address means this machine alone.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host is None or host == "localhost":
        return host is not None
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _host_of(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _unspoken(version: str) -> Response:
    """Return the answer to a version without a handshake, upon which clients begin with one."""
    data = {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": version[:32]}
    error = {"code": UNSUPPORTED_PROTOCOL_VERSION, "message": "this version is not spoken here", "data": data}
    return Response(json.dumps({"jsonrpc": "2.0", "id": None, "error": error}), 400, media_type="application/json")
