"""Pages of calls in an audit log, newest first, and what else a person asks of it, without reading all of it.

SQL finds calls by ids, in the database itself or in the index of a file of JSON lines.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final, Protocol

import attrs

from neuroscript.audit.call_tree import CallNode, call_tree
from neuroscript.audit.entries import MAX_TIME_SECONDS, Entry, entry_of
from neuroscript.audit.filters import Conditions, RecordFilter
from neuroscript.audit.line_index import LineIndex
from neuroscript.audit.reader import is_database, open_database, open_log, rows_of, unreadable_error
from neuroscript.audit.sqlite import has_labels
from neuroscript.audit.statistics import AuditStats, Timeline

MAX_NAMES: Final = 5_000
"""Maximum number of different tools, codes and label lists that patterns are compared with."""

MAX_INDEXED_ROWS: Final = 5_000
"""Number of rows from which on the index of tools and times is not used."""

BATCH: Final = 500
"""Number of records that are read at once to go through many."""

TOOLS: Final = """
WITH RECURSIVE names (name) AS (
    SELECT min(tool) FROM calls
    UNION ALL SELECT (SELECT min(tool) FROM calls WHERE tool > name) FROM names WHERE name IS NOT NULL
) SELECT name FROM names WHERE name IS NOT NULL LIMIT ?
"""
"""Finds the different names of tools by one step in the index for each, because DISTINCT reads the whole index."""

CODES: Final = """
WITH RECURSIVE names (name) AS (
    SELECT min(code) FROM calls WHERE code <> 'ok'
    UNION ALL SELECT (SELECT min(code) FROM calls WHERE code <> 'ok' AND code > name) FROM names WHERE name IS NOT NULL
) SELECT name FROM names WHERE name IS NOT NULL LIMIT ?
"""
LABELS: Final = "SELECT DISTINCT labels FROM calls WHERE labels <> '[]' LIMIT ?"

TIME: Final = f"max({-MAX_TIME_SECONDS:.0f}.0, min({MAX_TIME_SECONDS:.0f}.0, CAST(time AS REAL)))"
SECONDS: Final = f"max({-MAX_TIME_SECONDS:.0f}.0, min({MAX_TIME_SECONDS:.0f}.0, CAST(seconds AS REAL)))"
"""Numbers, whatever a database that was edited contains."""

NUMBERS: Final = f"SELECT kind, tool, code, rule, run, call, {TIME}, {SECONDS} FROM calls"  # noqa: S608
BOUNDS: Final = f"SELECT min({TIME}), max({TIME}) FROM calls"  # noqa: S608


@attrs.frozen
class LoggedCall:
    """A call in an audit log.

    Attributes:
        id: Its place in the log; greater ids are newer.
        entry: Its checked fields.
        record: The record as stored.
    """

    id: int
    entry: Entry
    record: dict[str, Any] = attrs.field(repr=False)


@attrs.frozen
class LogPage:
    """A part of an audit log, newest first.

    Attributes:
        calls: The calls.
        has_newer: Whether newer calls are selected.
        has_older: Whether older calls are selected.
        is_complete: Whether the log was searched up to its beginning; otherwise there may be older calls later.
    """

    calls: tuple[LoggedCall, ...]
    has_newer: bool
    has_older: bool
    is_complete: bool


class CallTable(Protocol):
    """A table ``calls`` in SQLite, whose rows refer to the records of an audit log by their ids."""

    @property
    def progress(self) -> float:
        """The part of the log that the table contains, from 0 to 1."""

    @property
    def is_complete(self) -> bool:
        """Whether the table contains all calls."""

    @property
    def unread(self) -> int:
        """The number of lines that are not records."""

    def update(self, seconds: float = 0.0) -> None:
        """Add new calls, and older ones until the time is over."""

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """Return a connection to the table."""

    def records(self, connection: sqlite3.Connection, ids: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield ids and records."""

    def close(self) -> None:
        """Release the table."""


class DatabaseTable:
    """The table of a `SqliteAudit`, opened for each use, because writers must never wait for a reader."""

    progress, is_complete, unread = 1.0, True, 0

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path

    def update(self, seconds: float = 0.0) -> None:
        """Do nothing: the table contains all calls."""

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """Return a connection that can only read."""
        with closing(open_database(self._path)) as connection:
            yield connection

    def records(self, connection: sqlite3.Connection, ids: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield ids and records."""
        return rows_of(connection, ids)

    def close(self) -> None:
        """Do nothing: no connection is open."""


class LogReader:
    """Reads an audit log in parts. Threads can share a reader.

    Args:
        path: A file of JSON lines, or a database; it must exist.

    Raises:
        AuditError: If a database or a file is not an audit log; all methods raise it, too.
        OSError: If the file cannot be read; all methods raise it, too.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        with open_log(path) as stream:
            self._table: CallTable = DatabaseTable(path) if is_database(stream) else LineIndex(path)

    @property
    def is_database(self) -> bool:
        """Whether the log is a database, which has no hash chain."""
        return isinstance(self._table, DatabaseTable)

    @property
    def progress(self) -> float:
        """The indexed part of the log, from 0 to 1."""
        return self._table.progress

    @property
    def is_complete(self) -> bool:
        """Whether the log was indexed up to its beginning."""
        return self._table.is_complete

    @property
    def unread(self) -> int:
        """The number of indexed lines that are not records."""
        return self._table.unread

    def update(self, seconds: float = 0.0) -> None:
        """Read what was appended, and index older calls until the time is over."""
        self._table.update(seconds)

    def page(self, filter: RecordFilter, *, size: int, before: int | None = None, after: int | None = None) -> LogPage:
        """Return the newest selected calls, or those before or after an id.

        Args:
            size: The maximum number of calls.
        """
        with self._connected() as connection:
            ids = _ids(connection, filter, size + 1, before, after)
            more, ids = len(ids) > size, ids[:size]
            if after is not None:
                ids.reverse()
            calls = self._calls(connection, ids)
            has_newer = more if after is not None else before is not None
            has_older = more if after is None else True
            return LogPage(calls, has_newer, has_older, self.is_complete)

    def call(self, id: int) -> LoggedCall | None:
        """Return the call with an id, or None."""
        with self._connected() as connection:
            return next(iter(self._calls(connection, [id])), None)

    def tree(self, entry: Entry) -> CallNode | None:
        """Return the outermost call around a call, with all calls nested in it; None if it has no number."""
        with self._connected() as connection:
            return call_tree(connection, *entry.key)

    def iter_calls(self, filter: RecordFilter) -> Iterator[LoggedCall]:
        """Yield all selected calls, oldest first, in parts, so that other threads can use the log meanwhile."""
        after, last = -1, self.last_id
        while True:
            with self._connected() as connection:
                ids = [each for each in _ids(connection, filter, BATCH, None, after) if each <= last]
                calls = self._calls(connection, ids)
            yield from calls
            if len(ids) < BATCH:
                return
            after = ids[-1]

    @property
    def last_id(self) -> int:
        """The id of the newest call, or -1."""
        with self._connected() as connection:
            (last,) = connection.execute("SELECT max(id) FROM calls").fetchone()
        return -1 if last is None else last

    def id_of_line(self, line: int) -> int:
        """Return an id that is not above those of the calls from a line on; in a database, the number of the row."""
        return self._table.place_of(line) if isinstance(self._table, LineIndex) else line

    def tools(self, most: int = MAX_NAMES) -> list[str]:
        """Return the names of the tools in the log, sorted."""
        with self._connected() as connection:
            return _texts(connection, TOOLS, most)

    def statistics(self, filter: RecordFilter) -> AuditStats:
        """Return the numbers of the selected calls, with a timeline."""
        with self._connected() as connection:
            where, parameters = _where(connection, filter, [])
            first, last = connection.execute(BOUNDS + where, parameters).fetchone()
            numbers = AuditStats()
            if first is not None:
                numbers.timeline = Timeline.between(first, last)
            for kind, tool, code, rule, run, call, time, seconds in connection.execute(NUMBERS + where, parameters):
                if not (type(tool) is type(code) is type(rule) is str):  # the database was edited
                    tool, code, rule = f"{tool}", f"{code}", f"{rule}"
                numbers.add(kind, tool, code, rule, (run, call), time or 0.0, seconds or 0.0)
        numbers.finish()
        return numbers

    def close(self) -> None:
        """Release the index."""
        self._table.close()

    def _calls(self, connection: sqlite3.Connection, ids: list[int]) -> tuple[LoggedCall, ...]:
        found = dict(self._table.records(connection, ids))
        return tuple(LoggedCall(id, entry_of(found[id]), found[id]) for id in ids if id in found)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._table.connected() as connection:
                yield connection
        except sqlite3.Error as error:
            raise unreadable_error(error) from None


def _ids(
    connection: sqlite3.Connection, filter: RecordFilter, most: int, before: int | None, after: int | None
) -> list[int]:
    """Return ids of selected calls: the greatest ones first, or with *after* the smallest ones first."""
    limits: list[tuple[str, int]] = []
    if before is not None:
        limits.append(("id < ?", before))
    if after is not None:
        limits.append(("id > ?", after))
    where, parameters = _where(connection, filter, limits)
    order = "id" if after is not None else "id DESC"
    query = f"SELECT id FROM calls{where} ORDER BY {order} LIMIT ?"  # noqa: S608
    return [id for (id,) in connection.execute(query, (*parameters, most))]


def _where(
    connection: sqlite3.Connection, filter: RecordFilter, limits: list[tuple[str, int]]
) -> tuple[str, tuple[object, ...]]:
    """Return the conditions of a query, and their parameters."""
    codes = ["ok", *_texts(connection, CODES)] if filter.code else []
    labels = _texts(connection, LABELS) if filter.label and has_labels(connection) else []
    conditions, parameters = _indexed(connection, filter)
    others, more = filter.other_conditions(codes, labels)
    conditions = [*conditions, *others, *(condition for condition, _ in limits)]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return where, (*parameters, *more, *(value for _, value in limits))


def _indexed(connection: sqlite3.Connection, filter: RecordFilter) -> Conditions:
    """Return the conditions on tools and times, so that the index is used only if it selects few rows.

    To fetch a row through an index takes ten times as long as the next row.
    """
    if not filter.uses_index:
        return [], []
    tools = _texts(connection, TOOLS)
    conditions, parameters = filter.indexed_conditions(tools)
    count = f"SELECT count(*) FROM (SELECT 1 FROM calls WHERE {' AND '.join(conditions)} LIMIT ?)"  # noqa: S608
    (found,) = connection.execute(count, (*parameters, MAX_INDEXED_ROWS)).fetchone()
    return filter.indexed_conditions(tools, is_hinted=found < MAX_INDEXED_ROWS)


def _texts(connection: sqlite3.Connection, query: str, most: int = MAX_NAMES) -> list[str]:
    return [each for (each,) in connection.execute(query, (most,)) if isinstance(each, str)]
