"""The connections of a process to a database, deleted files, and the removal of old runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import sqlalchemy as sa
from tests.cli.conftest import CommandResult, command
from tests.workflow.durable import steps
from tests.workflow.durable.databases import MakeDatabase
from tests.workflow.durable.planted import sql

from neuroscript import Engine, ToolPolicy, Toolset
from neuroscript.errors import CallError, SpecError
from neuroscript.workflow import plan_from_data
from neuroscript.workflow.durable import Worker, cancel, list_runs, prune, run_durably, show_run
from neuroscript.workflow.durable.database import Database

RUNS = 8
DAY = timedelta(days=1)


def connections_to(url: str) -> int:
    """Return the number of connections to a PostgreSQL database, except the one that asks."""
    engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"), poolclass=sa.NullPool)
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with engine.connect() as connection:
        count: int = connection.execute(sa.text(query)).scalar_one()
    return count


def test_all_runs_of_a_process_share_their_connections(make_database: MakeDatabase, tmp_path: Path) -> None:
    """As many as the option says, and one for notifications; none is left at the end."""
    url, counts = make_database("shared_pool"), []
    with (
        steps.engine(tmp_path / "marks") as engine,
        Worker(engine, url, connections=3),
        ThreadPoolExecutor() as threads,
    ):
        runs = [threads.submit(run_durably, engine, steps.wide(4), url=url, connections=3) for _ in range(RUNS)]
        while not all(run.done() for run in runs):
            if not url.startswith("sqlite"):
                counts.append(connections_to(url))
            time.sleep(0.05)
        assert {"succeeded"} == {run.result().status for run in runs}

    if not url.startswith("sqlite"):
        assert max(counts) <= 3 + 1
        assert 0 == connections_to(url)


def test_number_of_connections_is_the_same_in_a_process(tmp_path: Path) -> None:
    """Another number is refused while the database is open, and so is one that is out of range."""
    url = f"sqlite:///{tmp_path}/it.sqlite"
    database = Database(url, connections=3)
    messages = []
    for connections in (4, 0, 1_001):
        with pytest.raises(SpecError) as caught:
            Database(url, connections=connections)
        messages.append(str(caught.value))
    Database(url).close()
    database.close()
    Database(url, connections=4).close()

    out_of_range = "durable: connections must be an integer from 1 to 1000"
    same = "durable: this process already uses the database with 3 connections; pass the same number"
    assert [same, out_of_range, out_of_range] == messages


@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
def test_deleted_file_is_noticed(tmp_path: Path, replaced: bool) -> None:
    """The run ends with an error of the database, whatever its nodes would continue after."""
    file, shop = tmp_path / "it.sqlite", Toolset("shop")

    @shop.tool()
    def delete() -> int:
        """Delete the database."""
        for each in tmp_path.glob("it.sqlite*"):
            each.unlink()
        if replaced:
            Database(f"sqlite:///{file}").close()
        return 1

    nodes = {name: {"tool": "shop.delete", "on_fail": "continue"} for name in ("first", "second")}
    nodes["second"]["depends_on"] = ["first"]  # type: ignore[assignment]
    with Engine(toolsets=[shop], plugins="none") as engine, pytest.raises(CallError) as caught:
        run_durably(engine, plan_from_data({"nodes": nodes}), url=f"sqlite:///{file}", lease=0.5)

    assert caught.value.code in ("plan.database", "plan.lease_lost")
    assert caught.value.retry == "never"
    if caught.value.code == "plan.database":
        assert "the database file was deleted or replaced while it was in use" == str(caught.value)


def test_idle_processes_hardly_query(make_database: MakeDatabase, tmp_path: Path) -> None:
    """A worker and a driver that wait for a long call send a few queries a second, most of them heartbeats."""
    url, shop, begun, over = make_database("idle"), Toolset("shop"), Event(), Event()

    @shop.tool()
    def wait() -> int:
        """Wait."""
        begun.set()
        over.wait(20)
        return 1

    queries: list[str] = []
    plan = plan_from_data({"nodes": {"it": {"tool": "shop.wait"}}})
    with Engine(toolsets=[shop], plugins="none") as engine, ThreadPoolExecutor() as threads:
        run = threads.submit(run_durably, engine, plan, url=url)
        assert begun.wait(20)
        time.sleep(0.2)
        database = Database(url)
        count: Callable[..., None] = lambda *values: queries.append(values[2])  # noqa: E731
        sa.event.listen(database.engine, "before_cursor_execute", count)
        time.sleep(1.0)
        sa.event.remove(database.engine, "before_cursor_execute", count)
        database.close()
        over.set()
        assert "succeeded" == run.result().status

    assert 0 < len(queries) <= 20


def test_prune_removes_old_runs_only(make_database: MakeDatabase, tmp_path: Path) -> None:
    """Never a run that is running, interrupted or damaged, however old it is."""
    url = make_database("pruned")
    with steps.engine(tmp_path / "marks") as engine:
        for run in ("recent", "old", "failed", "cancelled", "interrupted", "damaged", "open"):
            run_durably(engine, steps.wide(2, 0.0), url=url, run_id=run)
    ages: dict[str, Any] = {"old": "succeeded", "failed": "failed", "cancelled": "cancelled", "open": "cancelled"}
    for run, status in {**ages, "interrupted": "running", "damaged": "unknown"}.items():
        statement = "UPDATE neuroscript_runs SET status = :status, ended = 1.0, started = 1.0 WHERE id = :run"
        sql(url, statement, status=status, run=run)
    sql(url, "UPDATE neuroscript_runs SET ended = NULL WHERE id = 'interrupted'")
    sql(url, "UPDATE neuroscript_calls SET ended = NULL, code = NULL, outcome = NULL WHERE id = 'open.w0'")
    result = command("runs", "prune", url, "--older-than", "1d")

    assert CommandResult(0, "", "neuroscript: removed 3 runs\n") == result
    assert {"recent", "interrupted", "damaged", "open"} == {run.id for run in list_runs(url)}
    assert 2 == len(show_run(url, "interrupted")[1])
    assert CommandResult(0, '{"removed": 0}\n', "") == command("runs", "prune", url, "--older-than", "1d", "--json")
    assert 1 == prune(url, timedelta())  # the recent one


@pytest.mark.parametrize("age", ["30", "d", "1.5d", "-1d", "30y", "99999d", "٣d", ""])
def test_invalid_age_is_a_usage_error(tmp_path: Path, age: str) -> None:
    """Before the database is opened."""
    result = command("runs", "prune", f"sqlite:///{tmp_path}/none.sqlite", f"--older-than={age}")
    why = "expected at most four digits and a unit, s, m, h, d or w, such as 30d"

    assert 2 == result.code
    assert f"argument --older-than: {why}" in result.err


def test_prune_keeps_a_run_that_runs(make_database: MakeDatabase) -> None:
    """Also its finished calls."""
    url, shop, begun, over = make_database("prune_running"), Toolset("shop"), Event(), Event()

    @shop.tool(policy=ToolPolicy(effects=("idempotent",)))
    def wait(last: bool) -> int:
        """Wait if it is the last one."""
        if last:
            begun.set()
            over.wait(20)
        return 1

    nodes = {
        "a": {"tool": "shop.wait", "inputs": {"last": False}},
        "b": {"tool": "shop.wait", "inputs": {"last": True}},
    }
    with Engine(toolsets=[shop], plugins="none") as engine, ThreadPoolExecutor() as threads:
        run = threads.submit(run_durably, engine, plan_from_data({"nodes": nodes}), url=url, run_id="it")
        assert begun.wait(20)
        assert 0 == prune(url, timedelta())
        assert "cancelled" == cancel(url, "it").status
        assert 0 == prune(url, timedelta())
        over.set()
        run.result()

    assert 1 == prune(url, timedelta())
