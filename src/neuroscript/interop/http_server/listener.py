"""The HTTP server of an application behind a guard: limits connections, and sets a deadline for unauthorized ones.

uvicorn waits for the headers of a request without limit, and accepts connections until no descriptor is left. Therefore
a few hundred connections that each send half a header would lock out every client. Here, a connection is *admitted*
while one of its requests has passed the guard of the application, and while its client reads the response. Any other
connection is closed after `HEADER_SECONDS`, or earlier if a new one exceeds the maximum.
"""

from __future__ import annotations

import logging
import socket
from asyncio import AbstractEventLoop, TimerHandle, Transport
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Final

from neuroscript._imports import missing_extra
from neuroscript.interop.http_server import CONNECTION

try:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.server import ServerState
except ImportError as error:
    raise missing_extra("serving over HTTP needs Starlette and uvicorn", "serve", error) from None

HEADER_SECONDS: Final = 10.0
"""Maximum time without an admitted request, in seconds, since the connection opened or its last admitted response."""

STALLED_DEADLINES: Final = 6
"""Maximum number of deadlines while an admitted client reads nothing of its response. The operating system buffers
megabytes of a response before it waits for the client, and reports progress in large steps."""

MAX_CONNECTIONS: Final = 2_000
"""Maximum number of open connections, if enough descriptors are available."""

SPARE_DESCRIPTORS: Final = 64
"""Minimum number of descriptors reserved for tools; with more than 256 descriptors, a quarter of them is reserved."""

ACCEPTS_PER_TURN: Final = 16
"""Number of connections asyncio accepts in one turn of its loop, before the server can count them."""

BACKLOG: Final = 2_048
"""Maximum number of connections in the kernel queue."""

LOG_SECONDS: Final = 60.0
"""Minimum time between two log lines of one kind, in seconds, because any program that can connect can cause them."""


def server(
    application: Any,
    *,
    header_seconds: float = HEADER_SECONDS,
    max_connections: int | None = None,
    certificate: str | None = None,
    key: str | None = None,
) -> uvicorn.Server:
    """Return a server for an application behind a `guard.RequestGuard`.

    ``server(app).run(sockets=[…])`` serves on sockets that are already bound.

    Args:
        header_seconds: Maximum time of a connection without an admitted request, in seconds.
        max_connections: Maximum number of open connections; None derives it from the descriptor limit of the process.
        certificate: A file with the certificate chain in PEM format; with it, only HTTPS is served.
        key: The file of its private key; None means that it is in the same file.
    """
    peers = Peers(connection_limit() if max_connections is None else max_connections)
    config = uvicorn.Config(
        application,
        http=partial(Connection, peers=peers, header_seconds=header_seconds),  # type: ignore[arg-type]
        ws="none",
        loop="asyncio",  # it accepts a bounded number of connections per turn
        backlog=ACCEPTS_PER_TURN,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=1,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    return _Server(config)


def connection_limit() -> int:
    """Return the number of connections that leaves enough descriptors for the rest of the process."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
    except ImportError:  # Windows, where sockets are not descriptors
        return MAX_CONNECTIONS
    soft, _ = getrlimit(RLIMIT_NOFILE)
    if soft == RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(8, min(MAX_CONNECTIONS, soft - max(SPARE_DESCRIPTORS, soft // 4)))


class Peers:
    """The open connections of a server.

    Args:
        limit: Maximum number of connections.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._all: set[Connection] = set()
        self._strangers: dict[Connection, None] = {}
        self._known: dict[Connection, None] = {}

    def add(self, peer: Connection) -> bool:
        """Add a connection; close another one if there are too many, or return False if none may be closed.

        The oldest connection that was never admitted is closed first, then the one that has been idle longest. A
        connection with an admitted request is never closed for a new one.
        """
        if len(self._all) >= self._limit:
            oldest = next(iter(self._strangers or self._known), None)
            if oldest is None:
                return False
            oldest.leave()
        self._all.add(peer)
        self._strangers[peer] = None
        return True

    def admit(self, peer: Connection) -> None:
        """Protect a connection from being closed in favor of a new one."""
        self._strangers.pop(peer, None)
        self._known.pop(peer, None)

    def release(self, peer: Connection) -> None:
        """End the protection of an admitted connection."""
        if peer in self._all:
            self._known[peer] = None

    def discard(self, peer: Connection) -> None:
        """Remove a connection."""
        self._all.discard(peer)
        self.admit(peer)


class Connection(H11Protocol):
    """One connection; it is stored in the state of each of its requests, under `CONNECTION`."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: AbstractEventLoop | None = None,
        *,
        peers: Peers,
        header_seconds: float,
    ) -> None:
        super().__init__(config, server_state, {**app_state, CONNECTION: self}, _loop)
        self._peers = peers
        self._header_seconds = header_seconds
        self._deadline: TimerHandle | None = None
        self._admitted = 0
        self._unread = 0
        self._stalled = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Start, or close the connection at once if there are too many."""
        accepted = transport.get_extra_info("socket")
        if accepted.family in (socket.AF_INET, socket.AF_INET6):  # asyncio omits this for sockets bound by others
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        if self._peers.add(self):
            self._start_deadline()
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the deadline and remove the connection."""
        self._stop_deadline()
        self._peers.discard(self)
        super().connection_lost(exc)

    def admit(self) -> None:
        """Record that a request has passed the guard; from now on, the application limits its time."""
        self._admitted += 1
        self._stop_deadline()
        self._peers.admit(self)

    def release(self) -> None:
        """Record that an admitted request has ended; the next one of this connection may already have started."""
        self._admitted -= 1
        if not self._admitted and not self.transport.is_closing():
            self._peers.release(self)
            self._unread = self.transport.get_write_buffer_size()
            self._stalled = 0
            self._start_deadline()

    def expire(self) -> None:
        """Close the connection, unless an admitted client is still reading its response."""
        unread = self.transport.get_write_buffer_size()
        self._stalled = 0 if unread < self._unread else self._stalled + 1
        if self._unread and unread and self._stalled < STALLED_DEADLINES:
            self._unread = unread
            self._start_deadline()
        else:
            self.leave()

    def leave(self) -> None:
        """Close the connection now, even if the client has not read all of its response."""
        self._stop_deadline()
        self._peers.discard(self)
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def _start_deadline(self) -> None:
        self._deadline = self.loop.call_later(self._header_seconds, self.expire)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Server(uvicorn.Server):
    """A server with a long queue in the kernel and rate-limited logging."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening."""
        self._seldom = RateLimitFilter()
        for name in RateLimitFilter.LOGGERS:
            logging.getLogger(name).addFilter(self._seldom)
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(BACKLOG)  # asyncio uses one number for this queue and for the accepts per turn

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections."""
        await super().shutdown(sockets)
        for name in RateLimitFilter.LOGGERS:
            logging.getLogger(name).removeFilter(self._seldom)


class RateLimitFilter(logging.Filter):
    """Passes one record per `LOG_SECONDS` for each warning, and for connections that cannot be accepted.

    The SDK of MCP logs why it rejects a request state.
    """

    LOGGERS: Final = ("uvicorn.error", "asyncio", "mcp.server.request_state")
    UNACCEPTED: Final = "socket.accept() out of system resource"

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record; add the number of suppressed equal records to its message."""
        text = str(record.msg)
        is_unaccepted = text.startswith(self.UNACCEPTED)
        if not is_unaccepted and (record.name == "asyncio" or record.levelno > logging.WARNING):
            return True
        key = self.UNACCEPTED if is_unaccepted else text
        now = monotonic()
        last, withheld = self._seen.get(key, (-inf, 0))
        is_due = now - last >= LOG_SECONDS
        self._seen[key] = (now, 0) if is_due else (last, withheld + 1)
        if is_unaccepted:
            record.msg, record.exc_info = "cannot accept connections: too many open files", None
        if withheld:
            record.msg = f"{record.msg} ({withheld} more of these since the last line)"
        return is_due
