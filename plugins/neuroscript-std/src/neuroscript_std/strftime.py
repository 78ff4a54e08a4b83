"""A moment by a strftime pattern, alike on every platform and in every locale, with English names of days and months.

Source: the table of directives in Python's ``datetime`` documentation; C's ``strftime`` differs in what it does with
years below 1000, unknown directives, widths and flags, so none of it is called here.
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


def formatted(moment: datetime, pattern: str) -> str:
    """Return a moment as a pattern says.

    Args:
        moment: With a time zone.
        pattern: A text with directives such as ``%Y-%m-%d``.

    Raises:
        ToolFailed: time.bad_pattern, where a ``%`` begins no directive.
    """
    return DIRECTIVE.sub(lambda found: _part(moment, found[1]), pattern)


def _part(moment: datetime, directive: str) -> str:
    if directive in WHOLES:
        return formatted(moment, WHOLES[directive])
    part = PARTS.get(directive)
    if part is None:
        known = " ".join(sorted([*PARTS, *WHOLES], key=lambda each: (each.lower(), each)))
        text = f"pattern: expected one of {known} behind each %, got something else"
        raise ToolFailed(text, code="time.bad_pattern", retry="model")
    return part(moment)


def _week(moment: datetime, first: int) -> int:
    """Return the number of the week in the year, whose weeks begin with the weekday *first*; 0 before the first one."""
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
"""The directives that stand for one part of a moment."""

WHOLES: Final[Mapping[str, str]] = {
    "F": "%Y-%m-%d",
    "T": "%H:%M:%S",
    "X": "%H:%M:%S",
    "c": "%a %b %e %H:%M:%S %Y",
    "x": "%m/%d/%y",
}
"""The directives that stand for several, as in the locale ``C``."""
