"""A database of an older version is migrated when it is opened, and its runs continue."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.workflow.durable import steps
from tests.workflow.durable.databases import MakeDatabase
from tests.workflow.durable.old_tables import CALL, DBOS_1, RUN, VERSION_1
from tests.workflow.durable.planted import sql

from neuroscript.errors import SpecError
from neuroscript.workflow.durable import list_runs, prune, resume, run_durably, show_run
from neuroscript.workflow.durable.database import Database
from neuroscript.workflow.durable.schema import SCHEMA, TABLES, VERSION
from neuroscript.workflow.plan.file import plan_to_data

Execute = Callable[..., None]
PLAN = steps.wide(4, 0.0)


def version_1(url: str) -> None:
    """Replace the tables of an empty database by those of version 1, with two runs.

    Of the run ``it``, one call has ended, one that may run again and one that may not were in progress when the process
    died, and one waits.
    """
    engine = sa.create_engine(sa.make_url(url).set(drivername="sqlite" if "sqlite" in url else "postgresql+psycopg"))
    is_sqlite = engine.dialect.name == "sqlite"
    with engine.begin() as connection:
        TABLES.drop_all(connection)
        if not is_sqlite:
            connection.exec_driver_sql("CREATE SCHEMA dbos")
        for statement in VERSION_1:
            connection.exec_driver_sql(statement.format(double="DOUBLE" if is_sqlite else "DOUBLE PRECISION"))
        for statement in DBOS_1:
            connection.exec_driver_sql(statement.format(dbos="" if is_sqlite else "dbos."))
        run = {"name": PLAN.name, "digest": PLAN.digest, "plan": json.dumps(plan_to_data(PLAN))}
        connection.execute(sa.text(RUN), {**run, "id": "it", "status": "running", "ended": None})
        connection.execute(sa.text(RUN), {**run, "id": "old", "status": "succeeded", "ended": 2.0})
        for call in (ended_call("it", "w0"), open_call("w1", rerun=True), open_call("w2", rerun=False), waiting("w3")):
            connection.execute(sa.text(CALL), call)
        connection.execute(sa.text(CALL), ended_call("old", "w0"))
        for table in ("workflow_status", "workflow_input"):
            for id in ("it.w3", "old.w0"):
                name = table if is_sqlite else f"dbos.{table}"
                connection.exec_driver_sql(f"INSERT INTO {name} (workflow_uuid) VALUES ('{id}')")
    engine.dispose()


def waiting(node: str, run: str = "it") -> dict[str, Any]:
    """Return a call that has not begun."""
    number = int(node[1:])
    return {
        "id": f"{run}.{node}",
        "run": run,
        "node": node,
        "tool": "step.again" if number % 2 else "step.once",
        "arguments": json.dumps({"name": node, "before": [], "seconds": 0.0}),
        "rerun": bool(number % 2),
        "takes": 0,
        **dict.fromkeys(("worker", "token", "begun", "ended", "code", "outcome")),
    }


def open_call(node: str, *, rerun: bool) -> dict[str, Any]:
    """Return a call whose process died."""
    return {**waiting(node), "rerun": rerun, "worker": "gone", "token": "t", "takes": 1, "begun": 1.5}


def ended_call(run: str, node: str) -> dict[str, Any]:
    """Return a call that has ended."""
    return {
        **waiting(node, run),
        "worker": "gone",
        "token": "t",
        "takes": 1,
        "begun": 1.5,
        "ended": 1.7,
        "code": "ok",
        "outcome": '{"value": {"$bytes": "AAA="}}',
    }


def test_run_of_version_1_continues(make_database: MakeDatabase, tmp_path: Path) -> None:
    """What had ended does not run again; what was in progress runs again only if it may."""
    url, marks = make_database("version1"), steps.Marks(tmp_path / "marks")
    version_1(url)
    with steps.engine(marks.file) as engine:
        trace = resume(engine, url, "it")

    right = steps.expected(PLAN)
    assert {"w0": b"\0\0", "w1": right["w1"], "w2": None, "w3": right["w3"]} == {
        node.name: node.result for node in trace.nodes
    }
    assert ["plan.in_doubt"] == [call.status for call in show_run(url, "it")[1] if call.node == "w2"]
    assert {"w1": 1, "w3": 1} == dict(marks.of("begin"))


def test_migrated_tables_are_like_new_ones(make_database: MakeDatabase) -> None:
    """In their columns and indexes; a second opening changes nothing."""
    old, new = make_database("old_tables"), make_database("new_tables")
    version_1(old)
    assert ["it", "old"] == sorted(run.id for run in list_runs(old))
    list_runs(old)

    assert described(old) == described(new)


def described(url: str) -> dict[str, Any]:
    """Return the columns and indexes of the tables, and the version."""
    database = Database(url)
    with database.engine.begin() as connection:
        inspector = sa.inspect(connection)
        tables = {
            name: (
                {(each["name"], str(each["type"]), each["nullable"]) for each in inspector.get_columns(name)},
                {each["name"] for each in inspector.get_indexes(name)},
            )
            for name in TABLES.tables
        }
        versions = [*connection.execute(sa.select(SCHEMA.c.version)).scalars()]
    database.close()
    return {"tables": tables, "versions": versions}


def test_prune_removes_rows_of_dbos(make_database: MakeDatabase) -> None:
    """Those of the calls of removed runs."""
    url = make_database("dbos_rows")
    version_1(url)
    assert 1 == prune(url, timedelta(days=1))
    database = Database(url)
    name = "workflow_status" if "sqlite" in url else "dbos.workflow_status"
    with database.engine.begin() as connection:
        left = [*connection.execute(sa.text(f"SELECT workflow_uuid FROM {name}")).scalars()]
    database.close()

    assert ["it.w3"] == left
    assert ["it"] == [run.id for run in list_runs(url)]


def test_database_of_a_newer_version_is_refused(make_database: MakeDatabase, tmp_path: Path) -> None:
    """By name; nothing in it changes."""
    url = make_database("newer")
    sql(url, "UPDATE neuroscript_schema SET version = 99")
    with steps.engine(tmp_path / "marks") as engine, pytest.raises(SpecError) as caught:
        run_durably(engine, PLAN, url=url)

    assert str(caught.value).endswith(
        f": its tables have version 99, and this version of neuroscript knows up to {VERSION}; upgrade neuroscript"
    )


def test_processes_that_open_an_old_file_at_once_migrate_it_once(tmp_path: Path) -> None:
    """The others wait for the first."""
    from concurrent.futures import ThreadPoolExecutor

    urls = [f"sqlite:///{tmp_path}/./{'./' * number}it.sqlite" for number in range(4)]  # a pool each, as of processes
    version_1(urls[0])
    with ThreadPoolExecutor(4) as threads:
        assert [2, 2, 2, 2] == [len(runs) for runs in threads.map(list_runs, urls)]
    with closing(sqlite3.connect(tmp_path / "it.sqlite")) as connection:
        assert [(VERSION,)] == connection.execute("SELECT version FROM neuroscript_schema").fetchall()
