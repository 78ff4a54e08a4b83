"""``str`` tools that split and join strings."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, Final

from neuroscript import Example, ToolPolicy, Toolset
from neuroscript_std.text.jsontext import compact
from neuroscript_std.text.size import MAX_RESULT_VALUES, refuse_above_limit, refuse_above_values, utf8_length
from neuroscript_std.text.transforms import SPACE

PURE: Final = ToolPolicy(effects=("pure",))

WORD: Final = re.compile(f"[^{SPACE}]+")

toolset = Toolset("str")


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to combine strings without a separator; with a separator, use str.join.",
    examples=(
        Example((["a", "b", "c"],), "abc"),
        Example((["n=", 1, True, None],), "n=1truenull", note="other values are written as JSON"),
        Example(("abc",), error="coercion.type"),
    ),
)
def concat(strings_list: list[Any]) -> str:
    """Concatenate a list of strings into one string, without a separator.

    Args:
        strings_list: The strings, in order; other values are written as JSON.

    Returns:
        The concatenated string.

    Raises:
        ToolFailed: str.too_large.
    """
    return _join_values(strings_list, "")


@toolset.tool(
    policy=PURE,
    when_to_use="Use it with a separator such as a comma; without one, use str.concat. To split again, use str.split.",
    examples=(
        Example((["a", "b", "c"], ","), "a,b,c"),
        Example((["a", 1, True, [2.0]], ", "), "a, 1, true, [2.0]", note="other values are written as JSON"),
        Example((["a", "b"],), error="arg.missing"),
    ),
)
def join(string_list: list[Any], separator: str) -> str:
    """Join a list of strings into one string, with a separator between them.

    Args:
        string_list: The strings, in order; other values are written as JSON.
        separator: The string between two items.

    Returns:
        The joined string; empty for an empty list.

    Raises:
        ToolFailed: str.too_large.
    """
    return _join_values(string_list, separator)


def _join_values(values: list[Any], separator: str) -> str:
    texts = [value if type(value) is str else compact(value) for value in values]
    refuse_above_limit(sum(map(utf8_length, texts)) + utf8_length(separator) * max(0, len(texts) - 1))
    return separator.join(texts)


@toolset.tool(
    policy=PURE,
    when_to_use="Use it for a fixed delimiter; for whitespace, use str.splitwords, for a pattern, str.findallregex.",
    examples=(
        Example(("a,b,,c", ","), ["a", "b", "", "c"]),
        Example(("abc", ""), ["a", "b", "c"], note="an empty delimiter splits into characters"),
        Example(("a,b",), error="arg.missing"),
    ),
)
def split(input_string: str, delimiter: str) -> list[str]:
    """Split a string into a list of parts at each occurrence of a delimiter, such as a comma.

    Args:
        input_string: The string to split.
        delimiter: The string to split at; an empty one splits between all characters.

    Returns:
        The parts in order, without the delimiters; empty parts are included.

    Raises:
        ToolFailed: str.too_large.
    """
    refuse_above_values(input_string.count(delimiter) + 1 if delimiter else len(input_string))
    return input_string.split(delimiter) if delimiter else [*input_string]


@toolset.tool(
    name="splitwords",
    policy=PURE,
    when_to_use="Use it for words; to split at another delimiter and keep empty parts, use str.split.",
    examples=(
        Example(("  one two\n three ",), ["one", "two", "three"]),
        Example(("",), []),
        Example((7,), error="coercion.type"),
    ),
)
def split_words(input_string: str) -> list[str]:
    """Split a string into a list of words, at whitespace.

    Args:
        input_string: The string to split; words are separated by any run of Unicode whitespace.

    Returns:
        The words in order; none is empty.

    Raises:
        ToolFailed: str.too_large.
    """
    words = [match[0] for match in islice(WORD.finditer(input_string), MAX_RESULT_VALUES + 1)]
    refuse_above_values(len(words))
    return words
