"""Text from outside, made safe to look at: no control characters, no marks that turn the writing round, no end.

Source: contract section 6; reliability.md T20.
"""

from __future__ import annotations

from typing import Final

LONGEST: Final = 64
"""How many characters of a name that a caller wrote are repeated to it."""


def escaped(text: str) -> str:
    """Return *text* with every character that is not printable written as an escape.

    >>> escaped("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def shown(name: str) -> str:
    """Return a name that a caller wrote, escaped and cut, so that it can stand in an error."""
    return escaped(name if len(name) <= LONGEST else f"{name[:LONGEST]}…")
