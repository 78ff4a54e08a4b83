"""Values of traces as text for pages."""

from __future__ import annotations

import json
from typing import Any, Final

from neuroscript.coercion.plain_data import to_plain
from neuroscript.io.text import json_text, shorten

MAX_VALUE_CHARS: Final = 4_000
"""Maximum number of characters of one value in a page."""


def value_text(value: Any) -> str:
    """Return a string as it is, and any other value as JSON of several lines, cut to `MAX_VALUE_CHARS`.

    >>> value_text(None), value_text("a"), value_text([1])
    ('', 'a', '[\\n  1\\n]')
    """
    if value is None:
        return ""
    if isinstance(value, str):
        text = value
    else:
        try:
            text = json.dumps(json.loads(json_text(to_plain(value))), indent=2, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            return "This value cannot be shown."
    return shorten(text, MAX_VALUE_CHARS)
