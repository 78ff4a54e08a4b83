"""Date formatting with strftime patterns, the same on every platform and in every locale.

Names of days and months are in English. The directives are those of Python's ``datetime``. The platform's ``strftime``
is not used, because implementations differ for years below 1000, unknown directives, widths and flags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from neuroscript import ToolFailed

DIRECTIVE: Final = re.compile(r"%(:z|.|\Z)", re.DOTALL)

WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def format_time(moment: datetime, pattern: str) -> str:
    """Format a date and time with a pattern.

    Args:
        moment: A date and time with a time zone.
        pattern: A string with directives such as ``%Y-%m-%d``.

    Raises:
        ToolFailed: time.bad_pattern, if a ``%`` does not start a directive.
    """
    return DIRECTIVE.sub(lambda found: _part(moment, found[1]), pattern)


def _part(moment: datetime, directive: str) -> str:
    if directive in WHOLES:
        return format_time(moment, WHOLES[directive])
    part = PARTS.get(directive)
    if part is None:
        known = " ".join(sorted([*PARTS, *WHOLES], key=lambda each: (each.lower(), each)))
        text = f"pattern: expected one of {known} after each %, got something else"
        raise ToolFailed(text, code="time.bad_pattern", retry="model")
    return part(moment)


def _week(moment: datetime, first: int) -> int:
    """Return the week of the year, for weeks that start on the weekday *first*; 0 before the first such day."""
    return (moment.timetuple().tm_yday + 6 - (moment.weekday() - first) % 7) // 7


def _offset(moment: datetime, colon: str) -> str:
    offset = moment.utcoffset()
    seconds = 0 if offset is None else round(offset.total_seconds())
    hours, rest = divmod(abs(seconds), 3600)
    parts = [f"{hours:02}", f"{rest // 60:02}", *([f"{rest % 60:02}"] if rest % 60 else [])]
    return f"{'-' if seconds < 0 else '+'}{colon.join(parts)}"


PARTS: Final[Mapping[str, Callable[[datetime], str]]] = {
    "%": lambda moment: "%",
    "A": lambda moment: WEEKDAYS[moment.weekday()],
    "B": lambda moment: MONTHS[moment.month - 1],
    "G": lambda moment: f"{moment.isocalendar().year:04}",
    "H": lambda moment: f"{moment.hour:02}",
    "I": lambda moment: f"{(moment.hour + 11) % 12 + 1:02}",
    "M": lambda moment: f"{moment.minute:02}",
    "S": lambda moment: f"{moment.second:02}",
    "U": lambda moment: f"{_week(moment, 6):02}",
    "V": lambda moment: f"{moment.isocalendar().week:02}",
    "W": lambda moment: f"{_week(moment, 0):02}",
    "Y": lambda moment: f"{moment.year:04}",
    "Z": lambda moment: moment.tzname() or "",
    "a": lambda moment: WEEKDAYS[moment.weekday()][:3],
    "b": lambda moment: MONTHS[moment.month - 1][:3],
    "d": lambda moment: f"{moment.day:02}",
    "e": lambda moment: f"{moment.day:2}",
    "f": lambda moment: f"{moment.microsecond:06}",
    "j": lambda moment: f"{moment.timetuple().tm_yday:03}",
    "m": lambda moment: f"{moment.month:02}",
    "p": lambda moment: "AM" if moment.hour < 12 else "PM",
    "u": lambda moment: f"{moment.isoweekday()}",
    "w": lambda moment: f"{moment.isoweekday() % 7}",
    "y": lambda moment: f"{moment.year % 100:02}",
    "z": lambda moment: _offset(moment, ""),
    ":z": lambda moment: _offset(moment, ":"),
}
"""Directives for one part of a date or time."""

WHOLES: Final[Mapping[str, str]] = {
    "F": "%Y-%m-%d",
    "T": "%H:%M:%S",
    "X": "%H:%M:%S",
    "c": "%a %b %e %H:%M:%S %Y",
    "x": "%m/%d/%y",
}
"""Directives for several parts, as in the ``C`` locale."""
