"""The timeout of one request, across all of its parts."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final, TypeVar

import attrs

from neuroscript import Runtime
from neuroscript_http.faults import fault

T = TypeVar("T")

SLICE: Final = 0.1
"""Seconds between two checks for cancellation."""

CONNECT_TIMEOUT_SECONDS: Final = 10.0
"""Seconds to connect to one address."""

IDLE_TIMEOUT_SECONDS: Final = 20.0
"""Seconds without receiving a byte."""


@attrs.frozen(eq=False)
class RequestTimeout:
    """The time limit of a request.

    Attributes:
        rt: Tells whether the call was cancelled.
        until: The end, on the `time.monotonic` clock.
        seconds: The initial timeout.
    """

    rt: Runtime
    until: float
    seconds: float

    @classmethod
    def of(cls, rt: Runtime, seconds: float) -> RequestTimeout:
        """Return a time limit of *seconds* from now, or the deadline of the call if that is earlier."""
        end = monotonic() + seconds
        return cls(rt, end if rt.deadline is None else min(end, rt.deadline), seconds)

    def left(self, limit: float = SLICE) -> float:
        """Return how many seconds to wait at once, at most *limit*.

        Raises:
            ToolFailed: ``http.timeout``, ``http.cancelled``.
        """
        if self.rt.cancelled:
            raise fault("cancelled", "the request was stopped because the call was cancelled")
        left = self.until - monotonic()
        if left <= 0:
            raise fault("timeout", f"the response was not complete within {self.seconds:g} seconds")
        return min(left, limit)

    def waited(self, attempt: Callable[[float], T]) -> T:
        """Return the result of *attempt*, which is called repeatedly for a slice of time each.

        Args:
            attempt: Takes a timeout in seconds, and raises TimeoutError when it expires.

        Raises:
            ToolFailed: ``http.timeout``, after the time limit or `IDLE_TIMEOUT_SECONDS` of silence; ``http.cancelled``.
        """
        silent = monotonic() + IDLE_TIMEOUT_SECONDS
        while True:
            try:
                return attempt(self.left())
            except TimeoutError:
                if monotonic() >= silent:
                    raise fault("timeout", f"no data was received for {IDLE_TIMEOUT_SECONDS:g} seconds") from None
