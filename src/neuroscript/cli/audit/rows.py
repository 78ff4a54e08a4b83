"""Audit entries as rows for display."""

from __future__ import annotations

from typing import Final

from neuroscript.audit.entries import Entry
from neuroscript.cli.terminal.output import Cell, Rows, Style, cell
from neuroscript.io.text import duration, utc_time
from neuroscript.runtime.records import CLOSED

WIDTHS: Final = (20, 16)
"""The widths of the time and tool columns, which align the pages of a long output."""


def page(entries: list[Entry], begun: str) -> Rows:
    """Return entries as rows with the time, the tool and the outcome of the call.

    Args:
        begun: The text for a call that began.
    """
    rows = [(Cell(utc_time(each.time), "dim"), cell(each.tool, "name"), _subject(each, begun)) for each in entries]
    return Rows(tuple(rows), widths=WIDTHS)


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
