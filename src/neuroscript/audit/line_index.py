"""An index of an audit log of JSON lines: a temporary table of calls, in which SQL finds the bytes of each record.

The file is indexed from its end to its beginning, so that its newest records are available at once, and lines that are
appended later are added. SQLite stores the table in a private file that it deletes; memory is limited by its cache.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import Any, BinaryIO, Final

from neuroscript.audit.chain import MAX_LINE_BYTES
from neuroscript.audit.encoding import list_text
from neuroscript.audit.entries import entry_of
from neuroscript.audit.reader import data_of, open_log
from neuroscript.errors import AuditError

BLOCK_BYTES: Final = 64 * 1024
"""Number of bytes that are read at once; quadrupled as long as they contain no complete line."""

SCAN_BYTES: Final = 256 * 1024
"""Number of bytes in which lines are counted at once."""

CACHE_KIB: Final = 8 * 1024
"""Maximum memory for pages of the table."""

SCHEMA: Final = """
PRAGMA journal_mode = OFF;
CREATE TABLE calls (
    id INTEGER PRIMARY KEY, size INTEGER, run TEXT, call INTEGER, parent INTEGER, depth INTEGER, session TEXT,
    kind TEXT, tool TEXT, code TEXT, rule TEXT, time REAL, seconds REAL, effects TEXT, labels TEXT
);
CREATE INDEX calls_by_number ON calls (run, call);
CREATE INDEX calls_by_tool ON calls (tool, time);
CREATE INDEX calls_by_failure ON calls (code, time) WHERE code <> 'ok';
CREATE INDEX calls_by_parent ON calls (run, parent) WHERE depth > 1;
"""

INSERT: Final = "INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

DROP_BEGINNING: Final = """
DELETE FROM calls WHERE run = ?1 AND call = ?2 AND kind = 'intent'
AND EXISTS (SELECT 1 FROM calls WHERE run = ?1 AND call = ?2 AND kind IN ('outcome', 'refused'))
"""

Row = tuple[int, int, str, int, int, int, str, str, str, str, str, float, float, str, str]


class LineIndex:
    """The calls in a file of JSON lines, as rows whose id is the place of their line in the file, in bytes.

    A call has one row: its outcome, or its beginning as long as there is no outcome. A file that was truncated or
    replaced is indexed again. Threads can share an index; they use it one at a time.

    Attributes:
        unread: The number of lines so far that are not records.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0)
        self._low = self._high = self._size = 0
        self.unread = 0

    @property
    def progress(self) -> float:
        """The indexed part of the file, from 0 to 1."""
        size = self._size
        return (self._high - self._low) / size if size else 1.0

    @property
    def is_complete(self) -> bool:
        """Whether the file was indexed up to its beginning."""
        return self._connection is not None and not self._low

    def update(self, seconds: float = 0.0) -> None:
        """Add the lines that were appended, and older lines until the time is over; at least one block of each.

        Raises:
            AuditError: If a line is too long, or the file became shorter while it was read.
            OSError: If the file cannot be read.
        """
        end = monotonic() + seconds
        with self._lock, open_log(self._path) as stream:
            connection = self._begin(stream)
            while True:
                is_behind = self._go_forward(stream, connection)
                if self._low:
                    self._go_back(stream, connection)
                if monotonic() >= end or not (self._low or is_behind):
                    return

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """Return the connection to the table, which no other thread uses meanwhile."""
        if self._connection is None:
            self.update()
        with self._lock:
            if self._connection is None:  # it was closed meanwhile
                raise AuditError("the index of the audit log is closed")
            yield self._connection

    def records(self, connection: sqlite3.Connection, ids: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the ids and the records of rows, as far as their lines still are records."""
        marks = ", ".join("?" * len(ids))
        sizes = dict(connection.execute(f"SELECT id, size FROM calls WHERE id IN ({marks})", tuple(ids)))  # noqa: S608
        with open_log(self._path) as stream:
            for id in ids:
                stream.seek(id)
                record = data_of(stream.read(sizes.get(id, 0)))
                if record is not None:
                    yield id, record

    def place_of(self, line: int) -> int:
        """Return the place in the file at which a line begins, or the size of the file if it has fewer lines.

        Args:
            line: Its number, from 1.
        """
        place, rest = 0, line - 1
        with open_log(self._path) as stream:
            while rest > 0 and (block := stream.read(SCAN_BYTES)):
                count = block.count(b"\n")
                if count < rest:
                    rest, place = rest - count, place + len(block)
                    continue
                for _ in range(rest):
                    end = block.index(b"\n") + 1
                    block, place = block[end:], place + end
                break
        return place

    def close(self) -> None:
        """Delete the table."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _begin(self, stream: BinaryIO) -> sqlite3.Connection:
        """Return the table; a new one if the file is another one or has become shorter."""
        status = os.fstat(stream.fileno())
        file = (status.st_dev, status.st_ino)
        connection, self._size = self._connection, status.st_size
        if connection is not None and file == self._file and status.st_size >= self._high:
            return connection
        if connection is not None:
            connection.close()
        self._file, self.unread = file, 0
        self._low = self._high = _end_of_lines(stream, status.st_size)
        self._connection = connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        connection.executescript(f"PRAGMA cache_size = -{CACHE_KIB};{SCHEMA}")
        return connection

    def _go_forward(self, stream: BinaryIO, connection: sqlite3.Connection) -> bool:
        """Add a block after the indexed part, up to its last newline, and return whether complete lines may follow."""
        for size in _sizes():
            end = min(self._high + size, self._size)
            block = _read(stream, self._high, end)
            length = block.rfind(b"\n") + 1
            if length:
                self._add(connection, self._high, block[:length])
                self._high += length
                return end < self._size
            if end == self._size:  # the last line is read again when it is finished
                break
        return False

    def _go_back(self, stream: BinaryIO, connection: sqlite3.Connection) -> None:
        """Add a block before the indexed part, from the first line that begins in it."""
        for size in _sizes():
            start = max(0, self._low - size)
            block = _read(stream, start, self._low)
            skipped = block.find(b"\n", 0, -1) + 1 if start else 0
            if skipped or not start:
                self._add(connection, start + skipped, block[skipped:])
                self._low = start + skipped
                return

    def _add(self, connection: sqlite3.Connection, place: int, data: bytes) -> None:
        """Add the lines in *data*, which begins at a place in the file."""
        rows: list[Row] = []
        for line in data.split(b"\n")[:-1]:
            raw = line + b"\n"
            record = data_of(raw)
            if record is None:
                self.unread += 1
            else:
                rows.append(_row(place, len(raw), record))
            place += len(raw)
        kept, keys = _one_per_call(rows)
        connection.execute("BEGIN")
        connection.executemany(INSERT, kept)
        connection.executemany(DROP_BEGINNING, keys)
        connection.execute("COMMIT")


def _one_per_call(rows: Iterable[Row]) -> tuple[Collection[Row], set[tuple[str, int]]]:
    """Return the rows without those of calls that begin and end among them, and the calls that only begin or end."""
    kept: dict[int, Row] = {}
    begun: dict[tuple[str, int], int] = {}
    ended: set[tuple[str, int]] = set()
    for row in rows:
        place, _, run, call, _, _, _, kind, *_ = row
        kept[place] = row
        if call <= 0:  # only a record that was edited has no number
            continue
        if kind == "intent":
            begun[run, call] = place
        elif kind in ("outcome", "refused"):
            before = begun.pop((run, call), None)
            if before is None:
                ended.add((run, call))
            else:
                del kept[before]
    return kept.values(), {*begun, *ended}


def _row(place: int, size: int, record: Mapping[str, Any]) -> Row:
    each = entry_of(record)
    return (
        *(place, size, *each.key, each.parent, each.depth, each.session, each.kind, each.tool, each.code, each.rule),
        *(each.time, each.seconds, list_text(each.effects), list_text(each.labels)),
    )


def _sizes() -> Iterator[int]:
    """Yield sizes of blocks until one must contain a line.

    Raises:
        AuditError: If the largest block was not enough.
    """
    size = BLOCK_BYTES
    while size <= 4 * MAX_LINE_BYTES:  # which holds a line and the end of the one before it
        yield size
        size *= 4
    raise AuditError(f"a line has more than {MAX_LINE_BYTES} bytes, so the file is not an audit log")


def _read(stream: BinaryIO, start: int, end: int) -> bytes:
    stream.seek(start)
    data = stream.read(end - start)
    if len(data) < end - start:
        raise AuditError("the audit log became shorter while it was read")
    return data


def _end_of_lines(stream: BinaryIO, size: int) -> int:
    """Return where the last complete line ends; a writer may be about to finish the next one."""
    for block in _sizes():
        start = max(0, size - block)
        length = _read(stream, start, size).rfind(b"\n") + 1
        if length or not start:
            return start + length if length else 0
    return 0
