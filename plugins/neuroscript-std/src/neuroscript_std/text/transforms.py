"""``str`` tools that transform a string: substring, case, trimming, replacement.

A character is a Unicode code point.
"""

from __future__ import annotations

from typing import Final

from neuroscript import Example, ToolFailed, ToolPolicy, Toolset
from neuroscript_std.text.size import refuse_above_limit, require_within_limit, utf8_length

PURE: Final = ToolPolicy(effects=("pure",))

SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode's White_Space property; Python also strips the separators 1C to 1F, which can be data."""

toolset = Toolset("str")


@toolset.tool(
    policy=PURE,
    when_to_use="Use it for a part at a known position; to split, use str.split, to find by pattern, str.findallregex.",
    examples=(
        Example(("abcdef", 1, 3), "bcd"),
        Example(("abcdef", 3, 10), "def", note="the result stops at the end of the string"),
        Example(("abcdef", -1, 3), error="str.bounds"),
    ),
)
def substring(input_string: str, start_index: int, length: int) -> str:
    """Extract a substring: the part of a string from a start index, with a maximum length.

    Args:
        input_string: The string to extract from.
        start_index: Index of the first character, in code points, starting at 0.
        length: Maximum number of characters; must not be negative.

    Returns:
        The substring; shorter or empty if the string ends first.

    Raises:
        ToolFailed: str.bounds.
    """
    if start_index < 0 or length < 0:
        text = "start_index and length must not be negative"
        raise ToolFailed(text, code="str.bounds", retry="model")
    return input_string[start_index : start_index + length]


@toolset.tool(
    name="tolower",
    policy=PURE,
    when_to_use="Use it for lower case or before a case-insensitive comparison; for upper case, use str.toupper.",
    examples=(
        Example(("HELLO",), "hello"),
        Example(("ÀÉ 42",), "àé 42"),
        Example((None,), error="arg.missing"),
    ),
)
def to_lower(input_string: str) -> str:
    """Convert a string to lowercase.

    Args:
        input_string: The string to transform.

    Returns:
        The lowercase string, by Unicode rules.

    Raises:
        ToolFailed: str.too_large.
    """
    return require_within_limit(input_string.lower())


@toolset.tool(
    name="toupper",
    policy=PURE,
    when_to_use="Use it for upper case; for lower case, use str.tolower.",
    examples=(
        Example(("hello",), "HELLO"),
        Example(("straße",), "STRASSE", note="one letter can become two"),
        Example((["a"],), error="coercion.type"),
    ),
)
def to_upper(input_string: str) -> str:
    """Convert a string to uppercase.

    Args:
        input_string: The string to transform.

    Returns:
        The uppercase string, by Unicode rules.

    Raises:
        ToolFailed: str.too_large.
    """
    return require_within_limit(input_string.upper())


@toolset.tool(
    name="trimspace",
    policy=PURE,
    when_to_use="Use it for whitespace; to remove a known prefix or suffix, use str.trimprefix or str.trimsuffix.",
    examples=(
        Example(("  hello  ",), "hello"),
        Example(("\u00a0two words\n",), "two words", note="inner whitespace stays"),
        Example((), error="arg.missing"),
    ),
)
def trim_space(input_string: str) -> str:
    """Remove leading and trailing whitespace from a string.

    Args:
        input_string: The string to trim.

    Returns:
        The string without Unicode whitespace at its ends.

    Raises:
        ArgumentError: coercion.type.
    """
    return input_string.strip(SPACE)


@toolset.tool(
    name="trimprefix",
    policy=PURE,
    when_to_use="Use it for a known prefix; for a suffix, use str.trimsuffix, for whitespace, str.trimspace.",
    examples=(
        Example(("hello world", "hello "), "world"),
        Example(("aab", "a"), "ab", note="it is removed once"),
        Example(("hello",), error="arg.missing"),
    ),
)
def trim_prefix(input_string: str, prefix: str) -> str:
    """Remove a prefix from the start of a string, once.

    Args:
        input_string: The string to trim.
        prefix: The prefix to remove.

    Returns:
        The string without the prefix, or unchanged if it does not start with it.

    Raises:
        ArgumentError: coercion.type.
    """
    return input_string.removeprefix(prefix)


@toolset.tool(
    name="trimsuffix",
    policy=PURE,
    when_to_use="Use it for a known suffix; for a prefix, use str.trimprefix, for whitespace, str.trimspace.",
    examples=(
        Example(("report.txt", ".txt"), "report"),
        Example(("report.txt", ".csv"), "report.txt", note="any other suffix stays"),
        Example(("report.txt", 4), error="coercion.type"),
    ),
)
def trim_suffix(input_string: str, suffix: str) -> str:
    """Remove a suffix, such as a file extension, from the end of a string, once.

    Args:
        input_string: The string to trim.
        suffix: The suffix to remove.

    Returns:
        The string without the suffix, or unchanged if it does not end with it.

    Raises:
        ArgumentError: coercion.type.
    """
    return input_string.removesuffix(suffix)


@toolset.tool(
    policy=PURE,
    when_to_use="Use it for a literal substring; to replace by a regular expression, use str.replaceregex.",
    examples=(
        Example(("hello world", "l", "X"), "heXXo worXd"),
        Example(("hello world", "l", "X", 1), "heXlo world"),
        Example(("abc", "a", "b", "c"), error="coercion.format"),
    ),
)
def replace(input_string: str, old_substring: str, new_substring: str, count: int = -1) -> str:
    """Replace all occurrences of a substring with another string.

    Args:
        input_string: The string to transform.
        old_substring: The substring to replace; an empty string matches between all characters and at both ends.
        new_substring: The replacement string.
        count: Maximum number of replacements, from the left; negative replaces all.

    Returns:
        The string with the replacements.

    Raises:
        ToolFailed: str.too_large.
    """
    found = input_string.count(old_substring)
    replaced = found if count < 0 else min(count, found)
    refuse_above_limit(utf8_length(input_string) + replaced * (utf8_length(new_substring) - utf8_length(old_substring)))
    return input_string.replace(old_substring, new_substring, replaced)
