"""Texts put together out of pieces, and taken apart into them.

Source: upstream ``tools_string_split_join.go``.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, Final

from neuroscript import Example, ToolPolicy, Toolset
from neuroscript_std.text.changes import SPACE
from neuroscript_std.text.jsontext import compact
from neuroscript_std.text.size import VALUES, refuse_above_limit, refuse_above_values, size

PURE: Final = ToolPolicy(effects=("pure",))

WORD: Final = re.compile(f"[^{SPACE}]+")

toolset = Toolset("str")


@toolset.tool(
    policy=PURE,
    when_to_use="To put pieces together with nothing between them; str.join puts a text between them.",
    examples=(
        Example((["a", "b", "c"],), "abc"),
        Example((["n=", 1, True, None],), "n=1truenull", note="what is no text is written as JSON"),
        Example(("abc",), error="coercion.type"),
    ),
)
def concat(strings_list: list[Any]) -> str:
    """Put texts together, one directly behind the other.

    Args:
        strings_list: The pieces in order; one that is no text is written as JSON.

    Returns:
        One text of all pieces.

    Raises:
        ToolFailed: str.too_large.
    """
    return _joined(strings_list, "")


@toolset.tool(
    policy=PURE,
    when_to_use="To put pieces together with a mark between them; str.concat needs none, str.split goes back.",
    examples=(
        Example((["a", "b", "c"], ","), "a,b,c"),
        Example((["a", 1, True, [2.0]], ", "), "a, 1, true, [2.0]", note="what is no text is written as JSON"),
        Example((["a", "b"],), error="arg.missing"),
    ),
)
def join(string_list: list[Any], separator: str) -> str:
    """Put texts together with another text between each two.

    Args:
        string_list: The pieces in order; one that is no text is written as JSON.
        separator: What stands between two pieces.

    Returns:
        One text of all pieces; empty for an empty list.

    Raises:
        ToolFailed: str.too_large.
    """
    return _joined(string_list, separator)


def _joined(values: list[Any], separator: str) -> str:
    texts = [value if type(value) is str else compact(value) for value in values]
    refuse_above_limit(sum(map(size, texts)) + size(separator) * max(0, len(texts) - 1))
    return separator.join(texts)


@toolset.tool(
    policy=PURE,
    when_to_use="To part a text at a fixed mark; str.splitwords parts at white space, str.findallregex by a pattern.",
    examples=(
        Example(("a,b,,c", ","), ["a", "b", "", "c"]),
        Example(("abc", ""), ["a", "b", "c"], note="an empty mark gives the characters"),
        Example(("a,b",), error="arg.missing"),
    ),
)
def split(input_string: str, delimiter: str) -> list[str]:
    """Part a text at each place where another stands.

    Args:
        input_string: The text to part.
        delimiter: The text that stands between the parts; an empty one parts between all characters.

    Returns:
        The parts in order, without the delimiter; one more than there are delimiters.

    Raises:
        ToolFailed: str.too_large.
    """
    refuse_above_values(input_string.count(delimiter) + 1 if delimiter else len(input_string))
    return input_string.split(delimiter) if delimiter else [*input_string]


@toolset.tool(
    name="splitwords",
    policy=PURE,
    when_to_use="For words between white space; str.split parts at another mark and keeps empty parts.",
    examples=(
        Example(("  one two\n three ",), ["one", "two", "three"]),
        Example(("",), []),
        Example((7,), error="coercion.type"),
    ),
)
def split_words(input_string: str) -> list[str]:
    """Part a text into its words.

    Args:
        input_string: The text to part; any run of Unicode's white space stands between two words.

    Returns:
        The words in order, none of them empty.

    Raises:
        ToolFailed: str.too_large.
    """
    words = [match[0] for match in islice(WORD.finditer(input_string), VALUES + 1)]
    refuse_above_values(len(words))
    return words
