"""An audit log in SQLite: one row for each call in a single table, which can be queried while it is written."""

from __future__ import annotations

import atexit
import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final

from neuroscript.audit.encoding import Forms, list_text, number_text, repairs_text, sizes_text, spent_text
from neuroscript.coercion.parameters import COUNT, PATH, instance, require
from neuroscript.errors import AuditError
from neuroscript.io.text import sendable
from neuroscript.policy.tool_policy import LASTING_EFFECTS
from neuroscript.runtime.records import CallRecord

MAX_COMMIT_DELAY_SECONDS: Final = 1.0
"""Maximum delay before a row is committed."""

BUSY_TIMEOUT_SECONDS: Final = 10.0
"""Maximum number of seconds that a commit waits for another writing process."""

MAX_PENDING_ROWS: Final = 10_000
"""Maximum number of rows that are held while commits fail."""

MODE: Final = 0o600
"""The mode of new files: only the owner can read them."""

COLUMNS: Final = (
    *("run", "call", "parent", "depth", "session", "kind", "tool", "code", "rule", "time", "seconds"),
    *("fingerprint", "distribution", "version", "policy", "digest"),
    *("effects", "needs", "types", "sizes", "repairs", "spent", "labels"),
)
IN_JSON: Final = ("effects", "needs", "types", "sizes", "repairs", "spent", "labels")
"""The columns that contain JSON."""

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL, call INTEGER NOT NULL, parent INTEGER NOT NULL, depth INTEGER NOT NULL, session TEXT NOT NULL,
    kind TEXT NOT NULL, tool TEXT NOT NULL, code TEXT NOT NULL, rule TEXT NOT NULL, time REAL NOT NULL, seconds REAL,
    fingerprint TEXT NOT NULL, distribution TEXT NOT NULL, version TEXT NOT NULL, policy TEXT NOT NULL,
    digest TEXT NOT NULL,
    effects TEXT NOT NULL, needs TEXT NOT NULL, types TEXT NOT NULL, sizes TEXT NOT NULL, repairs TEXT NOT NULL,
    spent TEXT NOT NULL, labels TEXT NOT NULL DEFAULT '[]'
);
CREATE UNIQUE INDEX IF NOT EXISTS calls_by_number ON calls (run, call) WHERE call > 0;
CREATE INDEX IF NOT EXISTS calls_by_tool ON calls (tool, time);
CREATE INDEX IF NOT EXISTS calls_by_failure ON calls (code, time) WHERE code <> 'ok';
CREATE INDEX IF NOT EXISTS calls_by_parent ON calls (run, parent) WHERE depth > 1;
"""

ADD_LABELS: Final = "ALTER TABLE calls ADD COLUMN labels TEXT NOT NULL DEFAULT '[]'"
"""For a database of an earlier release, which can go on writing to it."""

INSERT: Final = f"INSERT OR REPLACE INTO calls ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608

Row = tuple[str | int | float | None, ...]


class SqliteAudit:
    """An audit log in a database, with one row for each call in the table ``calls``.

    A row is written when a call ends or is refused. For tools with lasting effects (``tool_policy.LASTING``), a row is
    also written when a call begins, and committed before the call runs; the outcome replaces it. After a crash, the
    rows of the kind ``intent`` are therefore the calls with an unknown outcome. Other rows are committed in batches of
    *batch*, and at the latest after `MAX_COMMIT_DELAY_SECONDS`; a crash loses uncommitted rows. There is no hash chain.

    Args:
        path: The path of the database; it is created with mode 0600 if it is missing.
        batch: The number of rows in one commit.

    Raises:
        SpecError: If *batch* is not an integer above 0.
        sqlite3.Error: If the file is not a database, or cannot be written.
        OSError: If the file cannot be created.
    """

    intents: ClassVar[bool] = True

    def __init__(self, path: str | os.PathLike[str], *, batch: int = 100) -> None:
        require("SqliteAudit", path=(path, PATH), batch=(batch, COUNT))
        self._path = Path(path).absolute()
        self._batch = batch
        self._forms = Forms()
        self._rows: list[Row] = []
        self._late = False
        self._timer: threading.Timer | None = None
        self._pid, self._lock = os.getpid(), threading.Lock()
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, MODE))
        self._connection: sqlite3.Connection | None = _connected(self._path)
        atexit.register(self.close)

    def write(self, record: CallRecord) -> None:
        """Store a record. The beginning of a call with lasting effects is committed when this returns.

        Raises:
            AuditError: If the sink is closed.
            sqlite3.Error: If rows cannot be committed. Up to `MAX_PENDING_ROWS` rows are held and tried again.
        """
        if not isinstance(record, CallRecord):
            require("SqliteAudit", record=(record, instance(CallRecord)))
        urgent = record.kind == "intent"
        if urgent and LASTING_EFFECTS.isdisjoint(record.about.effects):
            return
        row = self._row(record)
        if self._pid != os.getpid():
            raise AuditError("SQLite cannot be used in a forked process; create the audit log there, or use FileAudit")
        with self._lock:
            if self._connection is None:
                raise AuditError("the audit log is closed")
            if len(self._rows) >= MAX_PENDING_ROWS:
                self._commit()
            self._rows.append(row)
            if urgent or self._late or len(self._rows) >= self._batch:
                self._commit_or_drop(urgent)
            elif self._timer is None:
                self._wait()

    def flush(self) -> None:
        """Commit all pending rows.

        Raises:
            sqlite3.Error: If they cannot be committed.
        """
        with self._lock:
            self._commit()

    def close(self) -> None:
        """Commit all pending rows and close the database.

        Raises:
            sqlite3.Error: If the last rows cannot be committed. The database is closed anyway.
        """
        atexit.unregister(self.close)
        if self._pid != os.getpid():  # the parent process commits its own pending rows
            return
        with self._lock:
            connection, timer = self._connection, self._timer
            if connection is None:
                return
            if timer is not None:
                timer.cancel()
            try:
                self._commit()
            finally:
                self._connection = None
                connection.close()

    def _row(self, record: CallRecord) -> Row:
        about = record.about
        seconds = None if record.kind == "intent" else float(number_text(record.seconds))
        return (
            *(record.run, record.call, record.parent, record.depth, sendable(record.session), record.kind),
            *(sendable(about.tool), record.code, sendable(record.rule), float(number_text(record.time)), seconds),
            *(about.fingerprint, about.distribution, about.version, record.policy, record.digest.hex()),
            *(list_text(about.effects), list_text(record.needs), self._forms.types_text(record.types)),
            *(sizes_text(record.sizes), repairs_text(record.repairs), spent_text(record.spent)),
            list_text(record.labels),
        )

    def _commit_or_drop(self, urgent: bool) -> None:
        try:
            self._commit()
        except sqlite3.Error:
            if urgent:  # the call will not run, so no row may say that it began
                self._rows.pop()
            raise

    def _commit(self) -> None:
        """Write all rows in one transaction; the caller holds the lock."""
        connection = self._connection
        if connection is None or not self._rows:
            return
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(INSERT, self._rows)
            connection.execute("COMMIT")
        except BaseException:
            self._late = True
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        self._late = False
        self._rows.clear()

    def _wait(self) -> None:
        self._timer = timer = threading.Timer(MAX_COMMIT_DELAY_SECONDS, self._commit_late)
        timer.daemon = True
        timer.start()

    def _commit_late(self) -> None:
        """Commit rows that have waited long enough; if that fails, the next `write` tries again and raises."""
        with self._lock, suppress(sqlite3.Error):
            self._timer = None
            self._commit()


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(SCHEMA)
        _add_labels(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _add_labels(connection: sqlite3.Connection) -> None:
    if has_labels(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    if not has_labels(connection):  # another process may have added them
        connection.execute(ADD_LABELS)
    connection.execute("COMMIT")


def has_labels(connection: sqlite3.Connection) -> bool:
    """Return whether a database has the column for labels, which those of earlier releases lack."""
    return any(name == "labels" for _, name, *_ in connection.execute("PRAGMA table_info(calls)"))
