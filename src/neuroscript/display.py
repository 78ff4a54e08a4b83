"""Text from outside, made safe to look at: no control characters, no marks that turn the writing round, no end.

And the names of types, and durations, with the unit that suits them.

Source: contract section 6; reliability.md T20.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

LONGEST: Final = 64
"""How many characters of a name that a caller wrote are repeated to it."""

LONGEST_PATH: Final = 200
"""How many characters of a path that a host wrote are repeated to it."""


def escaped(text: str) -> str:
    """Return *text* with every character that is not printable written as an escape.

    >>> escaped("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def sendable(text: str) -> str:
    """Return *text* as UTF-8 can hold it: lone surrogates are written as escapes, and nothing else is.

    >>> sendable("a\\ud800b")
    'a\\\\ud800b'
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def shown(name: str) -> str:
    """Return a name that a caller wrote, escaped and cut, so that it can stand in an error."""
    return escaped(name if len(name) <= LONGEST else f"{name[:LONGEST]}…")


def type_name(value: object) -> str:
    """Return the name of a value's type, escaped and cut, without running code of that type."""
    return name_of(type(value))


def name_of(kind: Any) -> str:
    """Return the name of a type, escaped and cut, without running code of it."""
    return "None" if kind is type(None) else shown(_name_of_type(kind))


_name_of_type: Final = type.__dict__["__name__"].__get__


def one_line(text: object, longest: int | None = None) -> str:
    """Return a text from outside as one line in which nothing steers a terminal, ``""`` for what is no text.

    Args:
        longest: How many characters it may have; None cuts nothing.

    >>> one_line("All pets.\\n\\x1b[2J  Soon", 64)
    'All pets. \\\\x1b[2J Soon'
    """
    if not isinstance(text, str):
        return ""
    line = escaped(" ".join(text.split()))
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}…"


def first(texts: Sequence[str], most: int) -> list[str]:
    """Return the first of several texts, and in one more how many are left.

    >>> first(["a", "b", "c"], 1)
    ['a', 'and 2 more']
    """
    left = len(texts) - most
    return [*texts[:most], *([f"and {left} more"] if left > 0 else [])]


def shown_path(path: str) -> str:
    """Return a path that a host wrote, escaped, and cut at its beginning, for what is meant stands at its end."""
    return escaped(path if len(path) <= LONGEST_PATH else f"…{path[-LONGEST_PATH:]}")


def duration(seconds: float) -> str:
    """Return a duration with its unit.

    >>> duration(0.00123), duration(2.5)
    ('1.23 ms', '2.5 s')
    """
    return f"{seconds:.3g} s" if abs(seconds) >= 1 else f"{seconds * 1000:.3g} ms"
