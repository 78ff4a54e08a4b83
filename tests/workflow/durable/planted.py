"""Rows that another program writes into the database of durable runs."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from neuroscript.workflow.durable.database import CALLS, RUNS, Database


def sql(url: str, statement: str, **values: Any) -> None:
    """Execute SQL."""
    database = Database(url)
    with database.engine.begin() as connection:
        connection.execute(sa.text(statement), values)
    database.close()


def reopen(url: str) -> None:
    """Make the runs of a database look as if their process had died before their calls were queued."""
    database = Database(url)
    with database.engine.begin() as connection:
        connection.execute(sa.update(RUNS).values(status="running", ended=None, leader=None, error=None))
        connection.execute(sa.delete(CALLS))
    database.close()


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
