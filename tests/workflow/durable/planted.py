"""Rows that another program writes into the database of durable runs, such as pickles that run code when read."""

from __future__ import annotations

import base64
import pickle
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from neuroscript.workflow.durable.database import CALLS, RUNS, Database
from neuroscript.workflow.durable.queue import Queue

OLD: Final = "py_pickle"
"""The name of DBOS's pickle format."""


class Evil:
    """Creates a file when its pickle is read."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._file,)


def pickled(file: Path) -> str:
    """Return a pickle, as DBOS stores it, that creates a file when it is read."""
    return base64.b64encode(pickle.dumps({"args": (Evil(file),), "kwargs": {}})).decode()


def sql(url: str, statement: str, **values: Any) -> None:
    """Execute SQL; ``{dbos}`` stands for the prefix of the tables of DBOS."""
    database = Database(url)
    prefix = "" if database.engine.dialect.name == "sqlite" else "dbos."
    with database.engine.begin() as connection:
        connection.execute(sa.text(statement.format(dbos=prefix)), values)
    database.close()


def queued(url: str, id: str, text: str, kind: str | None) -> None:
    """Queue a workflow whose inputs are text in a given format."""
    database = Database(url)
    queue = Queue(database)
    with database.engine.begin() as connection:
        queue.put(connection, id)
    queue.close()
    database.close()
    sql(url, "UPDATE {dbos}workflow_status SET serialization = :kind WHERE workflow_uuid = :id", id=id, kind=kind)
    for table in ("workflow_status", "workflow_input"):
        sql(url, f"UPDATE {{dbos}}{table} SET inputs = :text WHERE workflow_uuid = :id", id=id, text=text)


def status_of(url: str, id: str) -> str | None:
    """Return the status of a DBOS workflow."""
    database = Database(url)
    prefix = "" if database.engine.dialect.name == "sqlite" else "dbos."
    query = sa.text(f"SELECT status FROM {prefix}workflow_status WHERE workflow_uuid = :id")
    with database.engine.begin() as connection:
        status: str | None = connection.execute(query, {"id": id}).scalar()
    database.close()
    return status


def reopen(url: str) -> None:
    """Make the runs of a database look as if their process had died before their calls were queued."""
    database = Database(url)
    with database.engine.begin() as connection:
        connection.execute(sa.update(RUNS).values(status="running", ended=None, leader=None, error=None))
        connection.execute(sa.delete(CALLS))
    database.close()
    sql(url, "DELETE FROM {dbos}workflow_status WHERE workflow_uuid LIKE 'it.%'")


def given_out(url: str, arguments: str = "{}", begun: float | None = None) -> None:
    """Insert the call ``it.w0`` into the table of calls; no worker has ended it."""
    sql(
        url,
        "INSERT INTO neuroscript_calls (id, run, node, number, tool, arguments, patience, rerun, takes, begun)"
        " VALUES ('it.w0', 'it', 'w0', 1, 'step.once', :arguments, 0.0, :rerun, 0, :begun)",
        arguments=arguments,
        rerun=True,
        begun=begun,
    )
