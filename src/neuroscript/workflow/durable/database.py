"""The database of durable runs: an SQLite file, or a PostgreSQL database by its address.

All times come from the database's clock, so the clocks of the machines may differ.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from neuroscript._imports import missing_extra
from neuroscript.coercion.parameters import STRING, optional, require
from neuroscript.errors import CallError, SpecError
from neuroscript.io.text import MAX_PATH_CHARS, one_line, quote_path
from neuroscript.io.user_cache import data_file
from neuroscript.state.heartbeat import MAX_LEASE_SECONDS

try:
    import sqlalchemy as sa
except ModuleNotFoundError as error:
    raise missing_extra("durable runs need DBOS", "durable", error) from None

__all__ = ["CALLS", "RUNS", "WORKERS", "Database", "once", "sa"]  # other modules take SQLAlchemy from here

FILE: Final = "runs.sqlite"
"""The file in the user's data directory that is used without an address."""

LOCK_TIMEOUT_SECONDS: Final = 30.0
"""Seconds that a transaction waits for a lock, and seconds for which a failed one is retried."""

RETRY_SECONDS: Final = 0.2

POOL_SIZE: Final[Mapping[str, Any]] = {"pool_size": 10, "max_overflow": 30, "hide_parameters": True}
"""Limits on connections. SQLAlchemy's errors must not contain the arguments of calls."""

IDLE_TIMEOUT_SECONDS: Final = 5.0
"""Seconds after which PostgreSQL ends an idle transaction, because its locks block other processes."""

NOW: Final = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgresql": "extract(epoch from clock_timestamp())::float8",
}

TEMPORARY_ERRORS: Final = (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.InternalError, sa.exc.TimeoutError)
"""Exceptions that mean the database or a connection to it is temporarily unavailable."""

PERMANENT_ERROR_PREFIXES: Final = ("SQLITE_ERROR", "SQLITE_READONLY")
"""Prefixes of SQLite errors that are permanent: unexpected tables, or a read-only file."""

LOCK: Final = 0x6E65_7572
"""The PostgreSQL advisory lock that lets one process at a time create the tables."""

ADDRESS: Final = "the address must be sqlite:///FILE or postgresql://USER@HOST/NAME"

T = TypeVar("T")

TABLES: Final = sa.MetaData()

RUNS: Final = sa.Table(
    "neuroscript_runs",
    TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("plan", sa.Text, nullable=False),
    sa.Column("inputs", sa.Text, nullable=False),
    sa.Column("parallel", sa.Integer, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("started", sa.Double, nullable=False),
    sa.Column("ended", sa.Double),
    sa.Column("leader", sa.Text),
    sa.Column("seen", sa.Double, nullable=False),
    sa.Column("lease", sa.Double, nullable=False),
)
"""One row for each run. *leader* is the id of the process that drives it, which is alive while *seen* is recent."""

CALLS: Final = sa.Table(
    "neuroscript_calls",
    TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("run", sa.Text, nullable=False, index=True),
    sa.Column("node", sa.Text, nullable=False),
    sa.Column("item", sa.Integer),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("tool", sa.Text, nullable=False),
    sa.Column("arguments", sa.Text, nullable=False),
    sa.Column("timeout", sa.Double),
    sa.Column("patience", sa.Double, nullable=False),
    sa.Column("rerun", sa.Boolean, nullable=False),
    sa.Column("worker", sa.Text),
    sa.Column("token", sa.Text),
    sa.Column("takes", sa.Integer, nullable=False),
    sa.Column("begun", sa.Double),
    sa.Column("ended", sa.Double),
    sa.Column("code", sa.Text),
    sa.Column("outcome", sa.Text),
)
"""One row for each attempt: *begun* is set before its tool runs and *ended* after, each in a transaction."""

WORKERS: Final = sa.Table(
    "neuroscript_workers",
    TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("seen", sa.Double, nullable=False),
    sa.Column("lease", sa.Double, nullable=False),
    sa.Column("ended", sa.Double),
)
"""One row for each process that makes calls. A worker that has *ended* begins no more calls."""


class Database:
    """A database with the tables of durable runs, which are created if they are missing.

    Args:
        url: ``sqlite:///FILE`` or ``postgresql://…``; by default a file in the user's data directory.
        makes: Whether to create a missing file.

    Attributes:
        url: The address, as DBOS takes it.
        name: The address without a password, for messages.
        engine: The SQLAlchemy engine.
        now: The database's current time, in seconds since 1970-01-01 UTC.

    Raises:
        SpecError: If the address is invalid or the database cannot be reached.
    """

    def __init__(self, url: str | None = None, *, makes: bool = True) -> None:
        require("durable", url=(url, optional(STRING)))
        parsed = _parsed(url)
        self.url = parsed.render_as_string(hide_password=False)
        self.name = quote_path(parsed.difference_update_query(("password", "sslpassword")).render_as_string())
        with self.used():
            self.engine = _engine(parsed, makes)
            self.now: sa.TextClause = sa.text(NOW[self.engine.dialect.name])
            try:
                self._make_tables()
            except BaseException:
                self.engine.dispose()
                raise

    @contextmanager
    def used(self) -> Iterator[None]:
        """Convert errors of an unusable database into a `SpecError` that names it and the reason."""
        try:
            yield
        except sa.exc.IntegrityError:
            raise
        except (OSError, ImportError, sa.exc.DBAPIError) as error:
            raise SpecError(self.name, [f"cannot be used as a database: {_reason_of(error)}"]) from None

    def is_alive(self, seen: sa.Column[float], lease: sa.Column[float]) -> sa.ColumnElement[bool]:
        """Return the condition that a process was seen within its lease.

        It is false for times and leases that this package does not write, such as infinity, so that no process waits
        for them.
        """
        in_time = seen.between(self.now - lease, sa.literal(MAX_LEASE_SECONDS) + self.now)
        return sa.and_(in_time, lease.between(0.0, MAX_LEASE_SECONDS))

    def _make_tables(self) -> None:
        with self.engine.begin() as connection:
            if self.engine.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            else:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
            TABLES.create_all(connection)

    def transaction(self, work: Callable[[sa.Connection], T], is_over: Callable[[], bool] | None = None) -> T:
        """Return the result of *work* in one transaction; repeat it if the connection is lost.

        Args:
            work: May be called several times, each time in a new transaction.
            is_over: Called before each repetition; returns whether to give up. By default, give up after
                `LOCK_TIMEOUT_SECONDS` seconds.

        Raises:
            CallError: ``plan.database``, if the database cannot be reached.
            SpecError: If the database has the wrong form and *is_over* is None.
        """
        with self.used():
            return self._tried(work, is_over)

    def _tried(self, work: Callable[[sa.Connection], T], is_over: Callable[[], bool] | None) -> T:
        until = time.monotonic() + LOCK_TIMEOUT_SECONDS
        while True:
            try:
                with self.engine.begin() as connection:
                    return work(connection)
            except TEMPORARY_ERRORS as error:
                cause = getattr(error, "orig", None)
                if is_over is None and getattr(cause, "sqlite_errorname", "").startswith(PERMANENT_ERROR_PREFIXES):
                    raise
                if time.monotonic() > until if is_over is None else is_over():
                    raise CallError("the database cannot be reached", code="plan.database", retry="later") from error
                time.sleep(RETRY_SECONDS)

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


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


def _engine(url: sa.URL, makes: bool) -> sa.Engine:
    if url.drivername != "sqlite":
        address = url.set(drivername="postgresql+psycopg")
        engine = sa.create_engine(address, **POOL_SIZE, pool_pre_ping=True)
        sa.event.listen(engine, "connect", _hurried)
        return engine
    file = Path(str(url.database))
    if not makes:
        file.stat()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not file.exists():  # arguments and results must be readable only by this user
        os.close(os.open(file, os.O_CREAT, 0o600))
    engine = sa.create_engine(url, **POOL_SIZE)
    sa.event.listen(engine, "connect", _settled)
    return engine


def _settled(connection: Any, _: object) -> None:
    """Make SQLite writers wait for the lock from the start of a transaction, and readers never wait."""
    connection.isolation_level = "IMMEDIATE"
    connection.text_factory = _text
    connection.execute(f"PRAGMA busy_timeout={LOCK_TIMEOUT_SECONDS * 1000:.0f}")
    connection.execute("PRAGMA journal_mode=WAL")


def _text(data: bytes) -> str | bytes:
    """Return an SQLite string; invalid UTF-8 stays bytes, which the row checks reject."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _hurried(connection: Any, _: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET idle_in_transaction_session_timeout = {IDLE_TIMEOUT_SECONDS * 1000:.0f}")
    connection.commit()
