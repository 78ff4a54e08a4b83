"""Texts that have to fit a place in a picture, whatever font draws them.

How wide a font is can not be known here, so a text counts as wide as it is in the widest of the usual ones; what does
not fit is cut, and ends in ``…``.

Source: issue "Plans", the picture of a trace.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from html import escape
from typing import Final

from neuroscript.display import one_line

FONT: Final = "Arial, Helvetica, sans-serif"

NARROW: Final = frozenset("!\"'(),-./:;I[\\]`fijlrt| ")
WIDE: Final = frozenset("%@MWmw")
BROAD: Final = frozenset("#&+<=>^~ABCDEFGHJKLNOPQRSTUVXYZ")

BOLD: Final = 1.14
"""How much wider letters are in bold type."""

LONGEST: Final = 400
"""How many characters of a text from outside there may be, where there is room for all of it."""


@cache
def _ems(letter: str) -> float:
    """Return how wide a letter is at most, as a part of the size of its font."""
    if letter in NARROW:
        return 0.46
    if letter.isascii():
        return 1.0 if letter in WIDE else 0.84 if letter in BROAD else 0.64
    is_wide = unicodedata.east_asian_width(letter) in "WF" or ord(letter) > 0xFFFF
    return 1.4 if is_wide else 1.2


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Return how wide a text is at most, in pixels.

    >>> width("fetch", 10), width("fetch", 10, bold=True) > width("fetch", 10)
    (28.4, True)
    """
    return round(sum(map(_ems, text)) * size * (BOLD if bold else 1.0), 2)


def fitted(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """Return a text, or as much of its beginning as there is room for, with ``…`` behind it.

    >>> fitted("a long name", 40, 10)
    'a lo…'
    """
    if width(text, size, bold=bold) <= room:
        return text
    left = room - width("…", size, bold=bold)
    for count, letter in enumerate(text):
        left -= width(letter, size, bold=bold)
        if left < 0:
            return f"{text[:count].rstrip()}…"
    return text


def safe(text: object) -> str:
    """Return a text from outside as one line of XML that has no marks of its own; ``""`` for what is no text."""
    return escape(one_line(text, LONGEST))
