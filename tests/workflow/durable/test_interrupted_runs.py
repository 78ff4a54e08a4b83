"""Durable runs of processes that are cancelled, paused or considered dead."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from threading import Event

import pytest
from tests.workflow.durable import steps
from tests.workflow.durable.conftest import Child, Parent
from tests.workflow.durable.databases import MakeDatabase, cut_off, leader_of, outlast
from tests.workflow.durable.durable_plans import plan_of

from neuroscript import Engine, ToolFailed, ToolPolicy, Toolset
from neuroscript.errors import CallError
from neuroscript.workflow import plan_from_data
from neuroscript.workflow.durable import cancel, resume, run_durably, show_run
from neuroscript.workflow.durable import database as durable_database
from neuroscript.workflow.durable import pool as durable_pool
from neuroscript.workflow.durable.calls import Calls
from neuroscript.workflow.durable.database import Database
from neuroscript.workflow.durable.worker_registry import Workers


def waiting_for(marks: steps.Marks, count: int, child: Child) -> None:
    """Wait until a number of nodes has begun, or a child has ended, because nodes after one in doubt never begin."""
    while sum(marks.of("begin").values()) < count and not child.out.exists():
        time.sleep(0.005)


def stop(pid: int, url: str) -> None:
    """Stop a process while it holds no SQLite lock, which others could not break; PostgreSQL breaks locks itself."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        while not all(
            {") T", ") Z"} & set(re.findall(r"\) .", task.read_text()))
            for task in Path(f"/proc/{pid}/task").glob("*/stat")
        ):
            time.sleep(0.001)
        if not url.startswith("sqlite"):
            cut_off(url)
            return
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0, isolation_level=None)) as connection:
            with suppress(sqlite3.OperationalError):
                connection.execute("BEGIN IMMEDIATE")
                return
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.001)


def test_cancelled_run_begins_no_more_calls(make_database: MakeDatabase, parent: Parent, tmp_path: Path) -> None:
    """Running calls end; all other nodes are unstarted, also when the run is repeated."""
    url, marks = make_database("cancelled"), steps.Marks(tmp_path / "marks")
    child = parent.child("run", url, marks.file, run="it")
    waiting_for(marks, 3, child)
    state = cancel(url, "it")
    begun = marks.of("begin")
    ended = child.result()
    again = parent.child("resume", url, marks.file, run="it").result()

    late = marks.of("begin") - begun  # between the record of a node's beginning and its mark
    assert "cancelled" == state.status == show_run(url, "it")[0].status
    assert len(late) <= steps.WIDTH
    assert "cancelled" == ended["status"]
    assert {"succeeded", "unstarted"} == {node["status"] for node in ended["nodes"].values()}
    assert ended == again
    assert marks.of("end") == marks.of("begin")


def test_unreachable_database_fails_no_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls wait for it as long as the lease lasts."""
    monkeypatch.setattr(durable_database, "LOCK_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(durable_pool, "LOCK_TIMEOUT_SECONDS", 0.1)
    file, held, tries = tmp_path / "held.sqlite", Toolset("held"), []

    @held.tool()
    def off() -> int:
        """Block all writers between two attempts of the other node."""
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            while not connection.execute("SELECT count(*) FROM neuroscript_calls WHERE ended > 0").fetchone()[0]:
                time.sleep(0.005)
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(1.0)
        return 1

    @held.tool()
    def later() -> int:
        """Fail once."""
        tries.append(1)
        if len(tries) == 1:
            raise ToolFailed("not yet", retry="later")
        return 2

    nodes = {"off": {"tool": "held.off"}, "later": {"tool": "held.later", "retry": {"count": 1, "backoff": 0.4}}}
    with Engine(toolsets=[held], plugins="none") as engine:
        trace = run_durably(engine, plan_of(nodes), url=f"sqlite:///{file}")

    assert {"off": 1, "later": 2} == trace.output


def test_disconnected_process_loses_run_and_can_resume_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reports this; its worker has ended, and the same process can resume the run when the database is back."""
    monkeypatch.setattr(durable_database, "LOCK_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(durable_pool, "LOCK_TIMEOUT_SECONDS", 0.2)
    url, cut = f"sqlite:///{tmp_path}/cut.sqlite", Toolset("cut")
    begun = []

    @cut.tool(policy=ToolPolicy(effects=("idempotent",)))
    def off() -> int:
        """Block all writers, the first time."""
        begun.append(1)
        if len(begun) == 1:
            with closing(sqlite3.connect(tmp_path / "cut.sqlite", isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                over.wait(20)
        return len(begun)

    over = Event()
    with Engine(toolsets=[cut], plugins="none") as engine:
        with pytest.raises(CallError) as caught:
            run_durably(engine, plan_of({"it": {"tool": "cut.off"}}), url=url, run_id="it", lease=0.5)
        over.set()
        trace = resume(engine, url, "it")

    assert ("plan.lease_lost", "never") == (caught.value.code, caught.value.retry)
    assert "succeeded" == trace.status


def test_running_call_of_cancelled_run_is_in_doubt(make_database: MakeDatabase, parent: Parent, tmp_path: Path) -> None:
    """If its process has died; it is not reported as not begun."""
    url, marks = make_database("doubt"), steps.Marks(tmp_path / "marks")
    child = parent.child("run", url, marks.file, run="it", seconds=5.0)
    waiting_for(marks, steps.WIDTH, child)
    child.kill()
    cancel(url, "it")
    nodes = parent.child("resume", url, marks.file, run="it").result()["nodes"]

    assert dict.fromkeys(marks.under_way(), "plan.in_doubt") == {
        name: node["code"] for name, node in nodes.items() if name.startswith("n0_")
    }


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when all threads of a process stand still")
def test_process_considered_dead_makes_no_more_calls(
    make_database: MakeDatabase, parent: Parent, tmp_path: Path
) -> None:
    """It was only paused while another process resumed its run. It begins no node; its results change nothing."""
    url, marks = make_database("stopped"), steps.Marks(tmp_path / "marks")
    marks.hold("n1_")
    stopped = parent.child("run", url, marks.file, run="it", lease=3.0)
    waiting_for(marks, 6, stopped)
    stop(stopped.pid, url)
    marks.let_go()
    outlast(url)
    leader = leader_of(url)
    assert leader is not None, "it was over before it was stopped"
    other = parent.child("resume", url, marks.file, run="it")
    while leader_of(url) == leader:
        assert not other.out.exists(), other.result()
        time.sleep(0.01)
    os.kill(stopped.pid, signal.SIGCONT)
    nodes, failed = other.result()["nodes"], stopped.result()

    twice = {name for name, count in marks.of("begin").items() if count > 1}
    right = {name: value.hex() for name, value in steps.expected(steps.layered()).items()}
    done = {name for name, node in nodes.items() if node["status"] == "succeeded"}
    assert {"failed": "CallError: this process lost its lease, and another one may continue the run"} == failed
    assert {"ok", "plan.in_doubt", "plan.reference"} >= {node["code"] or "ok" for node in nodes.values()}
    assert {name: right[name] for name in done} == {name: nodes[name]["result"] for name in done}
    assert all(name.endswith(("_1", "_2")) for name in twice)


def test_lease_expires_without_heartbeat(parent: Parent, tmp_path: Path) -> None:
    """In real time: `resume` waits for it and takes over the running calls."""
    url, marks = f"sqlite:///{tmp_path}/lease.sqlite", steps.Marks(tmp_path / "marks")
    child = parent.child("run", url, marks.file, run="it", lease=2.0)
    waiting_for(marks, 8, child)
    child.kill()
    killed = time.monotonic()
    nodes = parent.child("resume", url, marks.file, run="it").result()["nodes"]

    assert time.monotonic() - killed > 1.0
    assert {"ok", "plan.in_doubt", "plan.reference"} >= {node["code"] or "ok" for node in nodes.values()}
    assert max(marks.of("begin").values()) <= 2


def test_repeated_halted_run_repeats_all_its_calls(engine: Engine, make_database: MakeDatabase) -> None:
    """Even if the halting node makes no call, and so ends sooner than when each call took its time."""
    plan = plan_from_data(
        {
            "nodes": {
                "fails": {"tool": "kept.fail", "inputs": {"how": "x"}, "on_fail": "continue"},
                "first": {"tool": "kept.double", "inputs": {"number": 1}},
                "lost": {"tool": "kept.double", "inputs": {"number": "${fails}"}, "on_fail": "continue"},
                "second": {"tool": "kept.double", "inputs": {"number": "${first}"}},
                "halts": {"tool": "kept.double", "inputs": {"number": "${lost}"}},
            }
        }
    )
    url = make_database("behind")
    done = run_durably(engine, plan, url=url, run_id="it", parallel=1)
    again = resume(engine, url, "it")

    assert 4 == done["second"].result
    assert [(node.name, node.status, node.result) for node in done.nodes] == [
        (node.name, node.status, node.result) for node in again.nodes
    ]


def test_ended_call_does_not_begin_again(engine: Engine, make_database: MakeDatabase) -> None:
    """Even if its worker died before it updated the queue, and the call is requeued."""
    url = make_database("again")
    plan = plan_from_data({"nodes": {"one": {"tool": "kept.double", "inputs": {"number": 1}, "rerun": True}}})
    run_durably(engine, plan, url=url, run_id="it")
    database = Database(url)
    Workers(database).join("late", 60.0)
    calls = Calls(database)
    begun = calls.claim("late", calls.waiting(), 1, lambda: True)
    database.close()

    assert begun == []
    assert [("ok", 1)] == [(call.status, call.starts) for call in show_run(url, "it")[1]]
