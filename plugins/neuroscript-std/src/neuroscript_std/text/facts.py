"""What can be told of a text without changing it: how long it is, what it holds, how it begins and ends.

A character is a code point. Source: upstream ``tools_string_basic.go`` and ``tools_string_predicates.go``.
"""

from __future__ import annotations

from typing import Final

from neuroscript import Example, ToolPolicy, Toolset

PURE: Final = ToolPolicy(effects=("pure",))

toolset = Toolset("str")


@toolset.tool(
    policy=PURE,
    when_to_use="For the number of characters; str.linecount counts lines, and str.splitwords gives the words.",
    examples=(
        Example(("hello",), 5),
        Example(("日本",), 2, note="code points, not bytes"),
        Example((123,), error="coercion.type"),
    ),
)
def length(input_string: str) -> int:
    """Count the characters of a text.

    Args:
        input_string: The text to measure.

    Returns:
        How many code points it has.

    Raises:
        ArgumentError: coercion.type.
    """
    return len(input_string)


@toolset.tool(
    name="linecount",
    policy=PURE,
    when_to_use="For the number of lines in a text at hand; str.split with a line break gives the lines.",
    examples=(
        Example(("one\ntwo\n",), 2),
        Example(("one\ntwo",), 2, note="a last line without a line break counts"),
        Example(({"text": "one"},), error="coercion.type"),
    ),
)
def line_count(content_string: str) -> int:
    r"""Count the lines of a text.

    Args:
        content_string: The text whose lines are counted; ``\n`` ends a line.

    Returns:
        How many lines there are; 0 for an empty text.

    Raises:
        ArgumentError: coercion.type.
    """
    unterminated = content_string != "" and not content_string.endswith("\n")
    return content_string.count("\n") + unterminated


@toolset.tool(
    policy=PURE,
    when_to_use="For a text that is known to the letter; str.matchregex looks for a pattern.",
    examples=(
        Example(("hello world", "world"), True),
        Example(("hello", "Hello"), False, note="case counts"),
        Example(("hello", None), error="arg.missing"),
    ),
)
def contains(input_string: str, substring: str) -> bool:
    """Tell whether a text holds another.

    Args:
        input_string: The text to look in.
        substring: The text to look for; every text holds the empty one.

    Returns:
        True where it is there, at any place.

    Raises:
        ArgumentError: coercion.type.
    """
    return substring in input_string


@toolset.tool(
    name="hasprefix",
    policy=PURE,
    when_to_use="To test the beginning; str.hassuffix tests the end, str.contains any place.",
    examples=(
        Example(("https://a.example", "https://"), True),
        Example(("hello", "lo"), False),
        Example(("hello", ["he"]), error="coercion.type"),
    ),
)
def has_prefix(input_string: str, prefix: str) -> bool:
    """Tell whether a text begins with another.

    Args:
        input_string: The text to look at.
        prefix: The beginning to look for.

    Returns:
        True where the text begins so.

    Raises:
        ArgumentError: coercion.type.
    """
    return input_string.startswith(prefix)


@toolset.tool(
    name="hassuffix",
    policy=PURE,
    when_to_use="To test the end; str.hasprefix tests the beginning, str.contains any place.",
    examples=(
        Example(("report.csv", ".csv"), True),
        Example(("report.csv", "report"), False),
        Example(("report.csv",), error="arg.missing"),
    ),
)
def has_suffix(input_string: str, suffix: str) -> bool:
    """Tell whether a text ends with another.

    Args:
        input_string: The text to look at.
        suffix: The end to look for.

    Returns:
        True where the text ends so.

    Raises:
        ArgumentError: coercion.type.
    """
    return input_string.endswith(suffix)
