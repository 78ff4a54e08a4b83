"""Selected records of an audit log as a file: JSON lines, or CSV that a spreadsheet shows as it is."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import gmtime, strftime
from typing import Any, Final

import attrs

from neuroscript.audit.log_reader import LoggedCall
from neuroscript.io.text import escape

LINES_PER_PART: Final = 200
"""Number of records that are sent at once."""

COLUMNS: Final = (
    *("time", "kind", "outcome", "tool", "code", "rule", "seconds", "run", "call", "parent", "depth", "session"),
    *("effects", "needs", "labels", "distribution", "version", "policy", "digest"),
)
FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How a cell begins that a spreadsheet would evaluate; some also evaluate the wide forms of these characters."""


@attrs.frozen
class ExportFormat:
    """A format of exported records.

    Attributes:
        media_type: The media type.
        head: The first line, or ``""``.
        line: Returns the line for a call, with its end.
    """

    media_type: str
    head: str
    line: Callable[[LoggedCall], str]


def parts(calls: Iterable[LoggedCall], format: ExportFormat) -> Iterator[str]:
    """Yield the content of a file in parts."""
    lines = [format.head] if format.head else []
    for call in calls:
        lines.append(format.line(call))
        if len(lines) >= LINES_PER_PART:
            yield "".join(lines)
            lines = []
    yield "".join(lines)


def file_name(path: Path, suffix: str) -> str:
    """Return a name for an exported file, in letters that need no quotes in a header.

    >>> import re
    >>> re.sub(r"\\d", "0", file_name(Path('logs/my "trail".jsonl'), "csv"))
    'audit-my-trail-00000000-000000.csv'
    """
    stem = re.sub(r"[^A-Za-z0-9_]+", "-", path.stem)[:60].strip("-") or "log"
    return f"audit-{stem}-{strftime('%Y%m%d-%H%M%S', gmtime())}.{suffix}"


def _json_line(call: LoggedCall) -> str:
    return f"{json.dumps(call.record)}\n"


def _csv_line(call: LoggedCall) -> str:
    return _csv([_cell(call, name) for name in COLUMNS])


def _cell(call: LoggedCall, name: str) -> str:
    entry = call.entry
    match name:
        case "time":
            return _moment(entry.time)
        case "outcome":
            return entry.outcome
        case _:
            value: Any = call.record.get(name)
    if isinstance(value, list):
        return " ".join(each for each in value if isinstance(each, str))
    return "" if value is None else str(value)


def _moment(seconds: float) -> str:
    try:
        return f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(seconds))}Z"
    except (OverflowError, ValueError, OSError):
        return ""


def _csv(cells: list[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(_inert(cell) for cell in cells)
    return buffer.getvalue()


def _inert(cell: str) -> str:
    """Return a cell that a spreadsheet does not evaluate, without invisible characters."""
    return escape(f"'{cell}" if cell.lstrip(" ").startswith(FORMULAS) else cell)


FORMATS: Final = {
    "jsonl": ExportFormat("application/x-ndjson", "", _json_line),
    "csv": ExportFormat("text/csv; charset=utf-8; header=present", _csv(list(COLUMNS)), _csv_line),
}
"""The formats by the suffix of their files."""
