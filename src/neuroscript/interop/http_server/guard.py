"""The guard in front of an HTTP service: checks which requests may reach it, and detects disconnected clients.

See MCP 2025-11-25 and 2026-07-28, "Transports", security warning, and RFC 6750.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import Any, Final

from neuroscript._imports import missing_extra
from neuroscript.coercion.context import type_name
from neuroscript.interop.http_server import CLIENT_GONE, CONNECTION, PRINCIPAL
from neuroscript.interop.http_server.addresses import host_of, is_loopback
from neuroscript.interop.http_server.principals import Authenticator, Principal, Refusal

try:
    from starlette.datastructures import Headers
    from starlette.responses import Response
except ImportError as error:
    raise missing_extra("serving over HTTP needs Starlette and uvicorn", "serve", error) from None

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of a request body, in bytes."""

BODY_TIMEOUT_SECONDS: Final = 30.0
"""Timeout for receiving a whole request body, in seconds."""


POLICY_VIOLATION: Final = 1008
"""The code with which a WebSocket is closed; a server that has not accepted it responds with status 403."""

LOGGER: Final = logging.getLogger("neuroscript.http")

LOG_SECONDS: Final = 60.0
"""Minimum time between two log lines about the authenticator, in seconds, because every client can cause them."""

FAILED: Final = Refusal(500, "the server could not authenticate the client")
"""The response to a request if the authenticator fails."""

Respond = Callable[[str, int, Mapping[str, str] | None], Response]


def check_access(*, is_local: bool, authenticator: Authenticator | None) -> None:
    """Check that a service that other machines can reach authenticates its clients.

    Raises:
        ValueError: It does not.
    """
    if not (is_local or authenticator is not None):
        raise ValueError("a server that other machines can reach needs a token")


class RequestGuard:
    """An ASGI application that passes only authorized requests to another one.

    It stores an `asyncio.Event` in the scope of each request under `CLIENT_GONE`, which is set when the client
    disconnects, and the `Principal` of its sender under `PRINCIPAL`. It closes WebSockets, and answers the lifespan of
    the server, which the other application does not see.

    Args:
        inside: The application that answers authorized requests.
        authenticator: Finds out who sent a request; None accepts every sender.
        origins: Origins of web pages that may access the service, in addition to those of this machine.
        is_local: Whether only this machine may access the service; requests must then name a local host.
        accepts_own_pages: Whether pages of the host that a request names may access the service, which serves pages.
        slowest: Timeout for receiving a whole request body, in seconds.
        single_headers: Headers that may occur only once, in lower case, and what to respond otherwise.
        respond: Returns the response to a request that is refused, from its text, status and headers.
    """

    def __init__(
        self,
        inside: Callable[[Any, Any, Any], Any],
        *,
        authenticator: Authenticator | None = None,
        origins: Iterable[str] = (),
        is_local: bool = True,
        accepts_own_pages: bool = False,
        slowest: float = BODY_TIMEOUT_SECONDS,
        single_headers: Mapping[str, str] | None = None,
        respond: Respond = Response,
    ) -> None:
        self._inside = inside
        self._authenticator = authenticator
        self._origins = frozenset(origins)
        self._is_local = is_local
        self._accepts_own_pages = accepts_own_pages
        self._slowest = slowest
        self._single_headers = single_headers or {}
        self._respond = respond
        self._next_log = 0.0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to one request, close a WebSocket, or answer a lifespan.

        Raises:
            ValueError: The protocol of the scope is another one, as ASGI specifies.
        """
        match scope["type"]:
            case "http":
                await self._respond_to(scope, receive, send)
            case "websocket":
                await receive()
                await send({"type": "websocket.close", "code": POLICY_VIOLATION})
            case "lifespan":
                await _answer_lifespan(receive, send)
            case _:
                raise ValueError("expected the protocol http, websocket or lifespan")

    async def _respond_to(self, scope: Any, receive: Any, send: Any) -> None:
        refusal = await self._refusal(scope)
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
            await self._respond("the body did not arrive in time", 408, {"connection": "close"})(scope, receive, send)

    async def _refusal(self, scope: Any) -> Response | None:
        """Return the response to an invalid request, or None; every occurrence of a repeated header must be valid."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if self._is_local and not (hosts and all(is_loopback(host_of(each)) for each in hosts)):
            return self._respond("this server only accepts requests from its own machine", 421, None)
        if not all(self._is_origin(each, hosts) for each in headers.getlist("origin")):
            return self._respond("pages of this origin may not access this server", 403, None)
        if self._authenticator is not None:
            sender = await self._sender(self._authenticator, headers.getlist("authorization"))
            if isinstance(sender, Refusal):
                return self._respond(sender.text, sender.status, sender.headers)
            scope[PRINCIPAL] = sender
        repeated = [text for name, text in self._single_headers.items() if len(headers.getlist(name)) > 1]
        return self._respond(repeated[0], 400, None) if repeated else None

    async def _sender(self, authenticator: Authenticator, authorization: list[str]) -> Principal | Refusal:
        """Return who sent a request, or the response that refuses it, also if the authenticator fails."""
        try:
            found = await authenticator.authenticate(authorization)
        except Exception as error:  # its text may contain the credentials
            reason = type_name(error)
        else:
            if isinstance(found, (Principal, Refusal)):
                return found
            reason = f"it returned {type_name(found)}"
        now = monotonic()
        if now >= self._next_log:
            self._next_log = now + LOG_SECONDS
            LOGGER.error("requests are refused, because the authenticator failed (%s)", reason)
        return FAILED

    def _is_origin(self, origin: str, hosts: list[str]) -> bool:
        scheme, _, host = origin.partition("://")
        if origin in self._origins:
            return True
        is_own = self._accepts_own_pages and [host] == hosts
        return scheme in ("http", "https") and (is_own or is_loopback(host_of(host)))


async def _answer_lifespan(receive: Any, send: Any) -> None:
    """Report that startup and shutdown are complete, because there is nothing to do."""
    while True:
        event = (await receive())["type"]
        await send({"type": f"{event}.complete"})
        if event == "lifespan.shutdown":
            return
