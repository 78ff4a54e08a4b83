"""``str`` tools that inspect a string: length, line count, substring, prefix and suffix checks.

A character is a Unicode code point.
"""

from __future__ import annotations

from typing import Final

from neuroscript import Example, ToolPolicy, Toolset

PURE: Final = ToolPolicy(effects=("pure",))

toolset = Toolset("str")


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to count characters; to count lines, use str.linecount, to get the words, str.splitwords.",
    examples=(
        Example(("hello",), 5),
        Example(("日本",), 2, note="code points, not bytes"),
        Example((123,), error="coercion.type"),
    ),
)
def length(input_string: str) -> int:
    """Return the length of a string, counted in characters.

    Args:
        input_string: The string to measure.

    Returns:
        The number of Unicode code points.

    Raises:
        ArgumentError: coercion.type.
    """
    return len(input_string)


@toolset.tool(
    name="linecount",
    policy=PURE,
    when_to_use="Use it for a string; to count the lines in a file, use fs.linecount. To get the lines, use str.split.",
    examples=(
        Example(("one\ntwo\n",), 2),
        Example(("one\ntwo",), 2, note="a last line without a newline counts"),
        Example(({"text": "one"},), error="coercion.type"),
    ),
)
def line_count(content_string: str) -> int:
    r"""Count the number of lines in a string of text.

    Args:
        content_string: The string; each line ends with ``\n``.

    Returns:
        The number of lines; 0 for an empty string.

    Raises:
        ArgumentError: coercion.type.
    """
    unterminated = content_string != "" and not content_string.endswith("\n")
    return content_string.count("\n") + unterminated


@toolset.tool(
    policy=PURE,
    when_to_use="Use it for a literal substring; to search for a pattern, use str.matchregex.",
    examples=(
        Example(("hello world", "world"), True),
        Example(("hello", "Hello"), False, note="the comparison is case-sensitive"),
        Example(("hello", None), error="arg.missing"),
    ),
)
def contains(input_string: str, substring: str) -> bool:
    """Check whether a string contains another string (a substring).

    Args:
        input_string: The string to search.
        substring: The string to look for; the empty string is always found.

    Returns:
        True if the substring occurs anywhere.

    Raises:
        ArgumentError: coercion.type.
    """
    return substring in input_string


@toolset.tool(
    name="hasprefix",
    policy=PURE,
    when_to_use="Use it to test the start; to test the end, use str.hassuffix, to test anywhere, str.contains.",
    examples=(
        Example(("https://a.example", "https://"), True),
        Example(("hello", "lo"), False),
        Example(("hello", ["he"]), error="coercion.type"),
    ),
)
def has_prefix(input_string: str, prefix: str) -> bool:
    """Check whether a string starts with a prefix.

    Args:
        input_string: The string to test.
        prefix: The prefix to look for.

    Returns:
        True if the string starts with the prefix.

    Raises:
        ArgumentError: coercion.type.
    """
    return input_string.startswith(prefix)


@toolset.tool(
    name="hassuffix",
    policy=PURE,
    when_to_use="Use it to test the end; to test the start, use str.hasprefix, to test anywhere, str.contains.",
    examples=(
        Example(("report.csv", ".csv"), True),
        Example(("report.csv", "report"), False),
        Example(("report.csv",), error="arg.missing"),
    ),
)
def has_suffix(input_string: str, suffix: str) -> bool:
    """Check whether a string ends with a suffix.

    Args:
        input_string: The string to test.
        suffix: The suffix to look for.

    Returns:
        True if the string ends with the suffix.

    Raises:
        ArgumentError: coercion.type.
    """
    return input_string.endswith(suffix)
