"""The database that a durable run is kept in: a file of SQLite, or a PostgreSQL by its address.

All times in it are those of the database itself, so that the clocks of the machines may differ.

Source: issue "Beyond one machine"; ecosystem.md part 10.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from neuroscript._imports import missing
from neuroscript.coercion.parameters import STRING, optional, require
from neuroscript.errors import CallError, SpecError
from neuroscript.io.text import LONGEST_PATH, one_line, shown_path
from neuroscript.io.user_cache import data_file
from neuroscript.workflow.durable.heartbeat import LONGEST

try:
    import sqlalchemy as sa
except ModuleNotFoundError as error:
    raise missing("durable runs need DBOS", "durable", error) from None

__all__ = ["CALLS", "RUNS", "WORKERS", "Database", "once", "sa"]  # the one door to SQLAlchemy

FILE: Final = "runs.sqlite"
"""The file in this user's data directory that is used where no address is given."""

BUSY: Final = 30.0
"""Seconds for which a transaction waits for its turn, and for which one that has failed is tried again."""

PAUSE: Final = 0.2

POOL: Final[Mapping[str, Any]] = {"pool_size": 10, "max_overflow": 30, "hide_parameters": True}
"""How many connections there may be; and that no error of SQLAlchemy tells what a call was given."""

IDLE: Final = 5.0
"""Seconds after which a PostgreSQL ends a transaction whose process says nothing: its locks are in everybody's way."""

NOW: Final = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgresql": "extract(epoch from clock_timestamp())::float8",
}

AWAY: Final = (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.InternalError, sa.exc.TimeoutError)
"""What is raised where the database, or a connection to it, is not to be had for now."""

LASTING: Final = ("SQLITE_ERROR", "SQLITE_READONLY")
"""How the names of errors of SQLite begin that do not pass: its tables are others, or it may not be written to."""

LOCK: Final = 0x6E65_7572
"""The number under which one process at a time makes the tables of a PostgreSQL."""

ADDRESS: Final = "an address is sqlite:///FILE or postgresql://USER@HOST/NAME"

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
"""One row for each run; *leader* is the word of the process that drives it, which is alive as long as it is *seen*."""

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
"""One row for each attempt; it is *begun* before its tool is run and *ended* after it, each in a transaction."""

WORKERS: Final = sa.Table(
    "neuroscript_workers",
    TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("seen", sa.Double, nullable=False),
    sa.Column("lease", sa.Double, nullable=False),
    sa.Column("ended", sa.Double),
)
"""One row for each process that makes calls. One that has *ended* never begins anything again."""


class Database:
    """A database with the tables of durable runs; they are made where they are not there.

    Args:
        url: ``sqlite:///FILE`` or ``postgresql://…``; by default a file in this user's data directory.
        makes: Whether a file that is not there is made.

    Attributes:
        url: Its address, as DBOS takes it.
        name: The same without a password, as people are shown it.
        engine: What connects to it.
        now: Its time, in seconds since 1970-01-01 UTC.

    Raises:
        SpecError: It is no such address, or the database can not be reached.
    """

    def __init__(self, url: str | None = None, *, makes: bool = True) -> None:
        require("durable", url=(url, optional(STRING)))
        parsed = _parsed(url)
        self.url = parsed.render_as_string(hide_password=False)
        self.name = shown_path(parsed.difference_update_query(("password", "sslpassword")).render_as_string())
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
        """Raise a `SpecError` that names the database, and says why, where it can not be used as one."""
        try:
            yield
        except sa.exc.IntegrityError:
            raise
        except (OSError, ImportError, sa.exc.DBAPIError) as error:
            raise SpecError(self.name, [f"can not be used as a database: {_reason_of(error)}"]) from None

    def is_alive(self, seen: sa.Column[float], lease: sa.Column[float]) -> sa.ColumnElement[bool]:
        """Return the condition that a process has been heard of within its lease.

        It does not hold for a time or a lease that no process of ours wrote, such as infinity: nobody waits for that.
        """
        in_time = seen.between(self.now - lease, sa.literal(LONGEST) + self.now)
        return sa.and_(in_time, lease.between(0.0, LONGEST))

    def _make_tables(self) -> None:
        with self.engine.begin() as connection:
            if self.engine.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            else:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
            TABLES.create_all(connection)

    def transaction(self, work: Callable[[sa.Connection], T], is_over: Callable[[], bool] | None = None) -> T:
        """Return what *work* does in one transaction; it is done again where the connection is lost meanwhile.

        Args:
            work: May be called several times, each in a transaction of its own.
            is_over: Asked before each further time whether to give up; by default that is so after `BUSY` seconds.

        Raises:
            CallError: ``plan.database``: it can not be reached.
            SpecError: It is not what it has to be, and nobody says when to give up.
        """
        with self.used():
            return self._tried(work, is_over)

    def _tried(self, work: Callable[[sa.Connection], T], is_over: Callable[[], bool] | None) -> T:
        until = time.monotonic() + BUSY
        while True:
            try:
                with self.engine.begin() as connection:
                    return work(connection)
            except AWAY as error:
                cause = getattr(error, "orig", None)
                if is_over is None and getattr(cause, "sqlite_errorname", "").startswith(LASTING):
                    raise
                if time.monotonic() > until if is_over is None else is_over():
                    raise CallError("the database can not be reached", code="plan.database", retry="later") from error
                time.sleep(PAUSE)

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def once() -> bool:
    """Give up at once, for who asks again by himself."""
    return True


def _parsed(url: str | None) -> sa.URL:
    if url is None:
        path = data_file(FILE)
        if path is None:
            raise SpecError("durable", ["no address is given, and the environment names no directory for data"])
        url = f"sqlite:///{path}"
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise SpecError("durable", [ADDRESS]) from None
    kind = parsed.get_backend_name()
    is_known = kind in ("postgresql", "postgres") or (kind == "sqlite" and not (parsed.host or parsed.query))
    if not is_known or not parsed.database or parsed.database == ":memory:":
        raise SpecError("durable", [ADDRESS])
    if parsed.host and "@" in parsed.host:  # the end of a password, which nobody may be told
        raise SpecError("durable", ["in an address an @ of a password is written %40"])
    return parsed.set(drivername="sqlite" if kind == "sqlite" else "postgresql")


def _reason_of(error: OSError | ImportError | sa.exc.DBAPIError) -> str:
    """Return why a database can not be used: what the system or its driver says, and nothing that stands in it."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
    is_told = not isinstance(error, sa.exc.DataError)  # whose text holds the value
    return (is_told and one_line(str(cause).partition("\n")[0], LONGEST_PATH)) or type(cause).__name__


def _engine(url: sa.URL, makes: bool) -> sa.Engine:
    if url.drivername != "sqlite":
        address = url.set(drivername="postgresql+psycopg")
        engine = sa.create_engine(address, **POOL, pool_pre_ping=True)
        sa.event.listen(engine, "connect", _hurried)
        return engine
    file = Path(str(url.database))
    if not makes:
        file.stat()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not file.exists():  # what calls are given and give is this user's alone
        os.close(os.open(file, os.O_CREAT, 0o600))
    engine = sa.create_engine(url, **POOL)
    sa.event.listen(engine, "connect", _settled)
    return engine


def _settled(connection: Any, _: object) -> None:
    """Have a writer of SQLite wait for its turn from its first word on, and readers never wait."""
    connection.isolation_level = "IMMEDIATE"
    connection.text_factory = _text
    connection.execute(f"PRAGMA busy_timeout={BUSY * 1000:.0f}")
    connection.execute("PRAGMA journal_mode=WAL")


def _text(data: bytes) -> str | bytes:
    """Return text of SQLite; what is not UTF-8 stays bytes, which checks of rows refuse."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _hurried(connection: Any, _: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET idle_in_transaction_session_timeout = {IDLE * 1000:.0f}")
    connection.commit()
