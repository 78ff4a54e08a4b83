"""What tools are called: one canonical spelling, the spelling for wires that know no dot, and how long they may be.

Source: contract sections 1 and 2; upstream ``canonicalizer.go``.

Names from outside as words of ours: those of tools and of groups.

Source: contract section 1; issues "OpenAPI" and "MCP", names.
"""

from __future__ import annotations

import re
from typing import Final

WORD: Final = re.compile(r"[a-z](?:_?[a-z0-9])*_?")
"""A tool's name or one segment of a group: no ``__``, which the wire keeps for itself."""


WIRE_DOT: Final = re.compile(r"__(?=[a-z])")
"""A dot on the wire; what follows it begins a word, so that a segment may end in ``_``."""


MAX_NAME_CHARS: Final = 512
"""How many characters the canonical name of a tool may have, with its group; a pattern of tools likewise."""


MAX_SPELLING_CHARS: Final = 2 * MAX_NAME_CHARS
"""How many characters of a spelling are read: dots may be doubled on the wire, and ``tool.`` may stand before it."""


def canonical(name: str) -> str:
    """Return the one spelling of a tool's name: lower case, without any leading ``tool.``

    A text of more than `MAX_SPELLING_CHARS` names no tool and is returned as it is.

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
    """Return upstream's spelling of a canonical name: ``tool.group.name``."""
    return f"tool.{name}"


def wire_name(name: str) -> str:
    """Return the spelling for model APIs that allow no dot: ``group__name``."""
    return name.replace(".", "__")


def from_wire(name: str) -> str:
    """Return the canonical spelling of a name as a model API sends it, with dots or without.

    A text of more than `MAX_SPELLING_CHARS` names no tool and is returned as it is.

    >>> from_wire("system__io__get")
    'system.io.get'
    """
    return name if len(name) > MAX_SPELLING_CHARS else canonical(WIRE_DOT.sub(".", name.lower()))


def is_word(text: str) -> bool:
    """Tell whether *text*, already lower case, can be a tool's name or one segment of a group."""
    return WORD.fullmatch(text) is not None


def is_group_name(text: str) -> bool:
    """Tell whether *text*, already canonical, can be a group: one word, or several with dots between them."""
    return len(text) <= MAX_NAME_CHARS and all(map(is_word, text.split(".")))


def is_full_name(text: str) -> bool:
    """Tell whether *text*, already canonical, can be the whole name of a tool, ``group.name``."""
    return "." in text and is_group_name(text)


HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where a word begins within camelCase."""


OTHERS: Final = re.compile(r"[^a-z0-9]+")


LONGEST: Final = 128
"""How many characters a word may have."""


def word_of(text: object) -> str:
    """Return the word that a name from outside makes, or ``""`` where it makes none.

    >>> word_of("getHTTPStatus"), word_of("pets/list-all"), word_of("2fa")
    ('get_http_status', 'pets_list_all', 'n2fa')
    """
    if not isinstance(text, str) or len(text) > MAX_SPELLING_CHARS:
        return ""
    word = OTHERS.sub("_", HUMP.sub("_", text).lower()).strip("_")
    word = f"n{word}" if word[:1].isdigit() else word
    return word if is_word(word) and len(word) <= LONGEST else ""
