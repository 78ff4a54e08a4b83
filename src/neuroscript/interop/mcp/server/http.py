"""The streamable HTTP application, behind the guard of our HTTP services."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from neuroscript._imports import missing_extra

try:
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.datastructures import Headers
    from starlette.responses import Response
    from starlette.routing import Route
except ImportError as error:
    raise missing_extra("serving over MCP needs its SDK", "mcp", error) from None

from neuroscript.interop.http_server import PRINCIPAL
from neuroscript.interop.http_server.guard import BODY_TIMEOUT_SECONDS, MAX_BODY_BYTES, RequestGuard, check_access
from neuroscript.interop.http_server.metadata import metadata_route
from neuroscript.interop.http_server.principals import (
    Authenticator,
    Principal,
    Refusal,
    StaticTokens,
    principal_key,
)
from neuroscript.interop.http_server.protected_resource import ProtectedResource
from neuroscript.interop.http_server.scope_policies import missing_scopes, resource_with_scopes
from neuroscript.interop.mcp.server.serve import Service

PATH: Final = "/mcp"
"""The path of the server."""

IDLE_SECONDS: Final = 30 * 60.0
"""Time without a request after which a client counts as disconnected, in seconds."""

MAX_CLIENTS: Final = 1_000
"""Maximum number of connected clients."""

SINGLE_HEADERS: Final = {"mcp-protocol-version": "the protocol version must be sent once"}
"""Headers that may occur only once, and what to respond otherwise."""

LISTENS: Final = "subscriptions/listen"
"""The method of a request whose response lasts, as the header Mcp-Method of protocol 2026-07-28 names it."""


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
        authenticator: Finds out who sent a request, in place of *token*, such as a ``JWTAuthenticator``. With access
            tokens, the metadata of the server is served too, as RFC 9728 specifies.
        origins: Origins of web pages that may access the server, in addition to those of this machine.
        is_local: Whether only this machine may access the server; requests must then name a local host.
        most_bytes: Maximum size of a request body, in bytes.
        idle: Time without a request after which a client counts as disconnected, in seconds.
        slowest: Timeout for receiving a whole request body, in seconds.

    Raises:
        ValueError: It is neither local nor authenticates its clients, the token is invalid, or there are both a token
            and an authenticator. The service has scopes, but nothing authenticates its clients.
    """
    if token and authenticator is not None:
        raise ValueError("expected a token or an authenticator, not both")
    if service.principals.scopes is not None and authenticator is None:
        raise ValueError("scopes need an authenticator, such as JWTAuthenticator")
    authenticator = StaticTokens.anonymous(token) if token else authenticator
    check_access(is_local=is_local, authenticator=authenticator)
    manager = StreamableHTTPSessionManager(
        service.server, max_request_body_size=most_bytes, session_idle_timeout=idle, max_sessions=MAX_CLIENTS
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    service.principals.are_separate |= authenticator is not None and not token
    scopes = service.principals.scopes
    resource = resource_with_scopes(authenticator, scopes)
    guard = RequestGuard(
        PrincipalCheck(manager.handle_request, service, resource),
        authenticator=authenticator,
        origins=origins,
        is_local=is_local,
        slowest=slowest,
        single_headers=SINGLE_HEADERS,
    )
    routes = [Route(PATH, endpoint=guard)]
    if resource is not None:
        routes.append(metadata_route(resource))
    return Starlette(routes=routes, lifespan=lifespan)


class PrincipalCheck:
    """An ASGI application that checks what the scopes of a principal permit, and binds sessions to the principal.

    Args:
        inside: The application that answers.
        service: The service, whose scopes are checked.
        resource: What clients learn about authorization, or None if they need no access tokens.
    """

    def __init__(self, inside: Callable[..., Any], service: Service, resource: ProtectedResource | None) -> None:
        self._inside = inside
        self._service = service
        self._resource = resource

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to one request."""
        principal: Principal | None = scope.get(PRINCIPAL)
        if principal is None:
            await self._inside(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(principal, headers)
        if refusal is not None:
            await Response(refusal.text, refusal.status, refusal.headers)(scope, receive, send)
            return
        owner = AccessToken(token="", client_id=session_owner(principal), scopes=[])  # the SDK compares it
        scope["user"] = AuthenticatedUser(owner)
        lasts = scope["method"] == "GET" or headers.get("mcp-method") == LISTENS
        if principal.expires is None or not lasts:
            await self._inside(scope, receive, send)
            return
        try:
            async with asyncio.timeout(max(0.0, principal.expires - time.time())) as clock:
                await self._inside(scope, receive, send)
        except TimeoutError:
            if not clock.expired():
                raise
            with suppress(Exception):  # the stream ends; its client opens it again with a new token
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _refusal(self, principal: Principal, headers: Headers) -> Refusal | None:
        """Return the response to a request whose scopes do not suffice, or None.

        A request of protocol 2026-07-28 names its tool in a header, so that its client can ask for the missing scope.
        """
        scopes = self._service.principals.scopes
        if scopes is None:
            return None
        needed: tuple[str, ...] = ()
        if not scopes.permits(principal.scopes):
            needed = scopes.names
        elif headers.get("mcp-method") == "tools/call":
            needed = self._service.missing_scopes(headers.get("mcp-name", ""), principal)
        if not needed:
            return None
        return missing_scopes(self._resource, principal.scopes, needed)


def session_owner(principal: Principal) -> str:
    """Return what a session with a handshake is bound to: a token with other scopes needs a session of its own."""
    return "\n".join((principal_key(principal), *sorted(principal.scopes)))
