"""Counters of single limits: a sum, a sliding window of calls, and repetitions of the same call.

Counters do not lock. Their ledger holds its lock while it reads or changes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from math import ceil, isfinite
from typing import Final

import attrs

from neuroscript.errors import LimitError, Retry
from neuroscript.policy.limits import Rate

Amount = int | Decimal

MAX_RESERVED_CALLS: Final = 100
"""The number of calls that a counter reserves at once."""

CLOCK_SLACK_SECONDS: Final = 1.0
"""Seconds that a clock reading may lie before the last call, because several threads read the clock before locking."""


@attrs.define(eq=False, repr=False)
class Counter:
    """A sum that must not exceed a limit.

    Attributes:
        most: The limit.
        noun: What is counted, for the error message.
        code: The error code of a refusal.
        retry: Who can make a refused call succeed.
        used: The exact sum and the reserved calls. It exceeds the limit only if a tool used more than it had reserved.
        reserved: An item for each call that is counted in advance. A call that removes one needs no lock, because
            removing it is atomic.
    """

    most: Amount
    noun: str
    code: str
    retry: Retry = "host"
    used: Amount = attrs.field(init=False)
    reserved: list[bool] = attrs.field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        self.used = type(self.most)(0)

    def reserve(self) -> None:
        """Count some calls in advance, as many as the limit permits."""
        count = min(MAX_RESERVED_CALLS, int(self.most - self.used))
        self.used += count
        self.reserved.extend([True] * count)

    def release(self) -> None:
        """Make `used` exact: nothing is reserved until the ledger releases its lock."""
        with suppress(IndexError):
            while self.reserved:
                self.reserved.pop()
                self.used -= 1

    def refusal(self, tool: str) -> LimitError:
        """Return the error for a call that would exceed the limit."""
        text = f"no more than {format_amount(self.most)} {self.noun}"
        return LimitError(text, tool=tool, code=self.code, retry=self.retry)


def format_amount(most: Amount) -> str:
    """Return a limit in decimal digits, without an exponent."""
    return f"{most:f}" if type(most) is Decimal else str(most)


@attrs.frozen
class Usage:
    """How much of one limit is used.

    Attributes:
        name: The limit, such as ``calls``, ``calls of math.add``, ``EUR`` or ``60/minute for http.*``.
        used: The current usage. It exceeds *most* only if a tool used more than it had reserved.
        most: The limit.
        layer: The ledger that has the limit: 0 is the session itself, and each further one is a parent.
    """

    name: str
    used: Amount
    most: Amount
    layer: int = 0


class Window:
    """A sliding window over the times of the last calls. It is exact: a period may begin at any moment.

    Args:
        rate: The number of calls permitted per number of seconds.
        clock: The host's clock, in seconds.
    """

    def __init__(self, rate: Rate, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._moments: deque[float] = deque(maxlen=rate.calls)

    def moment(self, tool: str) -> float:
        """Return the time of the host's clock. This runs host code, so the caller must not hold a lock.

        Raises:
            LimitError: With the code ``limit.clock``, if the clock returns no finite number.
        """
        now = _told_by(self._clock)
        if now is None:
            text = "the host's clock returned no valid time, so the rate limit of this tool cannot be checked"
            raise LimitError(text, tool=tool, code="limit.clock")
        return now

    def refusal(self, tool: str, now: float) -> LimitError | None:
        """Return the error for a call at time *now*, or None if it is permitted."""
        moments, rate = self._moments, self._rate
        if moments and now < moments[-1] - CLOCK_SLACK_SECONDS:
            text = "the host's clock went backwards, so the rate limit of this tool cannot be checked"
            return LimitError(text, tool=tool, code="limit.clock", retry="later")
        if len(moments) < rate.calls or now - moments[0] >= rate.seconds:
            return None
        wait = max(1, ceil(moments[0] + rate.seconds - now))
        text = (
            f"no more than {rate.calls} calls in {_seconds(rate.seconds)} are permitted; try again in {_seconds(wait)}"
        )
        return LimitError(text, tool=tool, code="limit.rate", retry="later")

    def count(self, now: float) -> int:
        """Return the number of recorded calls that count at time *now*."""
        return sum(now - moment < self._rate.seconds for moment in self._moments)

    def take(self, now: float) -> float:
        """Record a call and return the time that it is recorded with. The oldest unneeded entry is dropped."""
        if self._moments:
            now = max(now, self._moments[-1])
        self._moments.append(now)
        return now

    def give_back(self, moment: float) -> None:
        """Remove a call that was recorded at *moment*."""
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


class RepeatCounter:
    """The number of identical calls made in a row.

    Args:
        most: The maximum.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: tuple[str, bytes] | None = None
        self._count = 0
        self._before: tuple[tuple[str, bytes] | None, int] = (None, 0)

    def refusal(self, tool: str, digest: bytes | None) -> LimitError | None:
        """Return the error for one more identical call, or None. A call without a digest never counts as identical."""
        if digest is None or self._last != (tool, digest) or self._count < self._most:
            return None
        text = f"the same call was made {self._count} times in a row; change the arguments, or do something else"
        return LimitError(text, tool=tool, code="limit.identical_calls", retry="model")

    def take(self, tool: str, digest: bytes | None) -> None:
        """Record a call."""
        call = None if digest is None else (tool, digest)
        if call is None or call != self._last:
            self._before = (self._last, self._count)
            self._last, self._count = call, 0
        self._count += 1

    def give_back(self, tool: str, digest: bytes | None) -> None:
        """Remove a recorded call. If it interrupted a series, the series continues unless other calls followed."""
        if self._last != (None if digest is None else (tool, digest)) or not self._count:
            return
        self._count -= 1
        if not self._count:
            (self._last, self._count), self._before = self._before, (None, 0)
