"""Reading of audit logs: the records of a file or a database as plain data, one after the other.

The content is not trusted: the file may not be an audit log at all.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import quote

from neuroscript.audit.chain import MAX_LINE_BYTES
from neuroscript.audit.locks import wait
from neuroscript.audit.sqlite import COLUMNS, IN_JSON, has_labels
from neuroscript.coercion.parameters import FUNCTION, PATH, optional, require
from neuroscript.errors import AuditError
from neuroscript.io.text import NotJSON, parse_json
from neuroscript.io.text_files import open_at_once

MAGIC: Final = b"SQLite format 3\0"
"""The beginning of a database file."""

BUFFER: Final = 256 * 1024

SELECT: Final = "SELECT id, {} FROM calls WHERE {} ORDER BY id"


def read(path: str | os.PathLike[str], *, unread: Callable[[int], None] | None = None) -> Iterator[dict[str, Any]]:
    """Yield each record of an audit log as stored, oldest first. Use `verify` to find out whether it is authentic.

    Args:
        path: A file of JSON lines, or a database.
        unread: Called with the number of each line that is not a record; by default such lines are skipped.

    Raises:
        AuditError: If a line is too long, or the database is not an audit log.
        OSError: If the file cannot be read.
    """
    require("read", path=(path, PATH), unread=(unread, optional(FUNCTION)))
    return _records_at(path, unread)


def _records_at(path: str | os.PathLike[str], unread: Callable[[int], None] | None) -> Iterator[dict[str, Any]]:
    with open_log(path) as stream:
        if not is_database(stream):
            yield from records(stream, unread)
            return
    for _, row in rows(path):
        yield row


def open_log(path: str | os.PathLike[str]) -> BinaryIO:
    """Open an audit log for reading, or raise an OSError, for example for a named pipe."""
    return open(path, "rb", buffering=BUFFER, opener=open_at_once)


def is_database(stream: BinaryIO) -> bool:
    """Return whether a stream at its beginning is a database, without consuming anything."""
    peek: Callable[[int], bytes] = stream.peek  # type: ignore[attr-defined]
    return peek(len(MAGIC)).startswith(MAGIC)


def records(stream: BinaryIO, unread: Callable[[int], None] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the records in the rest of a stream of lines."""
    for number, raw in number_lines(stream):
        record = data_of(raw)
        if record is not None:
            yield record
        elif unread is not None:
            unread(number)


def number_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the number of each line, from 1, and its bytes; all but the last end in a newline.

    A line without a newline is read again when no process writes, because a writer may not have finished it.

    Raises:
        AuditError: If a line is too long.
    """
    number = 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if not raw.endswith(b"\n") and len(raw) <= MAX_LINE_BYTES:
            wait(stream.fileno())
            raw += stream.readline(MAX_LINE_BYTES + 1)
        if len(raw) > MAX_LINE_BYTES:
            raise AuditError(f"line {number} has more than {MAX_LINE_BYTES} bytes, so the file is not an audit log")
        yield number, raw


def data_of(raw: bytes) -> dict[str, Any] | None:
    """Return the record in a line, or None if the line is not a record."""
    try:
        data = parse_json(raw.decode())
    except (NotJSON, UnicodeDecodeError):
        return None
    return data if isinstance(data, dict) and isinstance(data.get("kind"), str) else None


def rows(path: str | os.PathLike[str], after: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the id and the record of each database row after the id *after*, in order.

    Raises:
        AuditError: If the database is not an audit log or cannot be read.
    """
    try:
        with closing(open_database(path)) as connection:
            yield from _rows_where(connection, "id > ?", (after,))
    except sqlite3.Error as error:
        raise unreadable_error(error) from None


def rows_of(connection: sqlite3.Connection, ids: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the id and the record of each database row with one of these ids, in order; raise errors as SQLite does."""
    yield from _rows_where(connection, f"id IN ({', '.join('?' * len(ids))})", tuple(ids))


def _rows_where(
    connection: sqlite3.Connection, condition: str, parameters: tuple[int, ...]
) -> Iterator[tuple[int, dict[str, Any]]]:
    columns = COLUMNS if has_labels(connection) else COLUMNS[:-1]
    for id, *cells in connection.execute(SELECT.format(", ".join(columns), condition), parameters):
        yield id, _row(dict(zip(columns, cells, strict=True)))


def open_database(path: str | os.PathLike[str]) -> sqlite3.Connection:
    """Return a read-only connection to a database."""
    return sqlite3.connect(f"file:{quote(os.fsencode(Path(path).absolute()))}?mode=ro", uri=True)


def unreadable_error(error: sqlite3.Error) -> AuditError:
    """Return the error for a database that cannot be read, without quoting SQLite's message."""
    name = getattr(error, "sqlite_errorname", "") or type(error).__name__
    return AuditError(f"the file is not an audit log database, or cannot be read ({name})")


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as the record that a file has: a call that has not ended has no code and no duration."""
    for name in row.keys() & IN_JSON:
        try:
            row[name] = json.loads(row[name])
        except (TypeError, ValueError, RecursionError):
            row[name] = None
    if not row.get("labels"):
        row.pop("labels", None)
    if row["kind"] == "intent":
        for name in ("code", "seconds", "spent"):
            del row[name]
    return row
