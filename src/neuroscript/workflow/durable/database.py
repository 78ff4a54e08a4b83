"""The database of durable runs: an SQLite file, or a PostgreSQL database by its address.

All times come from the database's clock, so the clocks of the machines may differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from neuroscript.coercion.parameters import STRING, optional, require
from neuroscript.errors import CallError, SpecError
from neuroscript.io.text import MAX_PATH_CHARS, one_line, quote_path
from neuroscript.io.user_cache import data_file
from neuroscript.state.heartbeat import MAX_LEASE_SECONDS
from neuroscript.workflow.durable.pool import LOCK_TIMEOUT_SECONDS, acquire, release
from neuroscript.workflow.durable.schema import CALLS, RUNS, WORKERS, NewerSchema, sa

__all__ = ["CALLS", "RUNS", "WORKERS", "Database", "once", "sa"]  # other modules take SQLAlchemy from here

FILE: Final = "runs.sqlite"
"""The file in the user's data directory that is used without an address."""

RETRY_SECONDS: Final = 0.2

NOW: Final = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgresql": "extract(epoch from clock_timestamp())::float8",
}

TEMPORARY_ERRORS: Final = (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.InternalError, sa.exc.TimeoutError)
"""Exceptions that mean the database or a connection to it is temporarily unavailable."""

PERMANENT_ERROR_PREFIXES: Final = ("SQLITE_ERROR", "SQLITE_READONLY")
"""Prefixes of SQLite errors that are permanent: unexpected tables, or a read-only file."""

ADDRESS: Final = "the address must be sqlite:///FILE or postgresql://USER@HOST/NAME"

T = TypeVar("T")


class Database:
    """A database with the tables of durable runs, which are created or migrated if necessary.

    All of a process that use the same database share its connections.

    Args:
        url: ``sqlite:///FILE`` or ``postgresql://…``; by default a file in the user's data directory.
        makes: Whether to create a missing file.
        connections: The maximum number of connections; None accepts the number that this process already uses.

    Attributes:
        url: The address.
        name: The address without a password, for messages.
        engine: The SQLAlchemy engine.
        now: The database's current time, in seconds since 1970-01-01 UTC.
        wakeup: Calls back when calls were queued or have ended.

    Raises:
        SpecError: If the address is invalid or the database cannot be reached.
    """

    def __init__(self, url: str | None = None, *, makes: bool = True, connections: int | None = None) -> None:
        require("durable", url=(url, optional(STRING)))
        parsed = _parsed(url)
        self.url = parsed.render_as_string(hide_password=False)
        self.name = quote_path(parsed.difference_update_query(("password", "sslpassword")).render_as_string())
        with self.used():
            self._pool = acquire(parsed, makes, connections)
        self.engine = self._pool.engine
        self.wakeup = self._pool.wakeup
        self.now: sa.TextClause = sa.text(NOW[self.engine.dialect.name])
        self._autocommit = self.engine
        if self.engine.dialect.name == "postgresql":
            self._autocommit = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._is_open = True

    @contextmanager
    def used(self) -> Iterator[None]:
        """Convert errors of an unusable database into a `SpecError` that names it and the reason."""
        try:
            yield
        except sa.exc.IntegrityError:
            raise
        except NewerSchema as error:
            raise SpecError(self.name, [f"{error}; upgrade neuroscript"]) from None
        except (OSError, ImportError, sa.exc.DBAPIError) as error:
            raise SpecError(self.name, [f"cannot be used as a database: {_reason_of(error)}"]) from None

    def is_alive(self, seen: sa.Column[float], lease: sa.Column[float]) -> sa.ColumnElement[bool]:
        """Return the condition that a process was seen within its lease.

        It is false for times and leases that this package does not write, such as infinity, so that no process waits
        for them.
        """
        in_time = seen.between(self.now - lease, sa.literal(MAX_LEASE_SECONDS) + self.now)
        return sa.and_(in_time, lease.between(0.0, MAX_LEASE_SECONDS))

    def transaction(
        self,
        work: Callable[[sa.Connection], T],
        is_over: Callable[[], bool] | None = None,
        *,
        is_single: bool = False,
    ) -> T:
        """Return the result of *work* in one transaction; repeat it if the connection is lost.

        Args:
            work: May be called several times, each time in a new transaction.
            is_over: Called before each repetition; returns whether to give up. By default, give up after
                `LOCK_TIMEOUT_SECONDS` seconds.
            is_single: Whether *work* executes one statement, for which PostgreSQL then needs one round trip, not three.

        Raises:
            CallError: ``plan.database``, if the database cannot be reached, or its SQLite file was deleted.
            SpecError: If the database has the wrong form and *is_over* is None.
        """
        with self.used():
            return self._tried(self._autocommit if is_single else self.engine, work, is_over)

    def _tried(self, engine: sa.Engine, work: Callable[[sa.Connection], T], is_over: Callable[[], bool] | None) -> T:
        until = time.monotonic() + LOCK_TIMEOUT_SECONDS
        while True:
            try:
                self._check_file()
                with engine.begin() as connection:
                    result = work(connection)
                self._check_file()  # otherwise the transaction was lost with the file
                return result
            except TEMPORARY_ERRORS as error:
                cause = getattr(error, "orig", None)
                if is_over is None and getattr(cause, "sqlite_errorname", "").startswith(PERMANENT_ERROR_PREFIXES):
                    raise
                if time.monotonic() > until if is_over is None else is_over():
                    raise CallError("the database cannot be reached", code="plan.database", retry="later") from error
                time.sleep(RETRY_SECONDS)

    def _check_file(self) -> None:
        if self._pool.is_gone():
            text = "the database file was deleted or replaced while it was in use"
            raise CallError(text, code="plan.database", retry="never")

    def close(self) -> None:
        """Close the connections, if nothing else in this process uses the database."""
        if self._is_open:
            self._is_open = False
            release(self._pool)


def once() -> bool:
    """Return True, for callers that retry by themselves."""
    return True


def _parsed(url: str | None) -> sa.URL:
    if url is None:
        path = data_file(FILE)
        if path is None:
            raise SpecError("durable", ["pass an address, because the environment defines no data directory"])
        url = f"sqlite:///{path}"
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise SpecError("durable", [ADDRESS]) from None
    kind = parsed.get_backend_name()
    is_known = kind in ("postgresql", "postgres") or (kind == "sqlite" and not (parsed.host or parsed.query))
    if not is_known or not parsed.database or parsed.database == ":memory:":
        raise SpecError("durable", [ADDRESS])
    if parsed.host and "@" in parsed.host:  # the end of a password, which must not appear in messages
        raise SpecError("durable", ["an @ in the password of an address must be written as %40"])
    return parsed.set(drivername="sqlite" if kind == "sqlite" else "postgresql")


def _reason_of(error: OSError | ImportError | sa.exc.DBAPIError) -> str:
    """Return why a database cannot be used, as the system or its driver reports it, without stored values."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
    is_told = not isinstance(error, sa.exc.DataError)  # its message contains the value
    return (is_told and one_line(str(cause).partition("\n")[0], MAX_PATH_CHARS)) or type(cause).__name__
