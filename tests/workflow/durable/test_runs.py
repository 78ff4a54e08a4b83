"""A durable run returns the same trace as the plan without a database, also when it is repeated."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import sys
import time
import traceback
from array import array
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import sqlalchemy as sa
from tests.workflow.durable import steps
from tests.workflow.durable.conftest import Child, Parent
from tests.workflow.durable.databases import MakeDatabase, cut_off, ended_last, leader_of, outlast

from neuroscript import ArgSpec, Engine, ExecutionPolicy, Host, ToolFailed, ToolPolicy, Toolset, ToolSpec
from neuroscript.errors import CallError, SpecError
from neuroscript.workflow import NodeTrace, Plan, Trace, plan_from_data, run
from neuroscript.workflow.durable import Worker, cancel, list_runs, resume, run_durably, show_run
from neuroscript.workflow.durable import database as durable_database
from neuroscript.workflow.durable.calls import Calls
from neuroscript.workflow.durable.database import Database, once
from neuroscript.workflow.durable.worker_registry import Workers

VALUES: dict[str, Any] = {
    "bytes": b"\x00\xff",
    "nothing": None,
    "numbers": [1, -(2**63), 0.1, 1e308, True],
    "whole": [3, 1, 2],
    "texts": ["", "\x00", "ä\U0001f600"],
    "looks_like_bytes": {"$base64": "QQ=="},
    "looks_like_ours": {"$bytes": "QQ==", "$pairs": []},
    "time": datetime(2026, 2, 3, 4, 5, 6, 7, UTC),
}


def tools() -> Toolset:
    """Return tools with results of many types and errors of many kinds."""
    kept = Toolset("kept")

    @kept.tool()
    def value(name: str) -> Any:
        """Return a value by its name."""
        return VALUES[name]

    @kept.tool()
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    @kept.tool()
    def fail(how: str) -> int:
        """Fail."""
        if how == "itself":
            raise ToolFailed("the shop is closed", code="shop.closed", retry="later")
        raise KeyError(how)

    @kept.tool(policy=ToolPolicy(requires_trust=True))
    def trusted() -> int:
        """Require trust."""
        return 1

    kept.add(
        ToolSpec("embed", "kept", (ArgSpec("of", "string"),), return_type="embedding"),
        lambda rt, of: array("f", [0.1, 0.2]),
    )
    secret = ArgSpec("token", "string", secret=True)
    kept.add(ToolSpec("enter", "kept", (secret,), return_type="int"), lambda rt, token: len(token))
    kept.add(ToolSpec("open", "kept", (), return_type="handle"), lambda rt: rt.handles.put(object(), "it"))
    return kept


@pytest.fixture
def engine() -> Iterator[Engine]:
    """Return an engine with the tools."""
    with Engine(toolsets=[tools()], plugins="none", host=Host(), policy=ExecutionPolicy()) as engine:
        yield engine


def plan_of(nodes: dict[str, Any], **more: Any) -> Plan:
    """Return a plan from nodes as plain data, whose failures do not halt it."""
    return plan_from_data(
        {"name": "it", "nodes": {name: {"on_fail": "continue", **node} for name, node in nodes.items()}, **more}
    )


def told(trace: Trace) -> list[Any]:
    """Return a trace without its times."""
    return [trace.status, trace.output, trace.error, *map(told_of, trace.nodes)]


def told_of(node: NodeTrace) -> list[Any]:
    attempts = sorted((each.item or 0, each.number, each.code) for each in node.attempts)
    return [node.name, node.status, node.arguments, node.result, node.error, node.reason, attempts]


VARIED = plan_of(
    {
        **{name: {"tool": "kept.value", "inputs": {"name": name}} for name in VALUES},
        "array": {"tool": "kept.embed", "inputs": {"of": "it"}},
        "doubled": {"tool": "kept.double", "inputs": {"number": "${input.start}"}},
        "mapped": {"tool": "kept.double", "map": "${whole}", "inputs": {"number": "${item}"}},
        "chosen": {
            "tool": "kept.double",
            "when": {"value": "${doubled}", "above": 5},
            "inputs": {"number": "${doubled}"},
        },
        "skipped": {"tool": "kept.double", "when": {"failed": "doubled"}, "inputs": {"number": 1}},
        "broken": {"tool": "kept.fail", "inputs": {"how": "x"}, "retry": {"count": 2, "backoff": 0.01}},
        "closed": {"tool": "kept.fail", "inputs": {"how": "itself"}},
        "unfit": {"tool": "kept.double", "inputs": {"number": "${bytes}"}},
        "lost": {"tool": "kept.double", "inputs": {"number": "${broken}"}},
    },
    inputs={"start": "int"},
)


def test_durable_run_returns_same_trace_as_plan(engine: Engine, make_database: MakeDatabase) -> None:
    """With values of every type, errors of every kind, and nodes that use them; also when it is repeated."""
    url = make_database("varied")
    plain = run(engine, VARIED, {"start": "3"})
    durable = run_durably(engine, VARIED, {"start": "3"}, url, run_id="it")
    again = resume(engine, url, "it")

    assert told(plain) == told(durable) == told(again)
    assert [type(node.result) for node in plain.nodes] == [type(node.result) for node in again.nodes]
    assert "it" == durable.run == again.run
    assert plain.digest == durable.digest == again.digest


def test_ended_run_is_not_repeated(make_database: MakeDatabase, tmp_path: Path) -> None:
    """It returns its trace with the original times."""
    url, marks, plan = make_database("ended"), steps.Marks(tmp_path / "marks"), steps.layered(0.0)
    with steps.engine(marks.file) as engine:
        first = run_durably(engine, plan, url=url, run_id="it")
        again = resume(engine, url, "it")
        starts = [[resume(engine, url, "it")[name].started for name in ("n0_0", "n4_3")] for _ in range(2)]

    assert dict.fromkeys(steps.expected(plan), 1) == dict(marks.of("begin"))
    assert told(first) == told(again)
    assert starts[0] == starts[1]


def test_halted_run_returns_its_original_trace(make_database: MakeDatabase, tmp_path: Path) -> None:
    """Nodes that had run when a node failed have their results; the others are unstarted."""
    url, marks = make_database("halted"), steps.Marks(tmp_path / "marks")
    step = {"tool": "step.once"}
    nodes = {
        "slow": {**step, "inputs": {"name": "slow", "before": [], "seconds": 0.4}},
        "fails": {"tool": "step.fail", "depends_on": ["slow"]},
        "after": {**step, "inputs": {"name": "after", "before": [], "seconds": 0}, "depends_on": ["fails"]},
        "first": {**step, "inputs": {"name": "first", "before": [], "seconds": 0}},
        "next": {**step, "inputs": {"name": "next", "before": [], "seconds": 0}, "depends_on": ["first"]},
    }
    plan = plan_from_data({"nodes": nodes})
    with steps.engine(marks.file) as engine:
        first = run_durably(engine, plan, url=url, run_id="it")
        again = resume(engine, url, "it")

    assert told(first) == told(again)
    assert ["succeeded", "failed", "unstarted", "succeeded", "succeeded"] == [node.status for node in again.nodes]


def test_nodes_not_begun_at_halt_are_unstarted(make_database: MakeDatabase, tmp_path: Path) -> None:
    """Even if one check saw two ends, the later of which halted the plan."""
    url = make_database("at_once")
    nodes = {
        "slow": {"tool": "step.once", "inputs": {"name": "slow", "before": [], "seconds": 0.3}},
        "after": {"tool": "step.fail", "depends_on": ["slow"]},
        "fails": {"tool": "step.fail"},
    }
    with steps.engine(tmp_path / "marks") as engine:
        first = run_durably(engine, plan_from_data({"nodes": nodes}), url=url, run_id="it")
        ended_last(url, "it.fails")
        again = resume(engine, url, "it")

    assert ["succeeded", "unstarted", "failed"] == [node.status for node in first.nodes]
    assert [(node.status, node.error) for node in first.nodes] == [(node.status, node.error) for node in again.nodes]


def test_calls_next_to_halting_node_are_in_trace(make_database: MakeDatabase, tmp_path: Path) -> None:
    """Although its retries are due at once when the run is repeated, and take the only slot."""
    url = make_database("beside")
    step = {"tool": "step.once", "inputs": {"name": "it", "before": [], "seconds": 0}, "on_fail": "continue"}
    nodes = {
        "first": step,
        "halts": {"tool": "step.fail", "depends_on": ["first"], "retry": {"count": 2, "backoff": 0.05}},
        "second": {**step, "depends_on": ["first"]},
        "third": {**step, "depends_on": ["second"]},
    }
    with steps.engine(tmp_path / "marks") as engine:
        first = run_durably(engine, plan_from_data({"nodes": nodes}), url=url, run_id="it", parallel=1)
        again = resume(engine, url, "it")

    assert ["succeeded", "failed", "succeeded", "succeeded"] == [node.status for node in first.nodes]
    assert told(first) == told(again)


def test_pending_retry_does_not_run_after_halt(make_database: MakeDatabase, tmp_path: Path) -> None:
    """Although it is due when the run is repeated."""
    url, marks = make_database("due"), steps.Marks(tmp_path / "marks")
    again = {"count": 1, "backoff": 0.5}
    nodes = {
        "due": {"tool": "step.fail", "retry": again},
        "slow": {"tool": "step.once", "inputs": {"name": "slow", "before": [], "seconds": 0.2}},
        "halts": {"tool": "step.fail", "depends_on": ["slow"]},
    }
    with steps.engine(marks.file) as engine:
        first = run_durably(engine, plan_from_data({"nodes": nodes}), url=url, run_id="it")
        time.sleep(0.6)
        later = resume(engine, url, "it")

    assert 3 == len(show_run(url, "it")[1])
    assert told(first) == told(later)
    assert ["failed", "succeeded", "failed"] == [each.status for each in later.nodes]


def test_abandoned_call_is_retried_after_it_has_ended(make_database: MakeDatabase) -> None:
    """If its tool is idempotent, as without a database; two copies never run at once."""
    slow, at_once = Toolset("slow"), []

    @slow.tool(policy=ToolPolicy(effects=("idempotent",)))
    def once() -> int:
        """Take long the first time."""
        at_once.append(1)
        if len(at_once) == 1:
            time.sleep(0.5)
            at_once.append(2)
        return len(at_once)

    node = {"tool": "slow.once", "timeout": 0.3, "retry": {"count": 1, "backoff": 0, "on": ["call.timeout"]}}
    with Engine(toolsets=[slow], plugins="none") as engine:
        trace = run_durably(engine, plan_of({"it": node}), url=make_database("left"))

    assert 3 == trace.output
    assert ["call.timeout", "ok"] == [each.code for each in trace["it"].attempts]


def test_clock_of_database_may_differ(make_database: MakeDatabase, tmp_path: Path) -> None:
    """Retries use the process's own clock, whether the database's is ahead or behind."""
    url, marks = make_database("clocks"), steps.Marks(tmp_path / "marks")
    plan = plan_from_data({"nodes": {"due": {"tool": "step.fail", "retry": {"count": 1, "backoff": 0.1}}}})
    runs = []
    for ahead in (-3600.0, 3600.0):
        with steps.engine(marks.file, host=Host(clock=lambda ahead=ahead: time.time() + ahead)) as engine:
            first = run_durably(engine, plan, url=url, run_id=f"r{ahead > 0:d}")
            runs += [first, resume(engine, url, first.run)]

    assert [["tool.failed", "tool.failed"]] * 4 == [[each.code for each in run["due"].attempts] for run in runs]


def test_runs_are_listed_and_shown(engine: Engine, make_database: MakeDatabase) -> None:
    """With each attempt of each node."""
    url = make_database("listed")
    nodes = {
        "good": {"tool": "kept.double", "map": [1, 2], "inputs": {"number": "${item}"}},
        "bad": {"tool": "kept.fail", "inputs": {"how": "x"}, "retry": {"count": 1, "backoff": 0}, "on_fail": "halt"},
    }
    run_durably(engine, plan_of(nodes), url=url, run_id="one")
    run_durably(engine, plan_of({"only": {"tool": "kept.double", "inputs": {"number": 1}}}), url=url, run_id="two")
    state, calls = show_run(url, "one")

    assert [("two", "succeeded", ""), ("one", "failed", "bad failed")] == [
        (each.id, each.status, each.error) for each in list_runs(url)
    ]
    assert "one" == state.id
    assert [
        ("bad", None, 1, "tool.failed"),
        ("bad", None, 2, "tool.failed"),
        ("good", 0, 1, "ok"),
        ("good", 1, 1, "ok"),
    ] == sorted((call.node, call.item, call.number, call.status) for call in calls)


def test_value_the_database_rejects_fails_its_node(make_database: MakeDatabase) -> None:
    """The run ends."""
    odd = Toolset("odd")

    @odd.tool()
    def fail() -> None:
        """Fail with a code that is not valid UTF-8."""
        raise ToolFailed("it is closed", code="odd.\ud800")

    with Engine(toolsets=[odd], plugins="none") as engine:
        trace = run_durably(engine, plan_of({"it": {"tool": "odd.fail"}}), url=make_database("odd"))

    assert "odd.fail: its result cannot be stored (UnicodeEncodeError)" == trace["it"].error["message"]


# Rejected runs


def test_secrets_are_stored_only_on_request(engine: Engine, make_database: MakeDatabase) -> None:
    """Neither inputs of the plan nor arguments."""
    nodes = {"enter": {"tool": "kept.enter", "inputs": {"token": "${input.token}"}}}
    plan = plan_of(nodes, inputs={"token": {"type": "string", "secret": True}})
    url, given = make_database("secret"), {"token": "open sesame"}
    with pytest.raises(SpecError) as caught:
        run_durably(engine, plan, given, url)
    trace = run_durably(engine, plan, given, url, keep_secrets=True)

    why = "is secret, and a durable run stores inputs and arguments unencrypted in its database"
    assert f"plan it: inputs.token: {why}; nodes.enter.inputs.token: {why}" == str(caught.value)
    assert [11, {"token": "[secret]"}, {"token": "[secret]"}] == [trace.output, trace["enter"].arguments, trace.inputs]
    assert 1 == len(list_runs(url))


def test_handles_cannot_be_stored(engine: Engine, make_database: MakeDatabase) -> None:
    """A handle is valid only in one process."""
    with pytest.raises(SpecError) as caught:
        run_durably(engine, plan_of({"open": {"tool": "kept.open"}}), url=make_database("handle"))

    assert (
        "plan it: nodes.open.tool: takes or returns a handle, which is valid only in the process that made it"
        == str(caught.value)
    )


def test_plan_that_cannot_run_is_not_stored(engine: Engine, make_database: MakeDatabase) -> None:
    """It is refused as without a database."""
    url = make_database("refused")
    with pytest.raises(SpecError) as caught:
        run_durably(engine, plan_of({"it": {"tool": "kept.trusted"}}), url=url)

    assert str(caught.value).startswith("plan it: nodes.it.tool: ")
    assert [] == list_runs(url)


def test_parallel_is_checked_before_run_is_stored(engine: Engine, make_database: MakeDatabase) -> None:
    """Otherwise the stored run could never be resumed."""
    url = make_database("none")
    with pytest.raises(ValueError, match=r"\Aparallel must be 1 or more\Z"):
        run_durably(engine, plan_of({"it": {"tool": "kept.value", "inputs": {"name": "x"}}}), url=url, parallel=0)

    assert [] == list_runs(url)


def test_invalid_arguments_are_rejected(
    engine: Engine, make_database: MakeDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Addresses, ids and leases; ids that exist already, or do not exist."""
    plan, url = plan_of({"it": {"tool": "kept.double", "inputs": {"number": 1}}}), make_database("words")
    run_durably(engine, plan, url=url, run_id="taken")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("no database " * 1_000)
    refused = {
        "durable: the address must be sqlite:///FILE or postgresql://USER@HOST/NAME": lambda: list_runs(
            "mysql://u@h/n"
        ),
        "durable: a lease must be from 0.5 to 604800 seconds": lambda: run_durably(engine, plan, url=url, lease=0.1),
        "durable: parallel must be an integer from 1 to 1000": lambda: Worker(engine, url, parallel=0),
        "run a.b: an id must be at most 64 letters, digits, _ and -": lambda: run_durably(
            engine, plan, url=url, run_id="a.b"
        ),
        "run taken: already exists": lambda: run_durably(engine, plan, url=url, run_id="taken"),
        "run none: does not exist": lambda: resume(engine, url, "none"),
        "run taken: has already succeeded": lambda: cancel(url, "taken"),
        "sqlite:///text: cannot be used as a database: file is not a database": lambda: list_runs("sqlite:///text"),
        "sqlite:///text/in: cannot be used as a database: not a directory": lambda: list_runs("sqlite:///text/in"),
    }
    said = []
    for do in refused.values():
        with pytest.raises(SpecError) as caught:
            do()
        said.append(str(caught.value))

    assert [*refused] == said


def test_errors_contain_no_password() -> None:
    """Wherever in an address it is, and however it is written."""
    said = []
    for url in (
        "postgresql://me:open@127.0.0.1:1/plans",
        "postgresql://me@127.0.0.1:1/plans?password=open",
        "postgresql://me:op@en@127.0.0.1:1/plans",
    ):
        with pytest.raises(SpecError) as caught:
            list_runs(url)
        said.append(str(caught.value).partition(": cannot be used as a database: ")[0])

    assert [
        "postgresql://me:***@127.0.0.1:1/plans",
        "postgresql://me@127.0.0.1:1/plans",
        "durable: an @ in the password of an address must be written as %40",
    ] == said


def test_database_errors_contain_no_arguments(make_database: MakeDatabase) -> None:
    """Nor do their causes."""
    database = Database(make_database("quiet"))
    query, given = sa.text("SELECT * FROM nowhere WHERE it = :given"), "-".join(("open", "sesame"))
    with pytest.raises((CallError, SpecError)) as caught:
        database.transaction(lambda connection: connection.execute(query, {"given": given}), once)
    database.close()

    assert given not in "".join(traceback.format_exception(caught.value))


def test_process_has_one_worker(engine: Engine, make_database: MakeDatabase) -> None:
    """A second one is refused until the first has ended."""
    url = make_database("second")
    with Worker(engine, url):
        with pytest.raises(SpecError) as caught:
            Worker(engine, url).__enter__()
    with Worker(engine, url) as later:
        assert not later.is_lost

    assert "durable: this process is already a worker; a process can have only one" == str(caught.value)


# Processes that are cancelled, paused, or considered dead


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
    """Running calls end; all others end as cancelled, also when the run is repeated."""
    url, marks = make_database("cancelled"), steps.Marks(tmp_path / "marks")
    child = parent.child("run", url, marks.file, run="it")
    waiting_for(marks, 3, child)
    state = cancel(url, "it")
    begun = marks.of("begin")
    nodes = child.result()["nodes"]
    again = parent.child("resume", url, marks.file, run="it").result()["nodes"]

    late = marks.of("begin") - begun  # between the record of a node's beginning and its mark
    assert "cancelled" == state.status == show_run(url, "it")[0].status
    assert len(late) <= steps.WIDTH
    assert {"ok", "plan.cancelled", "plan.reference"} >= {node["code"] or "ok" for node in nodes.values()}
    assert "plan.cancelled" in {node["code"] for node in nodes.values()}
    assert nodes == again
    assert marks.of("end") == marks.of("begin")


def test_unreachable_database_fails_no_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls wait for it as long as the lease lasts."""
    monkeypatch.setattr(durable_database, "BUSY", 0.1)
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
    monkeypatch.setattr(durable_database, "BUSY", 0.2)
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
    begun = Calls(database).begin("it.one", "late", lambda: True)
    database.close()

    assert begun is None
    assert [("ok", 1)] == [(call.status, call.begun) for call in show_run(url, "it")[1]]
