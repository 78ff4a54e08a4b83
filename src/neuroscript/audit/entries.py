"""Audit records with checked types, because an audit log may have been edited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from neuroscript.io.text import sendable
from neuroscript.runtime.records import CLOSED

MAX_TIME_SECONDS: Final = 1e12
"""The largest number that is accepted; a greater one is shown as 0."""

COMPLETED: Final = ("ok", CLOSED)
"""The codes of calls that did not fail."""


@attrs.frozen
class Entry:
    """A record with an empty string or 0 for every missing value.

    Attributes:
        kind: ``intent``, ``outcome``, ``refused``, ``recovered`` or another string.
        key: The run and the number of the call.
        items: The number of items in a stream; None for other calls.
        size: The total size of the result in bytes.
    """

    kind: str
    tool: str
    code: str
    rule: str
    key: tuple[str, int]
    parent: int
    time: float
    seconds: float
    needs: tuple[str, ...]
    cut: int
    items: int | None = None
    size: int = 0
    labels: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    session: str = ""
    depth: int = 0

    @property
    def outcome(self) -> str:
        """``ok``, ``failed``, ``refused`` or ``unfinished``; ``""`` for a record that is not about a call."""
        match self.kind:
            case "outcome":
                return "ok" if self.code in COMPLETED else "failed"
            case "refused":
                return "refused"
            case "intent":
                return "unfinished"
            case _:
                return ""


def entry_of(record: Mapping[str, Any]) -> Entry:
    """Return a record as an entry."""
    spent = record.get("spent")
    spent = spent if isinstance(spent, dict) else {}
    return Entry(
        kind=_text(record, "kind"),
        tool=_text(record, "tool"),
        code=_text(record, "code"),
        rule=_text(record, "rule"),
        key=(_text(record, "run"), int(_number(record, "call"))),
        parent=int(_number(record, "parent")),
        time=_number(record, "time"),
        seconds=_number(record, "seconds"),
        needs=_texts(record, "needs"),
        cut=int(_number(record, "cut")),
        items=int(_number(spent, "items")) if "items" in spent else None,
        size=int(_number(spent, "result_bytes")),
        labels=_texts(record, "labels"),
        effects=_texts(record, "effects"),
        session=_text(record, "session"),
        depth=int(_number(record, "depth")),
    )


def calls_of(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield one entry per call: its outcome, and at the end the calls without an outcome."""
    begun: dict[tuple[str, int], Entry] = {}
    for entry in entries:
        if entry.kind == "intent":
            begun[entry.key] = entry
            continue
        begun.pop(entry.key, None)
        yield entry
    yield from begun.values()


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    return sendable(value) if isinstance(value, str) else ""


def _texts(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = record.get(name)
    return tuple(sendable(each) for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _number(record: Mapping[str, Any], name: str) -> float:
    value = record.get(name)
    if type(value) not in (int, float) or not -MAX_TIME_SECONDS < value < MAX_TIME_SECONDS:  # type: ignore[operator]
        return 0.0
    return float(value)  # type: ignore[arg-type]
