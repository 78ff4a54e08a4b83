"""Who may use the console: one-time links, tokens of users, the cookie of a browser, and headers that protect pages."""

from __future__ import annotations

import hmac
import logging
from traceback import format_tb
from typing import Any, Final

from starlette.datastructures import FormData, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from neuroscript.coercion.context import type_name
from neuroscript.console.console import LINK_SECONDS, Console
from neuroscript.console.rendering import message, page, path_for, redirect
from neuroscript.console.routing import VISITOR, console_of, get, post, visitor_of
from neuroscript.console.users import User
from neuroscript.console.visitor import Visitor
from neuroscript.interop.http_server import CONNECTION
from neuroscript.interop.http_server.guard import MAX_BODY_BYTES

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy: nothing of other origins, no inline script or style, and no frames."""

HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "no-store",
}
"""Headers of each response that does not set them itself."""

STORED: Final = "private, max-age=31536000, immutable"
"""How long a browser stores a static file whose address contains its version."""

LOGGER: Final = logging.getLogger("neuroscript.console")

THEMES: Final = ("", "light", "dark")


class BrowserAccess:
    """An ASGI application that finds the browser of each request by its cookie, and protects each response.

    Args:
        inside: Answers requests.
    """

    def __init__(self, console: Console, inside: Any) -> None:
        self._console = console
        self._inside = inside

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inside(scope, receive, send)
            return
        visitor, cookie = self._visitor(scope)
        scope = {**scope, VISITOR: visitor}
        is_versioned = _is_static(scope) and scope["query_string"]
        received = 0
        is_started = False

        async def limited() -> Any:
            nonlocal received
            event = await receive()
            received += len(event.get("body", b""))
            if received > MAX_BODY_BYTES:
                raise HTTPException(413, f"The form is too large; the maximum is {MAX_BODY_BYTES:,} bytes.")
            return event

        async def protected(event: Any) -> None:
            nonlocal is_started
            if event["type"] == "http.response.start":
                is_started = True
                headers = MutableHeaders(scope=event)
                if event["status"] == 200 and is_versioned:
                    headers["cache-control"] = STORED
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if cookie:
                    headers.append("set-cookie", _cookie_header(scope, cookie))
            await send(event)

        if visitor is None:  # its connection gives way to those of browsers that are signed in
            scope["state"] = {key: each for key, each in scope.get("state", {}).items() if key != CONNECTION}
        try:
            await self._inside(scope, limited, protected)
        except Exception as error:
            log_failure("a page failed", error)
            if not is_started:
                await Response("internal error", 500)(scope, receive, protected)

    def _visitor(self, scope: Any) -> tuple[Visitor | None, str]:
        """Return the browser that sent a request, and the value of its cookie if it is new."""
        connection = HTTPConnection(scope)
        cookie = connection.cookies.get(cookie_name(scope))
        visitor = None if not cookie else self._console.visitors.find(cookie)
        authenticate = self._console.settings.authenticate
        if authenticate is None:
            return visitor, ""
        if _is_static(scope):  # everybody may read these files, so a host need not authenticate their readers
            return None, ""
        try:
            user = authenticate(connection)
        except Exception as error:
            log_failure("the console could not authenticate a browser", error)
            return None, ""
        if visitor is not None and visitor.user != user:  # the host has signed the user out, or changed the role
            self._console.visitors.remove(visitor)
            visitor = None
        if user is None or visitor is not None:
            return visitor, ""
        return self._console.sign_in(user)


def _is_static(scope: Any) -> bool:
    return bool(scope["path"].startswith(f"{scope.get('root_path', '')}/static/"))


def log_failure(what: str, error: Exception) -> None:
    """Log where an exception was raised, without its text, which may contain a value that a browser has sent."""
    LOGGER.error("%s (%s)\n%s", what, type_name(error), "".join(format_tb(error.__traceback__)).rstrip())


def cookie_name(scope: Any) -> str:
    """Return the name of the cookie, with the port, because a browser sends cookies to all ports of an address."""
    port = (scope.get("server") or ("", 0))[1]
    prefix = "__Host-" if scope["scheme"] == "https" else ""
    mount = "".join(each if each.isalnum() else "-" for each in scope.get("root_path", "").strip("/"))
    return f"{prefix}neuroscript-{port}{'-' if mount else ''}{mount}"


def set_cookie(request: Request, response: Response, cookie: str) -> None:
    """Add the cookie of a browser to a response."""
    response.headers.append("set-cookie", _cookie_header(request.scope, cookie))


def _cookie_header(scope: Any, cookie: str) -> str:
    secure = "; Secure" if scope["scheme"] == "https" else ""
    return f"{cookie_name(scope)}={cookie}; Path=/; HttpOnly; SameSite=Strict{secure}"


async def enter(request: Request) -> Response:
    """Sign a browser in with the token of a link, and respond with a page.

    The page is not a redirect, because a browser that comes from another site would not send a strict cookie with it.
    What the page loads and leads to does not receive its address, which contains the token.
    """
    response = _entered(request)
    response.headers["referrer-policy"] = "no-referrer"
    return response


def _entered(request: Request) -> Response:
    if request.method == "HEAD" or "prefetch" in request.headers.get("sec-purpose", ""):
        return Response(status_code=204)
    console = console_of(request)
    # There is no limit: the token is too long to be guessed, and any web page could use up the attempts of its user
    user = console.use_link(request.query_params.get("token", ""))
    if user is None:
        if request.scope.get(VISITOR) is None:
            text = "This link was used already, or has expired. Create another link in a browser that is signed in,"
            return message(request, 403, "The link is no longer valid", f"{text} or start the console again.")
        return page(request, "access/entered.html")
    return _signed_in(request, user, "access/entered.html")


def _signed_in(request: Request, user: User, template: str) -> Response:
    old = request.scope.get(VISITOR)
    if old is not None and old.user == user:  # its session and what it runs remain
        return page(request, template)
    if old is not None:
        console_of(request).visitors.remove(old)
    visitor, cookie = console_of(request).sign_in(user)
    request.scope[VISITOR] = visitor
    response = page(request, template)
    set_cookie(request, response, cookie)
    return response


async def sign_in_page(request: Request) -> Response:
    """Return the form for a token."""
    return _sign_in_page(request, 200)


def _sign_in_page(request: Request, status: int, error: str = "") -> Response:
    has_tokens = any(each.token for each in console_of(request).settings.users)
    return page(request, "access/sign_in.html", status, has_tokens=has_tokens, error=error)


async def sign_in(request: Request, form: FormData) -> Response:
    """Sign a browser in with the token of a user."""
    console = console_of(request)
    if not console.failures.has(_peer(request)):
        return _too_many(request)
    user = _user_of(console, str(form.get("token", "")).strip())
    if user is None:
        console.failures.take(_peer(request))
        return _sign_in_page(request, 403, "This token is not valid.")
    return _signed_in(request, user, "access/entered.html")


def _user_of(console: Console, token: str) -> User | None:
    """Return the user of a token; the time depends on the number of users alone."""
    found: User | None = None
    for user in console.settings.users:
        if user.token and hmac.compare_digest(token.encode(), user.token.encode()):
            found = user
    return found


def _too_many(request: Request) -> Response:
    text = "There were too many attempts to sign in from this address. Try again in a minute."
    return message(request, 429, "Too many attempts", text, {"retry-after": "60"})


def _peer(request: Request) -> str:
    return request.client.host if request.client else ""


async def sign_out(request: Request, form: FormData) -> Response:
    """Sign this browser out, and cancel what it runs."""
    console_of(request).visitors.remove(visitor_of(request))
    request.scope[VISITOR] = None
    response = message(request, 200, "You are signed out", "To sign in again, use your token or a new link.")
    response.delete_cookie(cookie_name(request.scope), path="/", httponly=True, samesite="strict")
    return response


async def create_link(request: Request, form: FormData) -> Response:
    """Return a page with a link for another browser of the same user."""
    user = visitor_of(request).user
    token = console_of(request).create_link_token(user, seconds=LINK_SECONDS)
    return page(request, "access/link.html", link=enter_url(request, token), minutes=int(LINK_SECONDS / 60))


def enter_url(request: Request, token: str) -> str:
    """Return the address of a one-time link."""
    return f"{request.url.scheme}://{request.headers['host']}{path_for(request, 'access.enter', token=token)}"


async def set_theme(request: Request, form: FormData) -> Response:
    """Store the theme of this browser, and show the page again that it came from."""
    theme = str(form.get("theme", ""))
    visitor_of(request).theme = theme if theme in THEMES else ""
    return redirect(request, "home")


async def who(request: Request) -> Response:
    """Return the page about this browser: its user, its role, and its other settings."""
    return page(request, "access/who.html", visitor=visitor_of(request))


ROUTES: Final = (
    get("/enter", enter, "access.enter", role=None),
    get("/sign-in", sign_in_page, "access.sign_in", role=None),
    post("/sign-in", sign_in, "access.sign_in_action", role=None),
    post("/sign-out", sign_out, "access.sign_out", role="viewer"),
    get("/browser", who, "access.who"),
    post("/link", create_link, "access.link", role="viewer"),
    post("/theme", set_theme, "access.theme", role="viewer"),
)
