"""The times of the nodes of a trace, as bars on a time axis."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import attrs

from neuroscript.workflow.trace.trace import Attempt, NodeTrace, Trace

TICKS: Final = 5
"""The approximate number of intervals on the axis."""

MIN_SECONDS: Final = 1e-9
"""Seconds; a shorter run gets an axis of one second, on which its bars are marks."""

MAX_BARS: Final = 200
"""Maximum attempts of a node that get separate bars; more are drawn as one bar from the first to the last."""


@attrs.frozen
class Bar:
    """A span of time.

    Attributes:
        start: The start, as a fraction of the axis.
        share: The length, as a fraction of the axis; negative if a clock was set back.
        is_ok: Whether the call succeeded.
    """

    start: float
    share: float
    is_ok: bool


@attrs.frozen
class Timeline:
    """The time axis of a run.

    Attributes:
        begin: Seconds since 1970-01-01 UTC.
        seconds: Its length, more than 0.
    """

    begin: float
    seconds: float

    @classmethod
    def of(cls, trace: Trace) -> Timeline:
        """Return the axis from the start of a run, or its first call, to the end of the last call."""
        attempts = [each for node in trace.nodes for each in node.attempts]
        begin = min([trace.started, *(each.started for each in attempts)])
        end = max([trace.started + trace.seconds, *(each.started + each.seconds for each in attempts)])
        return cls(begin, end - begin if end - begin >= MIN_SECONDS else 1.0)

    def offset(self, node: NodeTrace) -> float | None:
        """Return how many seconds after the beginning a node's first call began, or None without calls."""
        return None if node.started is None else node.started - self.begin

    def bars(self, node: NodeTrace) -> Iterator[Bar]:
        """Yield a bar for each call of a node, or one for all calls if there are many."""
        if len(node.attempts) <= MAX_BARS:
            yield from map(self._bar, node.attempts)
        elif node.started is not None:
            yield self._bar(Attempt(1, None, node.started, node.seconds, "ok" if node.error is None else "failed"))

    def _bar(self, attempt: Attempt) -> Bar:
        start, share = (attempt.started - self.begin) / self.seconds, attempt.seconds / self.seconds
        return Bar(start, share, attempt.code == "ok")

    def ticks(self) -> list[float]:
        """Return round numbers of seconds from 0 to the end.

        >>> Timeline(0.0, 2.3).ticks()
        [0.0, 0.5, 1.0, 1.5, 2.0]
        """
        rough = self.seconds / TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough * (1 - 1e-9))
        return [round(count * step, 12) for count in range(int(self.seconds / step * (1 + 1e-9)) + 1)]
