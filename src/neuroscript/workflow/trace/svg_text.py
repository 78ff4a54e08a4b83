"""Text in SVG pictures: how wide it is at most, how much of it fits, and how it is escaped.

Widths are those of the widest usual font, because the font that will be used is unknown.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from html import escape
from typing import Final

from neuroscript.io.text import one_line
from neuroscript.workflow.trace.graph_layout import number

FONT: Final = "Arial, Helvetica, sans-serif"


NARROW: Final = frozenset("!\"'(),-./:;I[\\]`fijlrt| ")


WIDE: Final = frozenset("%@MWmw")


BROAD: Final = frozenset("#&+<=>^~ABCDEFGHJKLNOPQRSTUVXYZ")


BOLD: Final = 1.14
"""How much wider bold letters are."""


MAX_LABEL_CHARS: Final = 400
"""Maximum characters of a string from the trace."""


@cache
def _ems(letter: str) -> float:
    """Return the maximum width of a letter, in units of the font size."""
    if letter in NARROW:
        return 0.46
    if letter.isascii():
        return 1.0 if letter in WIDE else 0.84 if letter in BROAD else 0.64
    is_wide = unicodedata.east_asian_width(letter) in "WF" or ord(letter) > 0xFFFF
    return 1.4 if is_wide else 1.2


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the maximum width of a string in pixels.

    >>> width("fetch", 10), width("fetch", 10, bold=True) > width("fetch", 10)
    (28.4, True)
    """
    return round(sum(map(_ems, text)) * size * (BOLD if bold else 1.0), 2)


def fit_text(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """Return a string, or as much of its beginning as fits, followed by ``…``.

    >>> fit_text("a long name", 40, 10)
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
    """Return a string from the trace as one line of escaped XML, or ``""`` if it is not a string."""
    return escape(one_line(text, MAX_LABEL_CHARS))


def text_element(
    x: float, y: float, size: float, style: str, text: str, *, bold: bool = False, anchor: str = ""
) -> str:
    """Return a text element, whose text must fit already.

    Args:
        x: The left edge, or the middle or the right edge for another *anchor*.
        y: The baseline.
        size: The size of the font in pixels.
        style: Its class, or ``""``.
        anchor: ``middle`` or ``end``; ``""`` is the start.
    """
    marks = f' class="{style}"' if style else ""
    marks += ' font-weight="bold"' if bold else ""
    marks += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}"{marks}>{safe(text)}</text>'
