"""Texts for a terminal: colours in, escape sequences out.

Source: upstream ``tools_string_ansi.go``; ECMA-48, fifth edition, sections 5.3 to 5.6 and 8.3.117.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from neuroscript import Example, ToolPolicy, Toolset

PURE: Final = ToolPolicy(effects=("pure",))

STYLES: Final[Mapping[str, int]] = {
    "reset": 0,
    "bold": 1,
    "bright": 1,
    "dim": 2,
    "italic": 3,
    "underline": 4,
    "blink": 5,
    "reverse": 7,
    "hidden": 8,
    "strike": 9,
    "default": 39,
    "bg-default": 49,
    "gray": 90,
}
COLORS: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
PARAMETERS: Final[Mapping[str, int]] = {
    **STYLES,
    **{color: 30 + index for index, color in enumerate(COLORS)},
    **{f"bg-{color}": 40 + index for index, color in enumerate(COLORS)},
    **{f"bright-{color}": 90 + index for index, color in enumerate(COLORS)},
    **{f"bg-bright-{color}": 100 + index for index, color in enumerate(COLORS)},
}
"""The number that stands for each tag in "select graphic rendition"."""

TAG: Final = re.compile(r"\[([a-z-]{3,17})\]")

SEQUENCE: Final = re.compile(
    r"""
    (?: \x1b\[ | \x9b ) [0-?]*+ [\ -/]*+ [@-~]                                        # CSI: colours, cursor
    | (?: \x1b[\]PX^_] | [\x90\x98\x9d-\x9f] ) [^\x07\x1b\x80-\x9f]*+ (?: \x07 | \x1b\\ | \x9c )  # OSC, DCS and such
    | \x1b [\ -/]*+ [0-~]                                                             # all shorter ones
    | [\x1b\x90\x98\x9b-\x9f]                                                         # what is left of broken ones
    """,
    re.VERBOSE,
)
"""Possessive, and a text within a sequence ends where another one begins: so it is linear in the text.

A lone ESC goes too, else what stood around a removed sequence could make up a new one.
"""

toolset = Toolset("str")


@toolset.tool(
    policy=PURE,
    when_to_use="For a text that a terminal shows; str.stripansi takes colours out again.",
    examples=(
        Example(("[red]Hello[reset]",), "\x1b[31mHello\x1b[0m"),
        Example(("[bold][bg-bright-blue]x [unknown]",), "\x1b[1m\x1b[104mx [unknown]", note="unknown tags stay"),
        Example((123,), error="coercion.type"),
    ),
)
def color(input_string: str) -> str:
    """Turn tags such as [red], [bg-blue], [bright-green], [bold] and [reset] into ANSI escape sequences.

    Args:
        input_string: The text with tags. Colours are black, red, green, yellow, blue, magenta, cyan and white, each
            with bright-, bg- or bg-bright- before it, gray, default and bg-default; styles are bold, bright, dim,
            italic, underline, blink, reverse, hidden, strike and reset.

    Returns:
        The text with a sequence in place of each tag; brackets with another word in them stay.

    Raises:
        ArgumentError: coercion.type.
    """
    return TAG.sub(_sequence, input_string)


def _sequence(tag: re.Match[str]) -> str:
    parameter = PARAMETERS.get(tag[1])
    return tag[0] if parameter is None else f"\x1b[{parameter}m"


@toolset.tool(
    name="stripansi",
    policy=PURE,
    when_to_use="For output of a terminal that is to be read as text; str.color puts colours in.",
    examples=(
        Example(("\x1b[1m\x1b[34mInfo:\x1b[0m text",), "Info: text"),
        Example(("\x1b]8;;https://a.example\x1b\\link\x1b]8;;\x07",), "link", note="links and titles go too"),
        Example((None,), error="arg.missing"),
    ),
)
def strip_ansi(input_string: str) -> str:
    """Remove all ANSI escape sequences from a text.

    Args:
        input_string: The text as a terminal would get it.

    Returns:
        The text without them, and without any ESC at all.

    Raises:
        ArgumentError: coercion.type.
    """
    return SEQUENCE.sub("", input_string)
