"""An SQLite file as a shared database, for the processes of one machine; needs only the standard library."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal

from neuroscript.errors import SpecError
from neuroscript.io.text import MAX_PATH_CHARS, one_line
from neuroscript.state.address import Address
from neuroscript.state.database import Row, Statements, StateUnavailable
from neuroscript.state.forks import renew_lock

MODE: Final = 0o600
"""The mode of new files: only the owner can read them."""

MIN_VERSION: Final = (3, 35)
"""The first version of SQLite with ``RETURNING``."""

Identity = tuple[int, int]


class SqliteDatabase:
    """A file that is created with mode 0600 if it is missing. See `Database`."""

    kind: Literal["sqlite", "postgresql"] = "sqlite"
    now = "((julianday('now') - 2440587.5) * 86400.0)"

    def __init__(self, address: Address, *, timeout: float) -> None:
        if address.path is None:
            raise AssertionError("not an address of SQLite")
        self.name = address.name
        self._path: Path = address.path
        self._timeout = timeout
        self._lock = threading.Lock()
        self._pid = 0
        renew_lock(self, waits=True)
        self._connection: sqlite3.Connection | None = None
        self._inherited: sqlite3.Connection | None = None
        if sqlite3.sqlite_version_info < MIN_VERSION:
            raise SpecError(self.name, [f"needs SQLite 3.35 or later; this Python has {sqlite3.sqlite_version}"])
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, MODE))
            self._file = self._identity()
            with self._opened() as connection:
                connection.execute("SELECT 1 FROM sqlite_master")
        except (OSError, StateUnavailable) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise SpecError(self.name, [f"cannot be used as a database: {reason}"]) from None

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._opened() as connection:
            return connection.execute(sql, values).fetchall()

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self.transaction() as statements:
            statements.run_many(sql, rows)

    @contextmanager
    def transaction(self) -> Iterator[Statements]:
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield _Statements(connection)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._lock:
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
            self._connection = None

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection of this process, locked for one thread, and convert errors of SQLite."""
        if not self._lock.acquire(timeout=self._timeout):
            raise StateUnavailable("other threads of this process use it for too long")
        try:
            if self._identity() != self._file:
                raise StateUnavailable("the file was deleted or replaced by another one")
            if self._connection is None or self._pid != os.getpid():
                self._inherited = self._connection  # SQLite does not permit that a child process closes it
                self._connection, self._pid = self._connected(), os.getpid()
            yield self._connection
        except (sqlite3.Error, OSError) as error:
            raise StateUnavailable(_reason(error)) from None
        finally:
            self._lock.release()

    def _identity(self) -> Identity | None:
        """Return which file is at the path, or None if there is none."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=self._timeout, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection


class _Statements:
    """The statements of a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)


def _reason(error: sqlite3.Error | OSError) -> str:
    """Return why a statement failed. Errors about stored values are reported by their type alone."""
    if isinstance(error, (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError)):
        return type(error).__name__
    return one_line(str(error).partition("\n")[0], MAX_PATH_CHARS) or type(error).__name__
