"""The tables of durable runs, their version, and the migrations from older versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from neuroscript._imports import missing_extra

try:
    import sqlalchemy as sa
    from sqlalchemy.dialects import postgresql, sqlite
except ModuleNotFoundError as error:
    raise missing_extra("durable runs need SQLAlchemy", "durable", error) from None

__all__ = [
    "CALLS",
    "CHANNEL",
    "IS_OPEN",
    "IS_WAITING",
    "RUNS",
    "SCHEMA",
    "TABLES",
    "VERSION",
    "WORKERS",
    "NewerSchema",
    "postgresql",
    "prepare",
    "sa",
    "sqlite",
]

VERSION: Final = 2
"""The version of the tables that this package reads and writes.

Version 1 had no table of the version, and queued its calls with DBOS.
"""

LOCK: Final = 0x6E65_7572
"""The PostgreSQL advisory lock that lets one process at a time create or migrate the tables."""

CHANNEL: Final = "neuroscript_calls"
"""The channel on which PostgreSQL notifies processes of queued and ended calls."""

TABLES: Final = sa.MetaData()

SCHEMA: Final = sa.Table("neuroscript_schema", TABLES, sa.Column("version", sa.Integer, primary_key=True))
"""One row: the version of the tables."""

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
    sa.Column("tools", sa.Text),
)
"""One row for each run.

*leader* is the id of the process that drives it, which is alive while *seen* is recent. *tools* is a JSON object: the
digest of each tool that the run was checked with.
"""

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
    sa.Column("queued", sa.Double),
    sa.Column("digest", sa.Text),
    sa.Column("suspect", sa.Integer, nullable=False, server_default="0"),
)
"""One row for each attempt, which is also its place in the queue.

A call that has not *ended* waits while *worker* is NULL, and otherwise runs on that worker. *begun* is set in the
transaction in which a worker claims the call. *digest* is the digest of its tool; without one, any worker that has the
tool may make the call. A call is a *suspect* if a worker died while it made this call and others.
"""

WORKERS: Final = sa.Table(
    "neuroscript_workers",
    TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("seen", sa.Double, nullable=False),
    sa.Column("lease", sa.Double, nullable=False),
    sa.Column("ended", sa.Double),
    sa.Column("lacking", sa.Text),
)
"""One row for each worker. A worker that has *ended* begins no more calls.

*lacking* is a JSON list of the tools of waiting calls that this worker does not have, each with its digest.
"""

IS_WAITING: Final = sa.and_(CALLS.c.ended.is_(None), CALLS.c.worker.is_(None))
IS_OPEN: Final = sa.and_(CALLS.c.ended.is_(None), CALLS.c.worker.is_not(None))

WAITING_INDEX: Final = sa.Index(
    "neuroscript_calls_waiting", CALLS.c.queued, sqlite_where=IS_WAITING, postgresql_where=IS_WAITING
)
OPEN_INDEX: Final = sa.Index("neuroscript_calls_open", CALLS.c.worker, sqlite_where=IS_OPEN, postgresql_where=IS_OPEN)

NOTIFICATIONS: Final = (
    f"""\
CREATE OR REPLACE FUNCTION neuroscript_notify() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_notify('{CHANNEL}', TG_ARGV[0]); RETURN NULL; END $$""",
    """\
CREATE TRIGGER neuroscript_queued AFTER INSERT ON neuroscript_calls
FOR EACH STATEMENT EXECUTE FUNCTION neuroscript_notify('queued')""",
    """\
CREATE TRIGGER neuroscript_ended AFTER UPDATE OF ended ON neuroscript_calls
FOR EACH STATEMENT EXECUTE FUNCTION neuroscript_notify('ended')""",
)
"""Statements that let PostgreSQL notify processes, so that no writer spends a statement on it."""

ADDED: Final = ((RUNS, "tools"), (CALLS, "queued"), (CALLS, "digest"), (CALLS, "suspect"), (WORKERS, "lacking"))
"""The columns that version 2 added."""


class NewerSchema(Exception):
    """Raised for tables that a newer version of this package wrote; the message says which version."""


def prepare(engine: sa.Engine) -> None:
    """Create or migrate the tables unless they are current.

    Raises:
        NewerSchema: If a newer version of this package wrote them.
    """
    with engine.connect() as connection:
        version = _version(connection)
    if version < VERSION:
        with engine.begin() as connection:
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            else:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
            version = _version(connection)  # another process may have been first
            for migrate in MIGRATIONS[version:]:
                migrate(connection)
            if version < VERSION:
                connection.execute(sa.delete(SCHEMA))
                connection.execute(sa.insert(SCHEMA).values(version=VERSION))
    if version > VERSION:
        raise NewerSchema(f"its tables have version {version}, and this version of neuroscript knows up to {VERSION}")


def _version(connection: sa.Connection) -> int:
    """Return the version of the tables; 0 if there are none."""
    inspector = sa.inspect(connection)
    if inspector.has_table(SCHEMA.name):
        return connection.execute(sa.select(SCHEMA.c.version)).scalar() or 0
    return 1 if inspector.has_table(CALLS.name) else 0


def _create_first(connection: sa.Connection) -> None:
    """Create the tables; they are current, so the next step finds nothing to add."""
    TABLES.create_all(connection)


def _add_queue(connection: sa.Connection) -> None:
    """Add the columns, indexes and notifications of version 2, which queues calls in the table of calls."""
    inspector = sa.inspect(connection)
    for table, name in ADDED:
        if name not in {column["name"] for column in inspector.get_columns(table.name)}:
            column = sa.schema.CreateColumn(table.c[name]).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {column}")
    TABLES.create_all(connection)
    for index in (WAITING_INDEX, OPEN_INDEX):
        index.create(connection, checkfirst=True)
    if connection.dialect.name == "postgresql":
        for statement in NOTIFICATIONS:
            connection.exec_driver_sql(statement)


MIGRATIONS: Final[tuple[Callable[[sa.Connection], None], ...]] = (_create_first, _add_queue)
"""The step from each version to the next."""
