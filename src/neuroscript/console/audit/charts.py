"""Bar charts of statistics as geometry that a template draws with SVG; a table beside each has the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from time import gmtime, strftime
from typing import Final

import attrs

from neuroscript.audit.statistics import AuditStats, Timeline, ToolStats
from neuroscript.io.text import duration

WIDTH: Final = 720
HEIGHT: Final = 160
OUTCOMES: Final = ("ok", "failed", "refused", "unfinished")
"""The parts of a bar, from the bottom."""

PERCENTS: Final = (50, 95, 99)
MAX_TOOLS: Final = 100
"""Maximum number of tools in a table."""

MAX_BARS: Final = 12
"""Maximum number of tools in a chart."""

MAX_BAR_WIDTH: Final = 48
"""Width of a period, so that a few periods do not fill the picture."""

LABEL_WIDTH: Final = 200
ROW_HEIGHT: Final = 26


@attrs.frozen
class Bar:
    """A rectangle.

    Attributes:
        kind: Its meaning, which selects its colour.
        text: What it shows.
    """

    x: float
    y: float
    width: float
    height: float
    kind: str
    text: str = ""


@attrs.frozen
class Period:
    """The calls of a period as a row of the table.

    Attributes:
        start: Its beginning, as text.
        counts: The number of calls for each outcome, in the order of `OUTCOMES`.
    """

    start: str
    counts: tuple[int, ...]


@attrs.frozen
class TimeChart:
    """Calls over time.

    Attributes:
        bars: The rectangles, in a picture of `WIDTH` and `HEIGHT`.
        periods: The rows of the table.
        highest: The largest number of calls in a period.
        width: The length of a period, as text.
    """

    bars: tuple[Bar, ...]
    periods: tuple[Period, ...]
    highest: int
    width: str


@attrs.frozen
class ToolRow:
    """The numbers of a tool as a row of the table.

    Attributes:
        spans: The durations that the percentages in `PERCENTS` of calls did not exceed, as text.
        codes: The number of calls by code.
    """

    name: str
    calls: int
    failed: int
    refused: int
    spans: tuple[str, ...]
    codes: tuple[tuple[str, int], ...]


@attrs.frozen
class ToolChart:
    """Durations by tool.

    Attributes:
        bars: The rectangles.
        names: The names of the tools in the chart, in the order of their rows.
        height: The height of the picture.
    """

    bars: tuple[Bar, ...]
    names: tuple[str, ...]
    height: int


def time_chart(timeline: Timeline) -> TimeChart:
    """Return the chart of calls over time."""
    totals = [counts.total() for counts in timeline.calls]
    highest = max([*totals, 1])
    step = min(WIDTH / len(timeline.calls), MAX_BAR_WIDTH)
    bars: list[Bar] = []
    periods: list[Period] = []
    for index, counts in enumerate(timeline.calls):
        start, bottom = _moment(timeline.start + index * timeline.width, timeline.width), float(HEIGHT)
        periods.append(Period(start, tuple(counts[each] for each in OUTCOMES)))
        for kind in OUTCOMES:
            height = counts[kind] / highest * HEIGHT
            if counts[kind]:
                bottom -= height
                text = f"{start}: {counts[kind]} {kind}"
                bars.append(Bar(_rounded(index * step), _rounded(bottom), _rounded(step * 0.85), height, kind, text))
    return TimeChart(tuple(bars), tuple(periods), highest, _length(timeline.width))


def _moment(seconds: float, width: int) -> str:
    form = "%Y-%m-%d %H:%MZ" if width < 86_400 else "%Y-%m-%d"
    try:
        return strftime(form, gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "?"


def _length(seconds: int) -> str:
    for unit, word in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds % unit == 0:
            count = seconds // unit
            return f"{count} {word}s" if count > 1 else word
    return f"{seconds} seconds"


def tool_rows(numbers: AuditStats) -> tuple[ToolRow, ...]:
    """Return the tools with the most calls."""
    ordered = sorted(numbers.tools.items(), key=lambda each: (-each[1].calls, each[0]))
    return tuple(_tool_row(name, tool) for name, tool in ordered[:MAX_TOOLS])


def _tool_row(name: str, tool: ToolStats) -> ToolRow:
    spans = tool.percentiles(*PERCENTS)
    texts = () if spans is None else tuple(map(duration, spans))
    return ToolRow(name, tool.calls, tool.failed, tool.refused, texts, tuple(tool.codes.most_common(8)))


def tool_chart(numbers: AuditStats) -> ToolChart | None:
    """Return the chart of durations of the tools that took longest, or None if no call ran."""
    measured = [(name, spans) for name, tool in numbers.tools.items() if (spans := tool.percentiles(*PERCENTS))]
    measured.sort(key=lambda each: (-each[1][-1], each[0]))
    chosen = measured[:MAX_BARS]
    if not chosen:
        return None
    longest = max(spans[-1] for _, spans in chosen) or 1.0
    bars = [bar for row, (_, spans) in enumerate(chosen) for bar in _tool_bars(row, spans, longest)]
    return ToolChart(tuple(bars), tuple(name for name, _ in chosen), ROW_HEIGHT * len(chosen))


def _tool_bars(row: int, spans: Sequence[float], longest: float) -> list[Bar]:
    """Return one bar per percentage, the longest first, because the others are drawn over it."""
    room, y = WIDTH - LABEL_WIDTH, row * ROW_HEIGHT
    return [
        Bar(LABEL_WIDTH, y + 3, max(1.0, _rounded(max(0.0, span) / longest * room)), ROW_HEIGHT - 8, f"p{percent}",
            f"{percent} %: {duration(span)}")
        for percent, span in reversed([*zip(PERCENTS, spans, strict=True)])
    ]  # fmt: skip


def _rounded(number: float) -> float:
    return round(number, 1)
