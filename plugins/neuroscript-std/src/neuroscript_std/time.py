"""The clock, and moments as texts and as seconds since 1970-01-01 UTC.

Source: upstream ``pkg/tool/time``, with parse and format; its sleep can not be called.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolFailed, ToolPolicy, Toolset, ToolSpec
from neuroscript_std.strftime import formatted

CLOCK: Final = ToolPolicy(effects=("clock",))
WAITING: Final = ToolPolicy(effects=("clock",), blocking=True)
PURE: Final = ToolPolicy(effects=("pure",))

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
ISO: Final = "%Y-%m-%dT%H:%M:%S.%f%:z"
MOMENT: Final = re.compile(r"[0-9W-]{7,10}(?:[Tt ][0-9:.,]+(?:Z|[+-][0-9:.]+)?)?")
"""What ISO 8601 may look like: Python takes any character between date and time, even the ninth of 15 digits."""

LONGEST_SLEEP: Final = 3600
"""Seconds."""

SLICE: Final = 0.1
"""Seconds of sleep after which is looked whether anybody still waits."""

LONGEST_PATTERN: Final = 200
"""Characters."""

toolset = Toolset("time")


@toolset.tool(
    policy=CLOCK,
    when_to_use="For the time of the clock as a text; time.parse makes seconds of it to reckon with.",
    examples=(
        Example(()),
        Example(("Europe/Berlin",), note="the time that people there read off their clocks, with its offset"),
        Example(("Middle Earth",), error="time.bad_zone"),
    ),
)
def now(rt: Runtime, zone: str = "UTC") -> str:
    """Give the present date and time.

    Args:
        zone: The name of a time zone, such as Europe/Berlin.

    Returns:
        The moment in ISO 8601 with microseconds and offset, such as 2026-11-20T13:27:46.123456+00:00.

    Raises:
        ToolFailed: time.bad_zone.
    """
    where = _zone(zone)
    return (EPOCH + timedelta(seconds=rt.now())).astimezone(where).isoformat(timespec="microseconds")


@toolset.tool(
    policy=PURE,
    when_to_use="For reckoning with a date and time; time.format makes a text of seconds again.",
    examples=(
        Example(("2026-11-20T13:27:46+00:00",), 1795181266.0),
        Example(("1970-01-01T01:00:00.5",), 3600.5, note="without an offset it is UTC"),
        Example(("1970-01-02",), 86400.0),
        Example(("tomorrow",), error="time.bad_text"),
    ),
)
def parse(text: str) -> float:
    """Read a date, or a date and time, in ISO 8601.

    Args:
        text: A date such as 2026-11-20, or a date, T or a blank, and a time; UTC is meant where no offset is named.

    Returns:
        Seconds since 1970-01-01 UTC, to the microsecond; below 0 before it.

    Raises:
        ToolFailed: time.bad_text.
    """
    moment = _moment(text)
    if moment is None:
        expected = "a date or a date and time in ISO 8601, such as 2026-11-20T13:27:46+00:00"
        raise ToolFailed(f"text: expected {expected}, got another text", code="time.bad_text", retry="model")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH).total_seconds()


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if MOMENT.fullmatch(text) else None
    except (ValueError, OverflowError):
        return None


def _formatted(rt: Runtime, seconds: float, pattern: str, zone: str) -> str:
    where = _zone(zone)
    try:
        moment = (EPOCH + timedelta(seconds=seconds)).astimezone(where)
    except (OverflowError, ValueError):
        text = "seconds: expected a moment from the year 1 to 9999, got one outside"
        raise ToolFailed(text, code="time.range", retry="model") from None
    return formatted(moment, pattern)


toolset.add(
    ToolSpec(
        "format",
        "time",
        (
            ArgSpec("seconds", ArgType.FLOAT, description="Seconds since 1970-01-01 UTC; below 0 before it."),
            ArgSpec(
                "pattern",
                ArgType.STRING,
                default=ISO,
                max_length=LONGEST_PATTERN,
                description="A strftime pattern, such as %d.%m.%Y %H:%M; ISO 8601 with microseconds unless it is said.",
            ),
            ArgSpec(
                "zone",
                ArgType.STRING,
                default="UTC",
                description="The name of the time zone to tell the moment in, such as Europe/Berlin.",
            ),
        ),
        return_type=ArgType.STRING,
        description="Write a moment as a text.",
        when_to_use="For a date and time that people or programs read; time.parse goes the other way.",
        return_help="The moment as the pattern says; the names of days and months are English.",
        examples=(
            Example((0,), "1970-01-01T00:00:00.000000+00:00"),
            Example((1795181266, "%A, %d %B %Y, %H:%M", "Europe/Berlin"), "Friday, 20 November 2026, 14:27"),
            Example((0, "%Q"), error="time.bad_pattern"),
            Example((1e12,), error="time.range"),
        ),
        error_conditions="time.bad_pattern, time.bad_zone, time.range.",
    ),
    _formatted,
    PURE,
)


def _slept(rt: Runtime, duration_seconds: float) -> bool:
    start, told = time.monotonic(), 0
    end = start + duration_seconds
    _require_time(rt, end)
    reserved = rt.spend("sleep", duration_seconds)
    try:
        while (left := end - time.monotonic()) > 0:
            if rt.cancelled:
                raise ToolFailed("nobody waits for the result any more", code="time.cancelled", retry="later")
            time.sleep(min(left, SLICE))
            if (whole := int(time.monotonic() - start)) > told:
                rt.progress(told := whole, duration_seconds)
    finally:
        reserved.settle(min(time.monotonic() - start, duration_seconds))  # by how much it overslept is not its doing
    return True


def _require_time(rt: Runtime, end: float) -> None:
    """Refuse a wait whose end nobody would see; *end* is on the clock of `time.monotonic`, as the deadline is."""
    deadline = rt.deadline
    if deadline is not None and deadline < end:
        text = "duration_seconds: expected an end before the deadline of the call, got one behind it"
        raise ToolFailed(text, code="time.deadline", retry="model")


toolset.add(
    ToolSpec(
        "sleep",
        "time",
        (
            ArgSpec(
                "duration_seconds",
                ArgType.FLOAT,
                minimum=0,
                maximum=LONGEST_SLEEP,
                description="How long to wait, in seconds, at most an hour.",
            ),
        ),
        return_type=ArgType.BOOL,
        description="Wait for some seconds.",
        when_to_use="For a pause before the next call; time.now tells the time without waiting.",
        return_help="True, when the time is over.",
        examples=(
            Example((0,), True),
            Example(("0.01",), True),
            Example((-1,), error="coercion.bounds"),
        ),
        error_conditions="time.deadline and limit.sleep, before any waiting; time.cancelled.",
    ),
    _slept,
    WAITING,
)


def _zone(name: str) -> tzinfo:
    """Return the time zone of a name; UTC is known even where there is no time zone database."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # not there, no time zone or a way out of their directory, that directory
        pass
    raise ToolFailed(
        "zone: expected a time zone, such as Europe/Berlin, got another text", code="time.bad_zone", retry="model"
    )
