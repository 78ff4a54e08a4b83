"""Numbers of the calls in an audit log: outcomes, refusals and durations by tool, and calls over time."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from math import ceil
from statistics import median
from typing import Final

import attrs

from neuroscript.audit.entries import COMPLETED, Entry

WIDTHS_SECONDS: Final = (60, 300, 900, 3600, 3 * 3600, 6 * 3600, 86400, 7 * 86400, 28 * 86400)
"""The periods into which time is divided."""

MAX_PERIODS: Final = 48
"""Maximum number of periods, unless even the longest ones are more."""


@attrs.define
class ToolStats:
    """The numbers of one tool.

    Attributes:
        calls: The number of calls, including refused ones.
        codes: The number of calls by outcome.
        seconds: The duration of each call that ran.
        refused: The number of refused calls.
        failed: The number of calls that ran and failed.
    """

    calls: int = 0
    codes: Counter[str] = attrs.field(factory=Counter)
    seconds: array[float] = attrs.field(factory=lambda: array("d"))
    refused: int = 0
    failed: int = 0

    def spans(self) -> tuple[float, float, float] | None:
        """Return the minimum, median and maximum duration in seconds, or None if no call ran."""
        return (min(self.seconds), median(self.seconds), max(self.seconds)) if self.seconds else None

    def percentiles(self, *percents: int) -> tuple[float, ...] | None:
        """Return the durations that the given percentages of calls did not exceed, or None if no call ran.

        >>> ToolStats(seconds=array("d", [4.0, 1.0, 3.0, 2.0])).percentiles(50, 95)
        (2.0, 4.0)
        """
        ordered = sorted(self.seconds)
        if not ordered:
            return None
        return tuple(ordered[max(0, ceil(len(ordered) * percent / 100) - 1)] for percent in percents)


@attrs.define
class Timeline:
    """The number of calls by the period in which they began.

    Attributes:
        start: The beginning of the first period, in seconds since 1970.
        width: The length of a period in seconds.
        calls: The numbers of calls by outcome (``ok``, ``failed``, ``refused``, ``unfinished``), for each period.
    """

    start: float
    width: int
    calls: list[Counter[str]]

    @classmethod
    def between(cls, first: float, last: float) -> Timeline:
        """Return the periods for calls between two times."""
        width = next((each for each in WIDTHS_SECONDS if (last - first) / each < MAX_PERIODS - 1), 0)
        width = width or ceil((last - first) / (MAX_PERIODS - 1) / WIDTHS_SECONDS[-1]) * WIDTHS_SECONDS[-1]
        start = first // width * width
        return cls(start, width, [Counter() for _ in range(int((last - start) // width) + 1)])

    def add(self, time: float, outcome: str) -> None:
        """Count a call."""
        place = int((time - self.start) // self.width)
        if 0 <= place < len(self.calls):
            self.calls[place][outcome] += 1


@attrs.define
class AuditStats:
    """The numbers of an audit log.

    Attributes:
        records: The number of records.
        tools: The numbers of each tool.
        refusals: The number of refused calls by rule and code.
        begun: The calls without an outcome so far.
        timeline: Counts calls over time, or None. Calls without an outcome are not counted until `finish`.
    """

    records: int = 0
    tools: dict[str, ToolStats] = attrs.field(factory=dict)
    refusals: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    begun: dict[tuple[str, int], float] = attrs.field(factory=dict)
    timeline: Timeline | None = None

    @property
    def calls(self) -> int:
        """The number of calls."""
        return sum(tool.calls for tool in self.tools.values())

    def take(self, entries: Iterable[Entry]) -> None:
        """Count entries; a call counts once, even if only its intent or only its outcome is recorded."""
        for each in entries:
            self.add(each.kind, each.tool, each.code, each.rule, each.key, each.time, each.seconds)

    def add(
        self, kind: str, tool: str, code: str, rule: str, key: tuple[str, int], time: float, seconds: float
    ) -> None:
        """Count one record."""
        self.records += 1
        if kind not in ("intent", "outcome", "refused"):
            return
        numbers = self.tools.get(tool)
        if numbers is None:
            numbers = self.tools[tool] = ToolStats()
        if key not in self.begun:
            numbers.calls += 1
        if kind == "intent":
            self.begun[key] = time
            return
        self.begun.pop(key, None)
        numbers.codes[code] += 1
        if kind == "refused":
            outcome = "refused"
            numbers.refused += 1
            self.refusals[rule, code] += 1
        else:
            outcome = "ok" if code in COMPLETED else "failed"
            numbers.failed += outcome == "failed"
            numbers.seconds.append(seconds)
        if self.timeline is not None:
            self.timeline.add(time, outcome)

    def finish(self) -> None:
        """Count the calls without an outcome in the timeline."""
        if self.timeline is not None:
            for time in self.begun.values():
                self.timeline.add(time, "unfinished")
