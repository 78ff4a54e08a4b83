"""Shortened texts of records, because a log that was edited can contain texts of any length."""

from __future__ import annotations

import json
from typing import Any, Final

import attrs

from neuroscript.audit.call_tree import CallNode
from neuroscript.audit.entries import Entry
from neuroscript.io.text import shorten

MAX_LISTED_TEXTS: Final = 100
"""Maximum number of needs, labels or effects of one call on a page."""

MAX_RECORD_CHARS: Final = 200_000
"""Maximum number of characters of a record as JSON."""


def shorten_entry(entry: Entry) -> Entry:
    """Return an entry with shortened texts."""
    return attrs.evolve(
        entry,
        kind=shorten(entry.kind),
        tool=shorten(entry.tool),
        code=shorten(entry.code),
        rule=shorten(entry.rule),
        session=shorten(entry.session),
        key=(shorten(entry.key[0]), entry.key[1]),
        needs=_shorten_all(entry.needs),
        labels=_shorten_all(entry.labels),
        effects=_shorten_all(entry.effects),
    )


def _shorten_all(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(shorten, texts[:MAX_LISTED_TEXTS]))


def shorten_node(node: CallNode) -> CallNode:
    """Return a call of a tree with shortened texts, without the calls that are nested in it."""
    return attrs.evolve(node, tool=shorten(node.tool), code=shorten(node.code), rule="", nested=[])


def record_text(record: dict[str, Any]) -> str:
    """Return a record as JSON in lines."""
    return shorten(json.dumps(record, indent=2, ensure_ascii=False), MAX_RECORD_CHARS)
