"""Names from outside as words of ours: those of tools and of groups.

Source: contract section 1; issues "OpenAPI" and "MCP", names.
"""

from __future__ import annotations

import re
from typing import Final

from neuroscript.names import MAX_SPELLING_CHARS, is_word

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
