"""``str`` tools for terminals: add colors, remove ANSI escape sequences (ECMA-48)."""

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
"""The "select graphic rendition" parameter of each tag."""

TAG: Final = re.compile(r"\[([a-z-]{3,17})\]")

SEQUENCE: Final = re.compile(
    r"""
    (?: \x1b\[ | \x9b ) [0-?]*+ [\ -/]*+ [@-~]                                        # CSI: colors, cursor
    | (?: \x1b[\]PX^_] | [\x90\x98\x9d-\x9f] ) [^\x07\x1b\x80-\x9f]*+ (?: \x07 | \x1b\\ | \x9c )  # OSC, DCS and such
    | \x1b [\ -/]*+ [0-~]                                                             # shorter sequences
    | [\x1b\x90\x98\x9b-\x9f]                                                         # remains of incomplete sequences
    """,
    re.VERBOSE,
)
"""Matching is linear: quantifiers are possessive, and the content of a sequence ends where another sequence starts.

A lone ESC is removed too. Otherwise the characters around a removed sequence could form a new one.
"""

toolset = Toolset("str")


@toolset.tool(
    policy=PURE,
    when_to_use="Use it before io.print; to remove colors, use str.stripansi.",
    examples=(
        Example(("[red]Hello[reset]",), "\x1b[31mHello\x1b[0m"),
        Example(("[bold][bg-bright-blue]x [unknown]",), "\x1b[1m\x1b[104mx [unknown]", note="unknown tags stay"),
        Example((123,), error="coercion.type"),
    ),
)
def color(input_string: str) -> str:
    """Add ANSI colors and styles to a string for colored terminal output, from tags such as [red] and [bold].

    Args:
        input_string: The string with tags. Colors are black, red, green, yellow, blue, magenta, cyan and white, each
            optionally with the prefix bright-, bg- or bg-bright-, and gray, default and bg-default. Styles are bold,
            bright, dim, italic, underline, blink, reverse, hidden, strike and reset.

    Returns:
        The string with an escape sequence in place of each tag; unknown tags are left unchanged.

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
    when_to_use="Use it to clean up terminal output; to add colors, use str.color.",
    examples=(
        Example(("\x1b[1m\x1b[34mInfo:\x1b[0m text",), "Info: text"),
        Example(
            ("\x1b]8;;https://a.example\x1b\\link\x1b]8;;\x07",), "link", note="hyperlinks and titles are removed too"
        ),
        Example((None,), error="arg.missing"),
    ),
)
def strip_ansi(input_string: str) -> str:
    """Remove all ANSI escape codes, such as terminal colors, from a string.

    Args:
        input_string: The string, such as the output of a terminal program.

    Returns:
        The string without escape sequences and without any ESC character.

    Raises:
        ArgumentError: coercion.type.
    """
    return SEQUENCE.sub("", input_string)
