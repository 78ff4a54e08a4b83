"""Audit records as rows for display; their types are checked, because an audit log may have been edited."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import attrs

from neuroscript.cli.terminal.output import Cell, Rows, Style, cell
from neuroscript.io.text import duration
from neuroscript.runtime.records import CLOSED

WIDTHS: Final = (20, 16)
"""The widths of the time and tool columns, which align the pages of a long output."""

MAX_TIME_SECONDS: Final = 1e12
"""The largest number that is accepted; a greater one is shown as 0."""


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
    )


def page(entries: list[Entry], begun: str) -> Rows:
    """Return entries as rows with the time, the tool and the outcome of the call.

    Args:
        begun: The text for a call that began.
    """
    rows = [(_moment(each.time), cell(each.tool, "name"), _subject(each, begun)) for each in entries]
    return Rows(tuple(rows), widths=WIDTHS)


def _moment(seconds: float) -> Cell:
    try:
        return Cell(time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(seconds)), "dim")
    except (OverflowError, ValueError, OSError):
        return Cell("?", "dim")


def _subject(entry: Entry, begun: str) -> Cell:
    call = f"call {entry.key[1]}" + (f" in {entry.parent}" if entry.parent else "")
    rest = f"; {', '.join(entry.needs)}" if entry.needs else ""
    rest += f"; labels {', '.join(entry.labels)}" if entry.labels else ""
    match entry.kind:
        case "outcome":
            return cell(
                f"{entry.code}, {duration(entry.seconds)}, {call}{_stream_size(entry)}{rest}", _style(entry.code)
            )
        case "refused":
            by = f" by {entry.rule}" if entry.rule else ""
            return cell(f"refused{by}: {entry.code}, {call}{rest}", "bad")
        case "intent":
            return cell(f"{begun}, {call}{rest}", "dim")
        case "recovered":
            return cell(f"recovered after an incomplete record of {entry.cut} bytes", "mended")
        case _:
            return cell(f"unknown kind of record: {entry.kind}", "mended")


def _style(code: str) -> Style:
    return "good" if code == "ok" else "mended" if code == CLOSED else "bad"


def _stream_size(entry: Entry) -> str:
    """Return the size of a stream, or ``""`` for other calls."""
    if entry.items is None:
        return ""
    return f", {entry.items} item{'' if entry.items == 1 else 's'}, {entry.size} bytes"


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


def _texts(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = record.get(name)
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _number(record: Mapping[str, Any], name: str) -> float:
    value = record.get(name)
    if type(value) not in (int, float) or not -MAX_TIME_SECONDS < value < MAX_TIME_SECONDS:  # type: ignore[operator]
        return 0.0
    return float(value)  # type: ignore[arg-type]
