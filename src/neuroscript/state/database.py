"""A database that several processes use at once: what the features of this package need from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from neuroscript.errors import NeuroScriptError
from neuroscript.state.address import parse_address

Row = tuple[Any, ...]


class StateUnavailable(NeuroScriptError):
    """The database cannot be used now. What was to be changed may or may not have been changed.

    The text says why, without stored values.
    """


class Statements(Protocol):
    """Runs SQL. Parameters are written as ``?`` for every database; the text contains no percent signs."""

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run a statement and return its rows; a statement without ``RETURNING`` or ``SELECT`` has none."""

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement that returns no rows once for each element of *rows*."""


class Database(Statements, Protocol):
    """A database. Each `run` outside a transaction is committed when it returns. Threads may share it.

    After a fork, the child process opens its own connections.

    Attributes:
        kind: Which SQL it understands.
        name: The address without passwords, for messages.
        now: An SQL expression for the current time of the database, in seconds since 1970-01-01 UTC. All processes
            compare times by this clock, so the clocks of their machines may differ.

    All methods raise `StateUnavailable` if the database cannot be used.
    """

    kind: Literal["sqlite", "postgresql"]
    name: str
    now: str

    def transaction(self) -> AbstractContextManager[Statements]:
        """Return a context manager whose statements are committed together, or not at all after an exception.

        On SQLite, other processes cannot write until it ends. On PostgreSQL, lock the rows that it changes, in the same
        order everywhere.
        """

    def close(self) -> None:
        """Close all connections."""


def open_database(url: str, *, connections: int = 10, timeout: float = 5.0) -> Database:
    """Open the database at an address.

    Args:
        connections: How many connections this process may have open at once; for PostgreSQL.
        timeout: Seconds that one statement may take, with all waiting for connections and locks.

    Raises:
        SpecError: If the address is invalid or the database cannot be used.
        ModuleNotFoundError: If the address is one of PostgreSQL and the extra ``state`` is not installed.
    """
    address = parse_address(url)
    if address.kind == "sqlite":
        from neuroscript.state.sqlite import SqliteDatabase

        return SqliteDatabase(address, timeout=timeout)
    from neuroscript.state.postgresql import PostgresDatabase

    return PostgresDatabase(address, connections=connections, timeout=timeout)
