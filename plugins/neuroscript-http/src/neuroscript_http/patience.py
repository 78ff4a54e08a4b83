"""How long one request is waited for, whatever part of it takes the time."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final, TypeVar

import attrs

from neuroscript import Runtime
from neuroscript_http.faults import fault

T = TypeVar("T")

SLICE: Final = 0.1
"""Seconds of waiting after which is looked whether anybody still waits for the result."""

CONNECTING: Final = 10.0
"""Seconds for one address."""

SILENCE: Final = 20.0
"""Seconds without a byte."""


@attrs.frozen(eq=False)
class Patience:
    """When a request is given up.

    Attributes:
        rt: Says whether anybody still waits for the call.
        until: The end, on the clock of `time.monotonic`.
        seconds: How many that were at the beginning.
    """

    rt: Runtime
    until: float
    seconds: float

    @classmethod
    def of(cls, rt: Runtime, seconds: float) -> Patience:
        """Return the patience of *seconds* from now, or of the call itself where that is less."""
        end = monotonic() + seconds
        return cls(rt, end if rt.deadline is None else min(end, rt.deadline), seconds)

    def left(self, most: float = SLICE) -> float:
        """Return for how many seconds may be waited at once, at most *most*.

        Raises:
            ToolFailed: ``http.timeout``, ``http.cancelled``.
        """
        if self.rt.cancelled:
            raise fault("cancelled", "the request was given up, for nobody waits for it any more")
        left = self.until - monotonic()
        if left <= 0:
            raise fault("timeout", f"there was no whole answer within {self.seconds:g} seconds")
        return min(left, most)

    def waited(self, attempt: Callable[[float], T]) -> T:
        """Return what *attempt* returns, which is tried for a slice of time again and again.

        Args:
            attempt: Takes seconds, and raises TimeoutError where they were not enough.

        Raises:
            ToolFailed: ``http.timeout``, after all that time or after `SILENCE`; ``http.cancelled``.
        """
        silent = monotonic() + SILENCE
        while True:
            try:
                return attempt(self.left())
            except TimeoutError:
                if monotonic() >= silent:
                    raise fault("timeout", f"nothing came for {SILENCE:g} seconds") from None
