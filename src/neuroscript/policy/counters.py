"""What is counted against one limit each: a sum, the calls in a stretch of time, the same call in a row.

None of them locks anything: they are looked at and changed under the lock of their ledger.

Source: contract section 5; reliability.md part 4.4.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from decimal import Decimal
from math import ceil, isfinite
from typing import Final

import attrs

from neuroscript.errors import LimitError, Retry
from neuroscript.policy.limits import Rate

Amount = int | Decimal

SLACK: Final = 1.0
"""Seconds by which a clock may be behind the last call: it is read before the lock is held, by many at a time."""


@attrs.define(eq=False, repr=False)
class Counter:
    """A sum that must not pass a limit.

    Attributes:
        most: The limit.
        noun: What is counted, as the refusal says it.
        code: Of the refusal.
        retry: Who can make a refused call succeed.
        used: The sum, exact; above the limit only where more happened than was reserved.
    """

    most: Amount
    noun: str
    code: str
    retry: Retry = "host"
    used: Amount = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.used = type(self.most)(0)

    def refusal(self, tool: str) -> LimitError:
        """Return what is raised where the limit would be passed."""
        text = f"no more than {written(self.most)} {self.noun}"
        return LimitError(text, tool=tool, code=self.code, retry=self.retry)


def written(most: Amount) -> str:
    """Return a limit as digits, without an exponent."""
    return f"{most:f}" if type(most) is Decimal else str(most)


class Window:
    """The moments of the last calls, as many as there may be in a stretch of time; exact, whenever that begins.

    Args:
        rate: So many calls in so many seconds.
        clock: The host's, in seconds.
    """

    def __init__(self, rate: Rate, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._moments: deque[float] = deque(maxlen=rate.calls)

    def moment(self, tool: str) -> float:
        """Return what the clock says; it is the host's code, so no lock may be held.

        Raises:
            LimitError: ``limit.clock``, where that is no time.
        """
        now = _told_by(self._clock)
        if now is None:
            text = "the host's clock tells no time, and how often this tool may be called is counted by it"
            raise LimitError(text, tool=tool, code="limit.clock")
        return now

    def refusal(self, tool: str, now: float) -> LimitError | None:
        """Return why there can be no call at that moment, or None."""
        moments, rate = self._moments, self._rate
        if moments and now < moments[-1] - SLACK:
            text = "the host's clock went back, and how often this tool may be called is counted by it"
            return LimitError(text, tool=tool, code="limit.clock", retry="later")
        if len(moments) < rate.calls or now - moments[0] >= rate.seconds:
            return None
        wait = max(1, ceil(moments[0] + rate.seconds - now))
        text = (
            f"no more than {rate.calls} calls in {_seconds(rate.seconds)} are permitted; try again in {_seconds(wait)}"
        )
        return LimitError(text, tool=tool, code="limit.rate", retry="later")

    def take(self, now: float) -> float:
        """Count a call, and return the moment that it counts at; the oldest one that is no longer needed goes."""
        if self._moments:
            now = max(now, self._moments[-1])
        self._moments.append(now)
        return now

    def give_back(self, moment: float) -> None:
        """Count a call no longer that was counted at *moment*."""
        if moment in self._moments:
            self._moments.remove(moment)


def _seconds(count: int) -> str:
    return f"{count} second{'s' * (count != 1)}"


def _told_by(clock: Callable[[], float]) -> float | None:
    try:
        told = clock()
        now = float(told) if isinstance(told, (int, float)) and not isinstance(told, bool) else None
    except Exception:
        return None
    return now if now is not None and isfinite(now) else None


class Row:
    """How often the very same call was made in a row.

    Args:
        most: How often it may be.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: tuple[str, bytes] | None = None
        self._count = 0
        self._before: tuple[tuple[str, bytes] | None, int] = (None, 0)

    def refusal(self, tool: str, digest: bytes | None) -> LimitError | None:
        """Return why this call can not be made once more, or None; one without a digest is like no other."""
        if digest is None or self._last != (tool, digest) or self._count < self._most:
            return None
        text = f"the very same call was made {self._count} times in a row; give other arguments, or do something else"
        return LimitError(text, tool=tool, code="limit.repeats", retry="model")

    def take(self, tool: str, digest: bytes | None) -> None:
        """Count a call."""
        call = None if digest is None else (tool, digest)
        if call is None or call != self._last:
            self._before = (self._last, self._count)
            self._last, self._count = call, 0
        self._count += 1

    def give_back(self, tool: str, digest: bytes | None) -> None:
        """Count a call no longer; if it broke a row, that goes on, unless others were made meanwhile."""
        if self._last != (None if digest is None else (tool, digest)) or not self._count:
            return
        self._count -= 1
        if not self._count:
            (self._last, self._count), self._before = self._before, (None, 0)
