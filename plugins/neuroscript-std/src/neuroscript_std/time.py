"""The ``time`` tools: the current time, parsing and formatting of dates, and sleep.

A time is an ISO 8601 string or a Unix timestamp, the seconds since 1970-01-01 UTC.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolFailed, ToolPolicy, Toolset, ToolSpec
from neuroscript_std.strftime import format_time

CLOCK: Final = ToolPolicy(effects=("clock",))
WAITING: Final = ToolPolicy(effects=("clock",), blocking=True)
PURE: Final = ToolPolicy(effects=("pure",))

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
ISO: Final = "%Y-%m-%dT%H:%M:%S.%f%:z"
MOMENT: Final = re.compile(r"[0-9W-]{7,10}(?:[Tt ][0-9:.,]+(?:Z|[+-][0-9:.]+)?)?")
"""The shape of ISO 8601; Python accepts any character between date and time, even the ninth of 15 digits."""

MAX_SLEEP_SECONDS: Final = 3600
"""Seconds."""

POLL_SECONDS: Final = 0.1
"""Seconds of sleep between two checks for cancellation."""

MAX_PATTERN_CHARS: Final = 200
"""Characters."""

toolset = Toolset("time")


@toolset.tool(
    policy=CLOCK,
    when_to_use="Use it for a readable time; for a Unix timestamp, use os.now or pass the result to time.parse.",
    examples=(
        Example(()),
        Example(("Europe/Berlin",), note="the local time in that zone, with its offset"),
        Example(("Middle Earth",), error="time.bad_zone"),
    ),
)
def now(rt: Runtime, zone: str = "UTC") -> str:
    """Get the current date and time in ISO 8601 format, in UTC or another time zone.

    Args:
        zone: Name of the time zone, such as Europe/Berlin.

    Returns:
        The time in ISO 8601 with microseconds and offset, such as 2026-11-20T13:27:46.123456+00:00.

    Raises:
        ToolFailed: time.bad_zone.
    """
    where = _zone(zone)
    return (EPOCH + timedelta(seconds=rt.now())).astimezone(where).isoformat(timespec="microseconds")


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to calculate with or compare dates; to convert a timestamp to a string, use time.format.",
    examples=(
        Example(("2026-11-20T13:27:46+00:00",), 1795181266.0),
        Example(("1970-01-01T01:00:00.5",), 3600.5, note="without an offset, UTC is assumed"),
        Example(("1970-01-02",), 86400.0),
        Example(("tomorrow",), error="time.bad_text"),
    ),
)
def parse(text: str) -> float:
    """Parse an ISO 8601 date string and convert it to a Unix timestamp in seconds.

    Args:
        text: A date such as 2026-11-20, or a date and a time separated by T or a space; UTC without an offset.

    Returns:
        Seconds since 1970-01-01 UTC, with microseconds; negative before that date.

    Raises:
        ToolFailed: time.bad_text.
    """
    moment = _moment(text)
    if moment is None:
        expected = "a date or a date and time in ISO 8601, such as 2026-11-20T13:27:46+00:00"
        raise ToolFailed(f"text: expected {expected}, got another string", code="time.bad_text", retry="model")
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
        text = "seconds: expected a time in the years 1 to 9999, got one outside"
        raise ToolFailed(text, code="time.range", retry="model") from None
    return format_time(moment, pattern)


toolset.add(
    ToolSpec(
        "format",
        "time",
        (
            ArgSpec("seconds", ArgType.FLOAT, description="Unix timestamp in seconds; negative before 1970-01-01 UTC."),
            ArgSpec(
                "pattern",
                ArgType.STRING,
                default=ISO,
                max_length=MAX_PATTERN_CHARS,
                description="A strftime pattern, such as %d.%m.%Y %H:%M; the default is ISO 8601 with microseconds.",
            ),
            ArgSpec(
                "zone",
                ArgType.STRING,
                default="UTC",
                description="Name of the time zone of the result, such as Europe/Berlin.",
            ),
        ),
        return_type=ArgType.STRING,
        description="Convert a Unix timestamp to a date and time string, formatted with a strftime pattern.",
        when_to_use="Use it to convert a timestamp to readable text; to parse a date string, use time.parse.",
        return_help="The formatted date and time; names of days and months are in English.",
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
    start, reported = time.monotonic(), 0
    end = start + duration_seconds
    _require_time(rt, end)
    reserved = rt.spend("sleep", duration_seconds)
    try:
        while (left := end - time.monotonic()) > 0:
            if rt.cancelled:
                raise ToolFailed("the call was cancelled", code="time.cancelled", retry="later")
            time.sleep(min(left, POLL_SECONDS))
            if (whole := int(time.monotonic() - start)) > reported:
                rt.progress(reported := whole, duration_seconds)
    finally:
        reserved.settle(min(time.monotonic() - start, duration_seconds))  # oversleeping is not charged to the caller
    return True


def _require_time(rt: Runtime, end: float) -> None:
    """Refuse to sleep past the deadline of the call; *end* and the deadline are on the `time.monotonic` clock."""
    deadline = rt.deadline
    if deadline is not None and deadline < end:
        text = "duration_seconds: expected to end before the deadline of the call, got a longer time"
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
                maximum=MAX_SLEEP_SECONDS,
                description="Seconds to sleep, at most 3600.",
            ),
        ),
        return_type=ArgType.BOOL,
        description="Sleep: pause execution for a number of seconds.",
        when_to_use="Use it to wait before the next call; to read the clock, use time.now.",
        return_help="True after the time has passed.",
        examples=(
            Example((0,), True),
            Example(("0.01",), True),
            Example((-1,), error="coercion.bounds"),
        ),
        error_conditions="time.deadline and limit.sleep, before it sleeps; time.cancelled.",
    ),
    _slept,
    WAITING,
)


def _zone(name: str) -> tzinfo:
    """Return the time zone of a name; UTC works even without a time zone database."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, invalid or outside the database, or a directory of it
        pass
    raise ToolFailed(
        "zone: expected a time zone, such as Europe/Berlin, got another string", code="time.bad_zone", retry="model"
    )
