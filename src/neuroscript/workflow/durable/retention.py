"""Removal of old runs from a database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from neuroscript.coercion.parameters import STRING, optional, require
from neuroscript.errors import SpecError
from neuroscript.workflow.durable.database import CALLS, RUNS, WORKERS, Database, sa
from neuroscript.workflow.durable.schema import IS_OPEN

RUNS_PER_TRANSACTION: Final = 100

DBOS_TABLES: Final = ("operation_outputs", "workflow_input", "workflow_output", "workflow_status")
"""The tables of DBOS with rows of the calls that older versions queued."""


def prune(url: str | None, older_than: timedelta) -> int:
    """Remove the runs that ended longer ago than *older_than*, with their calls, and return how many.

    Runs that are running or can be resumed are never removed, nor are damaged ones.

    Args:
        url: As for `run_durably`.

    Raises:
        SpecError: If *older_than* is negative, or the database cannot be used.
    """
    require("prune", url=(url, optional(STRING)))
    if not isinstance(older_than, timedelta) or older_than < timedelta():
        raise SpecError("durable", ["older_than must be a timedelta of 0 or more"])
    database = Database(url, makes=False)
    try:
        count = 0
        while removed := database.transaction(lambda connection: _prune(database, connection, older_than)):
            count += removed
        database.transaction(lambda connection: connection.execute(_old_workers(database, older_than)))
        return count
    finally:
        database.close()


def _prune(database: Database, connection: sa.Connection, older_than: timedelta) -> int:
    """Remove some old runs and return how many."""
    is_old = RUNS.c.ended < database.now - sa.literal(older_than.total_seconds())
    has_ended = RUNS.c.status.in_(("succeeded", "failed", "cancelled"))
    has_open_calls = sa.exists().where(CALLS.c.run == RUNS.c.id, IS_OPEN)  # those of a cancelled run end normally
    query = sa.select(RUNS.c.id).where(has_ended, is_old, ~has_open_calls).limit(RUNS_PER_TRANSACTION)
    runs = [*connection.execute(query.with_for_update(of=RUNS)).scalars()]
    calls = sa.select(CALLS.c.id).where(CALLS.c.run.in_(runs))
    for table in _dbos_tables(connection) if runs else ():
        connection.execute(sa.delete(table).where(table.c.workflow_uuid.in_(calls)))
    connection.execute(sa.delete(CALLS).where(CALLS.c.run.in_(runs)))
    connection.execute(sa.delete(RUNS).where(RUNS.c.id.in_(runs)))
    return len(runs)


def _dbos_tables(connection: sa.Connection) -> list[Any]:
    schema = None if connection.dialect.name == "sqlite" else "dbos"
    inspector = sa.inspect(connection)
    names = [name for name in DBOS_TABLES if inspector.has_table(name, schema=schema)]
    return [sa.table(name, sa.column("workflow_uuid"), schema=schema) for name in names]


def _old_workers(database: Database, older_than: timedelta) -> Any:
    is_old = WORKERS.c.ended < database.now - sa.literal(older_than.total_seconds())
    has_open_calls = sa.exists().where(CALLS.c.worker == WORKERS.c.id, IS_OPEN)
    return sa.delete(WORKERS).where(is_old, ~has_open_calls)
