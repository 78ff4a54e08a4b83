"""Names of tools and groups: the canonical spelling, the spelling for model APIs without dots, and name conversion."""

from __future__ import annotations

import re
from typing import Final

WORD: Final = re.compile(r"[a-z](?:_?[a-z0-9])*_?")
"""A tool's name or one segment of a group. It contains no ``__``, which stands for a dot in model APIs."""


WIRE_DOT: Final = re.compile(r"__(?=[a-z])")
"""A dot in a model API's spelling. A letter must follow, so a segment may end in ``_``."""


MAX_NAME_CHARS: Final = 512
"""The maximum length of the canonical name of a tool including its group, and of a pattern for tools."""


MAX_SPELLING_CHARS: Final = 2 * MAX_NAME_CHARS
"""The maximum length of a spelling that is parsed: dots may be doubled, and ``tool.`` may precede the name."""


def canonical(name: str) -> str:
    """Return the canonical spelling of a tool's name: lower case, without a leading ``tool.``.

    A string longer than `MAX_SPELLING_CHARS` cannot be a name and is returned unchanged.

    >>> canonical("Tool.tool.Math.Add")
    'math.add'
    """
    if len(name) > MAX_SPELLING_CHARS:
        return name
    spelling = name.lower()
    while spelling.startswith("tool."):
        spelling = spelling[5:]
    return spelling


def upstream_name(name: str) -> str:
    """Return the upstream spelling of a canonical name: ``tool.group.name``."""
    return f"tool.{name}"


def wire_name(name: str) -> str:
    """Return the spelling for model APIs that allow no dots: ``group__name``."""
    return name.replace(".", "__")


def from_wire(name: str) -> str:
    """Return the canonical spelling of a name from a model API, with or without dots.

    A string longer than `MAX_SPELLING_CHARS` cannot be a name and is returned unchanged.

    >>> from_wire("system__io__get")
    'system.io.get'
    """
    return name if len(name) > MAX_SPELLING_CHARS else canonical(WIRE_DOT.sub(".", name.lower()))


def is_word(text: str) -> bool:
    """Return whether *text*, in lower case, is valid as a tool's name or as one segment of a group."""
    return WORD.fullmatch(text) is not None


def is_group_name(text: str) -> bool:
    """Return whether *text*, in canonical spelling, is a valid group: one word, or several separated by dots."""
    return len(text) <= MAX_NAME_CHARS and all(map(is_word, text.split(".")))


def is_full_name(text: str) -> bool:
    """Return whether *text*, in canonical spelling, is a valid full name of a tool: ``group.name``."""
    return "." in text and is_group_name(text)


HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""The start of a word within camelCase."""


NON_WORD: Final = re.compile(r"[^a-z0-9]+")


MAX_WORD_CHARS: Final = 128
"""The maximum number of characters of a word."""


def to_snake_case(text: object) -> str:
    """Return a valid word for a third-party name, or ``""`` if no word can be derived.

    >>> to_snake_case("getHTTPStatus"), to_snake_case("pets/list-all"), to_snake_case("2fa")
    ('get_http_status', 'pets_list_all', 'n2fa')
    """
    if not isinstance(text, str) or len(text) > MAX_SPELLING_CHARS:
        return ""
    word = NON_WORD.sub("_", HUMP.sub("_", text).lower()).strip("_")
    word = f"n{word}" if word[:1].isdigit() else word
    return word if is_word(word) and len(word) <= MAX_WORD_CHARS else ""
