"""The HTTP application of a gateway: MCP at ``/mcp``, and ``/health`` and ``/metrics`` for its operator.

The token of a request decides which client's service answers it. A session of one client is unknown to all others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import attrs

from neuroscript._imports import missing_extra

try:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
except ImportError as error:
    raise missing_extra("a gateway needs the SDK of MCP", "gateway", error) from None

from neuroscript.gateway.gateway import Gateway, GatewayClient
from neuroscript.interop.http_server import CONNECTION, PRINCIPAL
from neuroscript.interop.http_server.addresses import is_loopback
from neuroscript.interop.http_server.guard import MAX_BODY_BYTES, RequestGuard, check_access
from neuroscript.interop.http_server.metadata import metadata_route
from neuroscript.interop.http_server.principals import Authenticator
from neuroscript.interop.mcp.server.http import (
    IDLE_SECONDS,
    MAX_CLIENTS,
    PATH,
    SINGLE_HEADERS,
    PrincipalCheck,
)

HEALTH: Final = "/health"
METRICS: Final = "/metrics"
"""The paths for the operator."""


def app(gateway: Gateway, *, authenticator: Authenticator | None = None, origins: Iterable[str] = ()) -> Starlette:
    """Return an ASGI application that serves the clients of a gateway; its lifespan must be run.

    Args:
        authenticator: Finds out who sends a request, in place of the tokens in the settings of the gateway.
        origins: Origins of web pages that may access the gateway, in addition to those of this machine.

    Raises:
        ValueError: Other machines can reach it, and it does not authenticate its clients.
    """
    listen = gateway.file.settings.listen
    is_local = listen is None or is_loopback(listen[0])
    authenticator = gateway.tokens if authenticator is None else authenticator
    check_access(is_local=is_local, authenticator=authenticator)
    clients = [*gateway.clients.values(), *([gateway.users] if gateway.users is not None else [])]
    managers = {
        client: StreamableHTTPSessionManager(
            client.service.server,
            max_request_body_size=MAX_BODY_BYTES,
            session_idle_timeout=IDLE_SECONDS,
            max_sessions=MAX_CLIENTS,
        )
        for client in clients
    }
    resource = gateway.protected_resource
    inside = {each: PrincipalCheck(managers[each].handle_request, each.service, resource) for each in clients}

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for each in managers.values():
                await stack.enter_async_context(each.run())
            yield

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        client = gateway.client_of(scope.get(PRINCIPAL))
        if client is None:
            await Response("this token belongs to no client", 403)(scope, receive, send)
        else:
            await inside[client](scope, receive, send)

    def guard(inside: Any, **words: Any) -> RequestGuard:
        return RequestGuard(inside, authenticator=authenticator, origins=origins, is_local=is_local, **words)

    operator = Operator(gateway)
    is_open = Unprotected(RequestGuard(operator.live, is_local=is_local, origins=origins))
    routes = [
        Route(PATH, endpoint=guard(serve, single_headers=SINGLE_HEADERS)),
        Route(HEALTH, endpoint=is_open),
        Route(f"{HEALTH}/servers", endpoint=guard(operator.servers)),
    ]
    if resource is not None:
        routes.append(metadata_route(resource))
    if gateway.metrics is not None:
        routes.append(Route(METRICS, endpoint=guard(operator.metrics)))
    return Starlette(routes=routes, lifespan=lifespan)


class Unprotected:
    """Passes requests on, and leaves their connections first in the order in which the listener closes connections.

    A guard protects the connection of each request that it admits. Requests without a token must not have that, because
    they could fill the listener with protected connections.
    """

    def __init__(self, inside: RequestGuard) -> None:
        self._inside = inside

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to one request."""
        state = {key: each for key, each in scope.get("state", {}).items() if key != CONNECTION}
        await self._inside({**scope, "state": state}, receive, send)


class Operator:
    """What the operator of a gateway can read."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def live(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond that the gateway runs, and whether all servers do; without a token, so without names."""
        is_well = all(each.is_healthy for each in self._gateway.servers.states)
        await JSONResponse({"status": "ok" if is_well else "degraded"})(scope, receive, send)

    async def servers(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond with the state of each server."""
        data = [attrs.asdict(each) for each in self._gateway.servers.states]
        await self._respond(JSONResponse({"servers": data}), scope, receive, send)

    async def metrics(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond with the metrics."""
        from neuroscript.gateway.metrics import CONTENT_TYPE

        assert self._gateway.metrics is not None
        await self._respond(Response(self._gateway.metrics.text(), media_type=CONTENT_TYPE), scope, receive, send)

    async def _respond(self, response: Response, scope: Any, receive: Any, send: Any) -> None:
        """Respond to a client that may monitor; the response contains names of other clients and of servers."""
        client: GatewayClient | None = self._gateway.client_of(scope.get(PRINCIPAL))
        if client is None or not client.table.monitor:
            response = Response("set monitor = true in the table of this client to read this", 403)
        await response(scope, receive, send)
