"""A text changed: a part of it taken, its letters in another case, its ends cut off, one text put for another.

A character is a code point. Source: upstream ``tools_string_substring.go``, ``tools_string_utils.go``.
"""

from __future__ import annotations

from typing import Final

from neuroscript import Example, ToolFailed, ToolPolicy, Toolset
from neuroscript_std.text.size import refuse_above_limit, size, within_limit

PURE: Final = ToolPolicy(effects=("pure",))

SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode's property White_Space; Python counts the separators 1C to 1F too, which stand for data."""

toolset = Toolset("str")


@toolset.tool(
    policy=PURE,
    when_to_use="For a part at a known place; str.split parts a text at a mark, str.findallregex finds by a pattern.",
    examples=(
        Example(("abcdef", 1, 3), "bcd"),
        Example(("abcdef", 3, 10), "def", note="what lies beyond the end is left out"),
        Example(("abcdef", -1, 3), error="str.bounds"),
    ),
)
def substring(input_string: str, start_index: int, length: int) -> str:
    """Give a part of a text by its place.

    Args:
        input_string: The text to take from.
        start_index: The place of the first character, in code points from 0.
        length: How many characters to take at most, not below 0.

    Returns:
        The part; it is shorter, or empty, where the text ends before.

    Raises:
        ToolFailed: str.bounds.
    """
    if start_index < 0 or length < 0:
        text = "start_index and length count from 0; give no number below 0"
        raise ToolFailed(text, code="str.bounds", retry="model")
    return input_string[start_index : start_index + length]


@toolset.tool(
    name="tolower",
    policy=PURE,
    when_to_use="To compare without regard to case or to write small; str.toupper goes the other way.",
    examples=(
        Example(("HELLO",), "hello"),
        Example(("ÀÉ 42",), "àé 42"),
        Example((None,), error="arg.missing"),
    ),
)
def to_lower(input_string: str) -> str:
    """Write a text in lower case.

    Args:
        input_string: The text to change.

    Returns:
        The text with each letter in lower case, by Unicode's rules.

    Raises:
        ToolFailed: str.too_large.
    """
    return within_limit(input_string.lower())


@toolset.tool(
    name="toupper",
    policy=PURE,
    when_to_use="For capitals throughout; str.tolower goes the other way.",
    examples=(
        Example(("hello",), "HELLO"),
        Example(("straße",), "STRASSE", note="a letter may become two"),
        Example((["a"],), error="coercion.type"),
    ),
)
def to_upper(input_string: str) -> str:
    """Write a text in upper case.

    Args:
        input_string: The text to change.

    Returns:
        The text with each letter in upper case, by Unicode's rules.

    Raises:
        ToolFailed: str.too_large.
    """
    return within_limit(input_string.upper())


@toolset.tool(
    name="trimspace",
    policy=PURE,
    when_to_use="For white space at both ends; str.trimprefix and str.trimsuffix cut off a given text.",
    examples=(
        Example(("  hello  ",), "hello"),
        Example(("\u00a0two words\n",), "two words", note="white space within stays"),
        Example((), error="arg.missing"),
    ),
)
def trim_space(input_string: str) -> str:
    """Cut off the white space around a text.

    Args:
        input_string: The text to trim.

    Returns:
        The text without the characters at its ends that Unicode calls white space.

    Raises:
        ArgumentError: coercion.type.
    """
    return input_string.strip(SPACE)


@toolset.tool(
    name="trimprefix",
    policy=PURE,
    when_to_use="For a known beginning; str.trimsuffix cuts the end, and str.trimspace white space.",
    examples=(
        Example(("hello world", "hello "), "world"),
        Example(("aab", "a"), "ab", note="it is cut off once"),
        Example(("hello",), error="arg.missing"),
    ),
)
def trim_prefix(input_string: str, prefix: str) -> str:
    """Cut a given beginning off a text, once.

    Args:
        input_string: The text to trim.
        prefix: The beginning to cut off.

    Returns:
        The rest; the text itself where it begins otherwise.

    Raises:
        ArgumentError: coercion.type.
    """
    return input_string.removeprefix(prefix)


@toolset.tool(
    name="trimsuffix",
    policy=PURE,
    when_to_use="For a known end; str.trimprefix cuts the beginning, and str.trimspace white space.",
    examples=(
        Example(("report.txt", ".txt"), "report"),
        Example(("report.txt", ".csv"), "report.txt", note="another end stays"),
        Example(("report.txt", 4), error="coercion.type"),
    ),
)
def trim_suffix(input_string: str, suffix: str) -> str:
    """Cut a given end off a text, once.

    Args:
        input_string: The text to trim.
        suffix: The end to cut off.

    Returns:
        The rest; the text itself where it ends otherwise.

    Raises:
        ArgumentError: coercion.type.
    """
    return input_string.removesuffix(suffix)


@toolset.tool(
    policy=PURE,
    when_to_use="For a text that is known to the letter; str.replaceregex replaces what fits a pattern.",
    examples=(
        Example(("hello world", "l", "X"), "heXXo worXd"),
        Example(("hello world", "l", "X", 1), "heXlo world"),
        Example(("abc", "a", "b", "c"), error="coercion.format"),
    ),
)
def replace(input_string: str, old_substring: str, new_substring: str, count: int = -1) -> str:
    """Put one text in the place of another.

    Args:
        input_string: The text to change.
        old_substring: What to replace; the empty text stands at both ends and between all characters.
        new_substring: What to put there.
        count: How many to replace at most, from the left; below 0 for all.

    Returns:
        The changed text.

    Raises:
        ToolFailed: str.too_large.
    """
    found = input_string.count(old_substring)
    replaced = found if count < 0 else min(count, found)
    refuse_above_limit(size(input_string) + replaced * (size(new_substring) - size(old_substring)))
    return input_string.replace(old_substring, new_substring, replaced)
