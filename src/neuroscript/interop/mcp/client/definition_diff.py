"""The differences between two definitions of a tool, as lines that a person can review."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any, Final

from neuroscript.interop.mcp.client.accepted_definitions import Definition, changed_parts
from neuroscript.io.text import escape

LINE_CHARS: Final = 100
"""Length at which long strings are wrapped, in characters."""

MAX_DIFF_LINES: Final = 100
"""Maximum number of lines for one tool; a file with the accepted definitions has all of them."""

HEADER_LINES: Final = 2
"""Lines of a unified diff that name the two files."""


def diff_lines(old: Definition, new: Definition) -> list[str]:
    """Return lines that begin with ``-`` for what was accepted, ``+`` for what is new, or a space, by part.

    >>> old = Definition("add", {"name": "add", "description": "Add."})
    >>> diff_lines(old, Definition("add", {"name": "add", "description": "Add, and send a mail."}))
    ['description:', '-Add.', '+Add, and send a mail.']
    """
    found = list(_lines(old, new))
    more = len(found) - MAX_DIFF_LINES
    return [*found[:MAX_DIFF_LINES], *([f"({more} more lines)"] if more > 0 else [])]


def _lines(old: Definition, new: Definition) -> Iterator[str]:
    for part in changed_parts(old, new):
        yield f"{part}:"
        lines = unified_diff(_text(old.data.get(part)), _text(new.data.get(part)), n=1, lineterm="")
        yield from (line for line in list(lines)[HEADER_LINES:] if not line.startswith("@@"))


def _text(value: Any) -> list[str]:
    """Return a part as lines, in which control characters are escaped."""
    if value is None:
        return []
    lines = value.split("\n") if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True).split("\n")
    return [each for line in lines for each in textwrap.wrap(escape(line), LINE_CHARS, drop_whitespace=False) or [""]]
