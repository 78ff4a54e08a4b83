"""Routes of the console: who may use them, and what each request that changes something must prove."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from neuroscript.console.console import Console
from neuroscript.console.users import Role
from neuroscript.console.visitor import Visitor
from neuroscript.interop.http_server.guard import MAX_BODY_BYTES

VISITOR: Final = "neuroscript.visitor"
"""The key for the `Visitor`, or None, in the scope of a request."""

CSRF_HEADER: Final = "x-csrf-token"
MAX_FIELDS: Final = 20_000
MAX_FILES: Final = 100

Get = Callable[[Request], Awaitable[Response]]
Post = Callable[[Request, FormData], Awaitable[Response]]


def console_of(request: Request) -> Console:
    """Return the console that a request is for."""
    return cast("Console", request.app.state.console)


def visitor_of(request: Request) -> Visitor:
    """Return the browser that sent a request.

    Raises:
        HTTPException: It is not signed in.
    """
    visitor = request.scope.get(VISITOR)
    if visitor is None:
        raise HTTPException(401, "Sign in first.")
    return cast("Visitor", visitor)


def is_part(request: Request) -> bool:
    """Return whether JavaScript requests a part of a page."""
    return request.headers.get("x-requested-with") == "neuroscript"


def get(path: str, handler: Get, name: str, *, role: Role | None = "viewer") -> Route:
    """Return a route that only reads.

    Args:
        name: Its name in templates, such as ``tools.show``.
        role: The role that it needs; None for a page that needs no sign-in.
    """

    async def endpoint(request: Request) -> Response:
        _check_role(request, role)
        return await handler(request)

    return Route(path, endpoint, name=name, methods=["GET"])


def post(path: str, handler: Post, name: str, *, role: Role | None = "operator") -> Route:
    """Return a route that may change something, with a handler that receives the form.

    Args:
        name: Its name in templates, such as ``tools.run``.
        role: The role that it needs; None for a form that needs no sign-in.
    """

    async def endpoint(request: Request) -> Response:
        _check_origin(request)
        _check_size(request)
        visitor = None if role is None else visitor_of(request)
        if visitor is not None and not visitor.bucket.take():
            raise HTTPException(429, "Too many requests; wait a moment.", {"retry-after": "1"})
        async with request.form(max_fields=MAX_FIELDS, max_files=MAX_FILES, max_part_size=MAX_BODY_BYTES) as form:
            if visitor is not None:
                _check_csrf(request, form, visitor)
            _check_role(request, role)
            return await handler(request, form)

    return Route(path, endpoint, name=name, methods=["POST"])


def _check_role(request: Request, role: Role | None) -> None:
    if role is not None and not visitor_of(request).user.may(role):
        raise HTTPException(403, f"This needs the role {role}; yours is {visitor_of(request).user.role}.")


def _check_origin(request: Request) -> None:
    """Check that a page of this console sends the form, even if the browser sends cookies for another reason.

    Pages of other ports of this machine are the same site for a browser, so it sends them our cookie.
    """
    headers = request.headers
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    scheme, _, host = (origin or "").partition("://")
    is_own = scheme in (request.url.scheme, "https") and host == headers.get("host")  # a proxy may add the encryption
    if not is_own or site not in (None, "same-origin"):
        raise HTTPException(403, "Forms are accepted only from pages of this console.")


def _check_size(request: Request) -> None:
    """Check the size that a request states; the body that arrives is limited as well."""
    length = request.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and (len(length) > 12 or int(length) > MAX_BODY_BYTES):
        raise HTTPException(413, f"The form is too large; the maximum is {MAX_BODY_BYTES:,} bytes.")


def _check_csrf(request: Request, form: FormData, visitor: Visitor) -> None:
    sent: Any = request.headers.get(CSRF_HEADER) or form.get("csrf")
    token = sent if isinstance(sent, str) else ""
    if not hmac.compare_digest(token.encode(), visitor.csrf.encode()):
        raise HTTPException(
            403, "The form is too old or does not come from this browser. Reload the page and try again."
        )
