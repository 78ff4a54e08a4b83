"""When a server may be started again: at once after it has run for a while, otherwise after growing delays."""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import ceil
from time import monotonic
from typing import Final, Literal

from neuroscript.errors import ToolFailed
from neuroscript.interop.mcp.client.connection import closed_by_host_error

FIRST_DELAY_SECONDS: Final = 0.5
"""Delay after the first failure, in seconds; each further failure doubles it."""

MAX_DELAY_SECONDS: Final = 60.0
"""Maximum delay between two starts, in seconds."""

STABLE_SECONDS: Final = 10.0
"""Time that a server must run to count as working, in seconds; its next end causes no delay."""

Status = Literal["idle", "starting", "running", "waiting"]
"""The state of a server: not started yet, being started, running, or waiting for its next start."""


class Restarts:
    """The starts of one server, an `Openings` of its connection.

    Args:
        changed: Called without arguments, in any thread, when the server has started or ended.
        clock: Returns seconds.

    Attributes:
        status: The state of the server.
        starts: The number of starts.
        error: Why the last start failed, or ``""``.
    """

    def __init__(self, changed: Callable[[], object], clock: Callable[[], float] = monotonic) -> None:
        self.status: Status = "idle"
        self.starts = 0
        self.error = ""
        self._changed = changed
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._opened_at: float | None = None
        self._due: float | None = None
        self._end: Callable[[], None] | None = None
        self._is_closed = False

    @property
    def restarts(self) -> int:
        """The number of starts after the first one."""
        return max(0, self.starts - 1)

    @property
    def wait_seconds(self) -> float | None:
        """The seconds until the next start; None if none is due, because the server runs or was never needed."""
        with self._lock:
            return None if self._due is None else max(0.0, self._due - self._clock())

    def begin(self, end: Callable[[], None]) -> None:
        """Record that the server is started now.

        Args:
            end: Ends it permanently, without waiting.

        Raises:
            ToolFailed: ``mcp.restarting``: its last start is too recent. ``mcp.closed``: `end` was called.
        """
        with self._lock:
            if self._is_closed:
                raise closed_by_host_error()
            wait = 0.0 if self._due is None else self._due - self._clock()
            if wait > 0:
                text = f"the server has ended; it is started again in {ceil(wait)} s"
                raise ToolFailed(text, code="mcp.restarting", retry="later")
            self.status, self._due, self._opened_at = "starting", None, None
            self.starts += 1
            self._end = end

    def opened(self) -> None:
        """Record that the server runs."""
        with self._lock:
            self.status, self.error, self._opened_at = "running", "", self._clock()
        self._changed()

    def ended(self, error: ToolFailed | None) -> None:
        """Record that the server has ended, and when it may be started again."""
        with self._lock:
            now = self._clock()
            is_stable = self._opened_at is not None and now - self._opened_at >= STABLE_SECONDS
            self._failures = 0 if is_stable else self._failures + 1
            self.status, self.error = "waiting", "" if error is None else error.text
            self._due = now + _delay(self._failures)
        self._changed()

    def end(self) -> None:
        """End the server permanently, without waiting; also one that is just being started."""
        with self._lock:
            self._is_closed = True
        if self._end is not None:
            self._end()


def _delay(failures: int) -> float:
    """Return the delay after a number of failures in a row, in seconds.

    >>> [_delay(each) for each in (0, 1, 2, 3, 50)]
    [0.0, 0.5, 1.0, 2.0, 60.0]
    """
    return min(MAX_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2 ** (min(failures, 32) - 1)) if failures else 0.0
