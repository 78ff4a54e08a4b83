"""A PostgreSQL database as a shared database, with a pool of connections for each process."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, Literal

from neuroscript._imports import missing_extra
from neuroscript.errors import SpecError
from neuroscript.io.text import MAX_PATH_CHARS, one_line
from neuroscript.state.address import Address
from neuroscript.state.database import Row, Statements, StateUnavailable
from neuroscript.state.forks import renew_lock

try:
    import psycopg
    from psycopg_pool import ConnectionPool
except ModuleNotFoundError as error:
    raise missing_extra("shared state in PostgreSQL needs psycopg and psycopg-pool", "state", error) from None

WAIT_SECONDS: Final = 0.1
"""Seconds between two checks for an interrupt while a statement runs."""

IDLE_TIMEOUT_SECONDS: Final = 5.0
"""Seconds after which the server ends an idle transaction, because its locks block other processes."""


class PostgresDatabase:
    """A database of a server. See `Database`."""

    kind: Literal["sqlite", "postgresql"] = "postgresql"
    now = "extract(epoch from clock_timestamp())::float8"

    def __init__(self, address: Address, *, connections: int, timeout: float) -> None:
        self.name = address.name
        self._url = address.url
        self._connections = connections
        self._timeout = timeout
        self._lock = threading.Lock()
        self._pid = 0
        renew_lock(self)
        self._pool: ConnectionPool[_Connection] | None = None
        try:
            self._connect().close()  # unlike the pool, this says why it fails
        except psycopg.Error as error:
            raise SpecError(self.name, [f"cannot be used as a database: {_reason(error)}"]) from None

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._opened() as connection:
            return _run(connection, sql, values)

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self.transaction() as statements:
            statements.run_many(sql, rows)

    @contextmanager
    def transaction(self) -> Iterator[Statements]:
        with self._opened() as connection, connection.transaction():
            yield _Statements(connection)

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None and self._pid == os.getpid():
            pool.close()

    @contextmanager
    def _opened(self) -> Iterator[_Connection]:
        """Yield a connection in autocommit mode, and convert errors of the server."""
        pool = self._pool
        if pool is None or self._pid != os.getpid():
            pool = self._own_pool()
        try:
            with pool.connection(self._timeout) as connection:
                yield connection
        except psycopg.Error as error:
            raise StateUnavailable(_reason(error)) from None

    def _own_pool(self) -> ConnectionPool[_Connection]:
        with self._lock:
            if self._pool is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._pool = ConnectionPool(
                    self._url,
                    connection_class=_Connection,
                    kwargs=self._options(),
                    min_size=1,
                    max_size=self._connections,
                    open=True,
                    configure=self._configure,
                    check=_check_socket,
                    timeout=self._timeout,
                    num_workers=1,
                )
            return self._pool

    def _options(self) -> dict[str, Any]:
        milliseconds = round(self._timeout * 1000)
        return {
            "autocommit": True,
            "connect_timeout": max(2, round(self._timeout)),
            "tcp_user_timeout": milliseconds,
            "application_name": "neuroscript",
        }

    def _connect(self) -> _Connection:
        connection = _Connection.connect(self._url, **self._options())
        self._configure(connection)
        return connection

    def _configure(self, connection: _Connection) -> None:
        connection.timeout = self._timeout
        connection.execute(
            f"SET statement_timeout = {self._timeout * 1000:.0f}; "
            f"SET idle_in_transaction_session_timeout = {IDLE_TIMEOUT_SECONDS * 1000:.0f}"
        )


class _Connection(psycopg.Connection[Row]):
    """A connection that does not wait longer than its timeout for a server that no longer answers."""

    timeout: float | None = None

    def wait(self, gen: Any, interval: float = WAIT_SECONDS, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, timeout or (self.timeout and self.timeout + 1.0))
        except psycopg.errors._WaitTimeout:
            self.pgconn.finish()
            raise psycopg.OperationalError("the server did not answer in time") from None


class _Statements:
    """The statements of a transaction."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return _run(self._connection, sql, values)

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_placeholders(sql), rows)


def _run(connection: _Connection, sql: str, values: Sequence[Any]) -> list[Row]:
    cursor = connection.execute(_placeholders(sql), values or None)
    return cursor.fetchall() if cursor.description is not None else []


@lru_cache(maxsize=512)
def _placeholders(sql: str) -> Any:
    return sql.replace("?", "%s")


def _check_socket(connection: _Connection) -> None:
    """Raise an error if a connection of the pool has something to read, which means its end; costs no round trip."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if poll.poll(0):
        connection.close()  # otherwise the pool offers it again
        raise psycopg.OperationalError("the server closed the connection")


def _reason(error: psycopg.Error) -> str:
    """Return why a statement failed. Errors about stored values are reported by their type alone."""
    is_told = error.sqlstate is None or not error.sqlstate.startswith(("21", "22", "23"))
    return (is_told and one_line(str(error).partition("\n")[0], MAX_PATH_CHARS)) or type(error).__name__
