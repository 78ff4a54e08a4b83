"""Approval in a browser: requests wait in an inbox until one of several users answers.

The first answer to a request counts. A request ends without an answer if it expires, or if its call can no longer run.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Final, Literal

import attrs

from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.coercion.parameters import COUNT, FUNCTION, SECONDS, STRING, instance, optional, require
from neuroscript.errors import SpecError

DEFAULT_TIMEOUT_SECONDS: Final = 3600.0
"""Seconds that a request waits by default."""

DEFAULT_MAX_REQUESTS: Final = 100
"""Maximum number of requests that wait at once by default."""

MAX_ENDED: Final = 200
"""Maximum number of ended requests that an inbox remembers."""

LOGGER: Final = logging.getLogger("neuroscript.console")
REQUEST: Final = instance(ApprovalRequest)
APPROVAL: Final = instance(Approval)

Outcome = Literal["approved", "approved_for_session", "modified", "rejected", "stopped", "expired", "withdrawn"]


@attrs.frozen
class WaitingRequest:
    """A request that waits for an answer.

    Attributes:
        id: A random id that cannot be guessed.
        request: The request.
        created: When it was made, in seconds since 1970-01-01 UTC.
        expires: When it expires, or None.
    """

    id: str
    request: ApprovalRequest = attrs.field(repr=False)
    created: float
    expires: float | None = None


@attrs.frozen
class EndedRequest:
    """What happened to a request. It contains no arguments.

    Attributes:
        id: The id of the request.
        tool: The canonical name of its tool.
        session: The id of its session.
        digest: The digest of its call.
        created: When it was made, in seconds since 1970-01-01 UTC.
        ended: When it ended.
        outcome: What ended it.
        by: The user who answered, or ``""``.
        reason: The reason in the answer, or why the request ended without one.
        is_unused: Whether the call ended before the answer reached it.
    """

    id: str
    tool: str
    session: str
    digest: str
    created: float
    ended: float
    outcome: Outcome
    by: str = ""
    reason: str = ""
    is_unused: bool = False


@attrs.frozen
class Receipt:
    """What became of an answer.

    Attributes:
        status: ``counted`` if the answer decided the request; ``ended`` if the request had ended before; ``changed`` if
            the digest is not the digest of the request; ``unknown`` if the inbox does not know the request.
        ended: How the request ended, if it has.
    """

    status: Literal["counted", "ended", "changed", "unknown"]
    ended: EndedRequest | None = None


Change = WaitingRequest | EndedRequest
"""A request that was added, or one that has ended."""


@attrs.frozen(eq=False)
class _Seat:
    """A waiting request, and the future that its call waits for."""

    waiting: WaitingRequest
    loop: asyncio.AbstractEventLoop
    answered: asyncio.Future[Approval]

    def send(self, approval: Approval) -> bool:
        """Send the answer to the call from any thread, and return whether its event loop still runs."""
        try:
            self.loop.call_soon_threadsafe(self._set, approval)
        except RuntimeError:
            return False
        return True

    def _set(self, approval: Approval) -> None:
        if not self.answered.done():
            self.answered.set_result(approval)


class Inbox:
    """An approver whose requests wait until a user answers; use it as ``ExecutionPolicy(approver=inbox)``.

    Calls from any thread or event loop may wait at the same time. Requests beyond *max_requests* are rejected.

    Args:
        timeout_seconds: Seconds that a request waits before it is rejected; None means without limit.
        max_requests: Maximum number of requests that wait at once.
    """

    def __init__(
        self, *, timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS, max_requests: int = DEFAULT_MAX_REQUESTS
    ) -> None:
        parts = {"timeout_seconds": (timeout_seconds, optional(SECONDS)), "max_requests": (max_requests, COUNT)}
        require("Inbox", **parts)
        self.timeout_seconds = timeout_seconds
        self.max_requests = max_requests
        self._lock = Lock()
        self._seats: dict[str, _Seat] = {}
        self._ended: dict[str, EndedRequest] = {}
        self._listeners: dict[object, Callable[[Change], object]] = {}
        self._changes: deque[Change] = deque()
        self._is_notifying = False

    async def __call__(self, request: ApprovalRequest) -> Approval:
        """Return the first answer to a request, or a rejection with the reason if there is none."""
        require("Inbox", request=(request, REQUEST))
        seat = self._add(request)
        if seat is None:
            return Approval.reject(f"{self.max_requests} requests wait for an approval already; try again later")
        id = seat.waiting.id
        self._notify()
        try:
            await asyncio.wait({seat.answered}, timeout=self.timeout_seconds)
        except asyncio.CancelledError:
            self._withdraw(id, "the call ended before an answer")
            raise
        reason = f"no user answered within {self.timeout_seconds or 0:g} s"
        if not seat.answered.done() and self._end(id, "expired", reason=reason):
            return Approval.reject(reason)
        return await seat.answered  # an answer counted just now, and is on its way

    # Answers

    def answer(self, id: str, approval: Approval, *, digest: str, by: str = "") -> Receipt:
        """Answer a request; only the first answer counts. Any thread may call this.

        Args:
            approval: The answer: to approve, for the session too, to modify, to reject, or to stop the session.
            digest: The digest of the request that the user has seen.
            by: The name of the user, for the others.

        Raises:
            SpecError: A parameter has the wrong type, the answer suspends the call, or it approves a call with flows
                for the whole session.
        """
        require("answer", id=(id, STRING), approval=(approval, APPROVAL), digest=(digest, STRING), by=(by, STRING))
        if approval.verdict == "suspend":
            raise SpecError("answer", ["a request in an inbox cannot be suspended"])
        with self._lock:
            seat = self._seats.get(id)
            if seat is None:
                ended = self._ended.get(id)
                return Receipt("unknown" if ended is None else "ended", ended)
            if seat.waiting.request.digest != digest:
                return Receipt("changed")
            if approval.for_session and seat.waiting.request.flows:
                raise SpecError("answer", ["a call with information flows can only be approved once"])
            ended = self._remove(id, outcome_of(approval), by, approval.reason)
        if not seat.send(approval):
            self._withdraw(id, "the call ended before the answer")
        self._notify()
        return Receipt("counted", ended)

    # What waits, and what has ended

    @property
    def waiting(self) -> tuple[WaitingRequest, ...]:
        """The requests that wait, newest first."""
        with self._lock:
            return tuple(seat.waiting for seat in reversed(self._seats.values()))

    @property
    def ended(self) -> tuple[EndedRequest, ...]:
        """The requests that have ended, the last one first; only the last ones are remembered."""
        with self._lock:
            return tuple(reversed(self._ended.values()))

    def find(self, id: str) -> Change | None:
        """Return the request with an id, waiting or ended, or None."""
        with self._lock:
            seat = self._seats.get(id)
            return self._ended.get(id) if seat is None else seat.waiting

    def __len__(self) -> int:
        """Return the number of requests that wait."""
        return len(self._seats)

    def __bool__(self) -> bool:
        """Return True: an empty inbox is an inbox."""
        return True

    def subscribe(self, listener: Callable[[Change], object]) -> Callable[[], None]:
        """Call a function with each request that is added and each one that ends, and return how to stop that.

        The changes come in order, but on any thread. The function must not block. Its exceptions are logged.
        """
        require("subscribe", listener=(listener, FUNCTION))
        key = object()
        with self._lock:
            self._listeners[key] = listener

        def unsubscribe() -> None:
            with self._lock:
                self._listeners.pop(key, None)

        return unsubscribe

    # Changes

    def _add(self, request: ApprovalRequest) -> _Seat | None:
        """Add a request, or return None if too many wait."""
        loop = asyncio.get_running_loop()
        now = time.time()
        expires = None if self.timeout_seconds is None else now + self.timeout_seconds
        waiting = WaitingRequest(os.urandom(16).hex(), request, now, expires)
        seat = _Seat(waiting, loop, loop.create_future())
        with self._lock:
            if len(self._seats) >= self.max_requests:
                return None
            self._seats[waiting.id] = seat
            self._changes.append(waiting)
        return seat

    def _end(self, id: str, outcome: Outcome, *, reason: str) -> bool:
        """End a request without an answer, and return whether it was waiting."""
        with self._lock:
            was_waiting = id in self._seats
            if was_waiting:
                self._remove(id, outcome, "", reason)
        self._notify()
        return was_waiting

    def _withdraw(self, id: str, reason: str) -> None:
        """End a request whose call has ended; an answer that has counted was not used then."""
        if self._end(id, "withdrawn", reason=reason):
            return
        with self._lock:
            ended = self._ended.get(id)
            if ended is not None:
                self._ended[id] = attrs.evolve(ended, is_unused=True)
                self._changes.append(self._ended[id])
        self._notify()

    def _remove(self, id: str, outcome: Outcome, by: str, reason: str) -> EndedRequest:
        """Move a request to those that have ended; the lock is held."""
        waiting = self._seats.pop(id).waiting
        asked = waiting.request
        ended = EndedRequest(
            id, asked.tool, asked.session, asked.digest, waiting.created, time.time(), outcome, by, reason
        )
        self._ended[id] = ended
        if len(self._ended) > MAX_ENDED:
            del self._ended[next(iter(self._ended))]
        self._changes.append(ended)
        return ended

    def _notify(self) -> None:
        """Pass the changes to the listeners in order, without the lock; one thread does this at a time."""
        with self._lock:
            if self._is_notifying:
                return
            self._is_notifying = True
        try:
            while (change := self._next_change()) is not None:
                for listener in tuple(self._listeners.values()):
                    try:
                        listener(change)
                    except Exception:
                        LOGGER.exception("a listener of the inbox failed")
        except BaseException:  # an interrupt; another thread continues with the next change
            self._is_notifying = False
            raise

    def _next_change(self) -> Change | None:
        """Return the next change, or stop notifying and return None."""
        with self._lock:
            if self._changes:
                return self._changes.popleft()
            self._is_notifying = False
            return None


def outcome_of(approval: Approval) -> Outcome:
    """Return what an answer makes of its request."""
    match approval.verdict:
        case "approve":
            return "approved_for_session" if approval.for_session else "approved"
        case "modify":
            return "modified"
        case "stop":
            return "stopped"
        case _:
            return "rejected"
