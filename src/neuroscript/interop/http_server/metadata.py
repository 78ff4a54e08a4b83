"""The endpoint with the metadata of a service whose clients need access tokens.

See RFC 9728.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from neuroscript._imports import missing_extra
from neuroscript.interop.http_server.protected_resource import ProtectedResource

try:
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
except ImportError as error:
    raise missing_extra("serving over HTTP needs Starlette and uvicorn", "serve", error) from None


ASGIApplication = Callable[[Any, Any, Any], Awaitable[None]]
"""An ASGI application: it takes a scope, and the functions that receive and send messages."""


def with_metadata(inside: ASGIApplication, resource: ProtectedResource | None) -> ASGIApplication:
    """Return an application that serves the metadata, and passes all other requests to *inside*.

    Args:
        inside: An application behind a guard.
        resource: What clients learn about authorization, or None if they need no access tokens.
    """
    if resource is None:
        return inside
    route = metadata_route(resource)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == resource.path:
            await route.handle(scope, receive, send)
        else:
            await inside(scope, receive, send)

    return application


def metadata_route(resource: ProtectedResource) -> Route:
    """Return the route of the metadata, which every client and every page may read."""

    async def metadata(request: Any) -> Response:
        headers = {"access-control-allow-origin": "*", "cache-control": "max-age=300"}
        if request.method == "OPTIONS":  # browsers ask before they send the protocol version
            return Response(
                status_code=204, headers={**headers, "access-control-allow-headers": "mcp-protocol-version"}
            )
        return JSONResponse(resource.metadata, headers=headers)

    return Route(resource.path, endpoint=metadata, methods=["GET", "OPTIONS"])
