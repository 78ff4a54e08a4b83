"""What a durable run gives is what the same plan gives without a database, now and whenever it is gone through again."""

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
    """Return tools that give all sorts of values, and fail in all sorts of ways."""
    kept = Toolset("kept")

    @kept.tool()
    def value(name: str) -> Any:
        """Give a value by its name."""
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
        """Need trust."""
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
    """Return a plan of nodes as plain data, whose failures halt nothing."""
    return plan_from_data(
        {"name": "it", "nodes": {name: {"on_fail": "continue", **node} for name, node in nodes.items()}, **more}
    )


def told(trace: Trace) -> list[Any]:
    """Return all of a trace but its times."""
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


def test_a_durable_run_gives_what_the_plan_gives(engine: Engine, make_database: MakeDatabase) -> None:
    """Values of every type, errors of every kind, and what is made of them; and again when it is gone through again."""
    url = make_database("varied")
    plain = run(engine, VARIED, {"start": "3"})
    durable = run_durably(engine, VARIED, {"start": "3"}, url, run_id="it")
    again = resume(engine, url, "it")

    assert told(plain) == told(durable) == told(again)
    assert [type(node.result) for node in plain.nodes] == [type(node.result) for node in again.nodes]
    assert "it" == durable.run == again.run
    assert plain.digest == durable.digest == again.digest


def test_what_has_ended_is_not_run_again(make_database: MakeDatabase, tmp_path: Path) -> None:
    """A run that has ended only tells what it has done, and when it did it."""
    url, marks, plan = make_database("ended"), steps.Marks(tmp_path / "marks"), steps.layered(0.0)
    with steps.engine(marks.file) as engine:
        first = run_durably(engine, plan, url=url, run_id="it")
        again = resume(engine, url, "it")
        starts = [[resume(engine, url, "it")[name].started for name in ("n0_0", "n4_3")] for _ in range(2)]

    assert dict.fromkeys(steps.expected(plan), 1) == dict(marks.of("begin"))
    assert told(first) == told(again)
    assert starts[0] == starts[1]


def test_a_run_that_was_halted_is_told_as_it_went(make_database: MakeDatabase, tmp_path: Path) -> None:
    """What had run when a node failed has run; what had not is unstarted."""
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


def test_what_was_not_begun_when_a_plan_was_halted_is_unstarted(make_database: MakeDatabase, tmp_path: Path) -> None:
    """Also where two ends were seen at one look, of which the later one halted the plan."""
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


def test_what_ran_beside_a_node_that_halts_at_last_is_told(make_database: MakeDatabase, tmp_path: Path) -> None:
    """Although its further attempts are due at once when the run is gone through again, and take the only place."""
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


def test_what_was_due_again_is_not_run_where_the_plan_was_halted(make_database: MakeDatabase, tmp_path: Path) -> None:
    """Although its time has come when the run is gone through again."""
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


def test_a_call_that_was_left_behind_is_tried_again_when_it_has_ended(make_database: MakeDatabase) -> None:
    """Where its tool is idempotent, as without a database; never two copies at once."""
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


def test_clocks_may_differ(make_database: MakeDatabase, tmp_path: Path) -> None:
    """That of the database is not what a further attempt waits by, whether the process's own is behind it or ahead."""
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


def test_what_the_database_does_not_take_fails_its_node(make_database: MakeDatabase) -> None:
    """Its run ends."""
    odd = Toolset("odd")

    @odd.tool()
    def fail() -> None:
        """Fail with a code that is no text of UTF-8."""
        raise ToolFailed("it is closed", code="odd.\ud800")

    with Engine(toolsets=[odd], plugins="none") as engine:
        trace = run_durably(engine, plan_of({"it": {"tool": "odd.fail"}}), url=make_database("odd"))

    assert "odd.fail: what came of it can not be kept (UnicodeEncodeError)" == trace["it"].error["message"]


# What is refused


def test_a_secret_is_not_kept_unless_that_is_said(engine: Engine, make_database: MakeDatabase) -> None:
    """Neither as an input of the plan nor as an argument."""
    nodes = {"enter": {"tool": "kept.enter", "inputs": {"token": "${input.token}"}}}
    plan = plan_of(nodes, inputs={"token": {"type": "string", "secret": True}})
    url, given = make_database("secret"), {"token": "open sesame"}
    with pytest.raises(SpecError) as caught:
        run_durably(engine, plan, given, url)
    trace = run_durably(engine, plan, given, url, keep_secrets=True)

    why = "is secret, and what a durable run is given stands in its database as it is"
    assert f"plan it: inputs.token: {why}; nodes.enter.inputs.token: {why}" == str(caught.value)
    assert [11, {"token": "[secret]"}, {"token": "[secret]"}] == [trace.output, trace["enter"].arguments, trace.inputs]
    assert 1 == len(list_runs(url))


def test_a_handle_is_not_kept(engine: Engine, make_database: MakeDatabase) -> None:
    """It is known to one process alone."""
    with pytest.raises(SpecError) as caught:
        run_durably(engine, plan_of({"open": {"tool": "kept.open"}}), url=make_database("handle"))

    assert "plan it: nodes.open.tool: takes or gives a handle, which only the process knows that has made it" == str(
        caught.value
    )


def test_a_plan_that_can_not_run_is_refused_before_it_is_kept(engine: Engine, make_database: MakeDatabase) -> None:
    """As it is without a database."""
    url = make_database("refused")
    with pytest.raises(SpecError) as caught:
        run_durably(engine, plan_of({"it": {"tool": "kept.trusted"}}), url=url)

    assert str(caught.value).startswith("plan it: nodes.it.tool: ")
    assert [] == list_runs(url)


def test_how_many_calls_are_given_out_is_checked_before_a_run_is_kept(
    engine: Engine, make_database: MakeDatabase
) -> None:
    """Or it would stand there for ever, and nobody could go on with it."""
    url = make_database("none")
    with pytest.raises(ValueError, match=r"\Aparallel must be 1 or more\Z"):
        run_durably(engine, plan_of({"it": {"tool": "kept.value", "inputs": {"name": "x"}}}), url=url, parallel=0)

    assert [] == list_runs(url)


def test_words_that_are_none_are_refused(
    engine: Engine, make_database: MakeDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Addresses, ids, leases; and what is there already, or is not."""
    plan, url = plan_of({"it": {"tool": "kept.double", "inputs": {"number": 1}}}), make_database("words")
    run_durably(engine, plan, url=url, run_id="taken")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("no database " * 1_000)
    refused = {
        "durable: an address is sqlite:///FILE or postgresql://USER@HOST/NAME": lambda: list_runs("mysql://u@h/n"),
        "durable: a lease must be from 0.5 to 604800 seconds": lambda: run_durably(engine, plan, url=url, lease=0.1),
        "durable: parallel must be an integer from 1 to 1000": lambda: Worker(engine, url, parallel=0),
        "run a.b: an id is letters, digits, _ and -, at most 64": lambda: run_durably(
            engine, plan, url=url, run_id="a.b"
        ),
        "run taken: there is one of that id": lambda: run_durably(engine, plan, url=url, run_id="taken"),
        "run none: there is none of that id": lambda: resume(engine, url, "none"),
        "run taken: has succeeded already": lambda: cancel(url, "taken"),
        "sqlite:///text: can not be used as a database: file is not a database": lambda: list_runs("sqlite:///text"),
        "sqlite:///text/in: can not be used as a database: not a directory": lambda: list_runs("sqlite:///text/in"),
    }
    said = []
    for do in refused.values():
        with pytest.raises(SpecError) as caught:
            do()
        said.append(str(caught.value))

    assert [*refused] == said


def test_a_password_is_in_no_error() -> None:
    """Wherever in an address it stands, and however it is spelt."""
    said = []
    for url in (
        "postgresql://me:open@127.0.0.1:1/plans",
        "postgresql://me@127.0.0.1:1/plans?password=open",
        "postgresql://me:op@en@127.0.0.1:1/plans",
    ):
        with pytest.raises(SpecError) as caught:
            list_runs(url)
        said.append(str(caught.value).partition(": can not be used as a database: ")[0])

    assert [
        "postgresql://me:***@127.0.0.1:1/plans",
        "postgresql://me@127.0.0.1:1/plans",
        "durable: in an address an @ of a password is written %40",
    ] == said


def test_what_a_call_is_given_is_in_no_error_of_the_database(make_database: MakeDatabase) -> None:
    """Nor in what that error was made of."""
    database = Database(make_database("quiet"))
    query, given = sa.text("SELECT * FROM nowhere WHERE it = :given"), "-".join(("open", "sesame"))
    with pytest.raises((CallError, SpecError)) as caught:
        database.transaction(lambda connection: connection.execute(query, {"given": given}), once)
    database.close()

    assert given not in "".join(traceback.format_exception(caught.value))


def test_a_process_is_one_worker(engine: Engine, make_database: MakeDatabase) -> None:
    """A second one is refused, and may come when the first has gone."""
    url = make_database("second")
    with Worker(engine, url):
        with pytest.raises(SpecError) as caught:
            Worker(engine, url).__enter__()
    with Worker(engine, url) as later:
        assert not later.is_lost

    assert "durable: this process is a worker already, and can not be a second one" == str(caught.value)


# Processes that are cancelled, stopped, or taken for dead


def waiting_for(marks: steps.Marks, count: int, child: Child) -> None:
    """Wait until so many nodes have begun, or a child has ended, for what needs a node in doubt does not begin."""
    while sum(marks.of("begin").values()) < count and not child.out.exists():
        time.sleep(0.005)


def stop(pid: int, url: str) -> None:
    """Stop a process so that it holds no lock: that of SQLite nobody can take from it, PostgreSQL takes it itself."""
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


def test_nothing_further_of_a_cancelled_run_begins(make_database: MakeDatabase, parent: Parent, tmp_path: Path) -> None:
    """What was being run ends; all others end as cancelled, also when it is gone through again."""
    url, marks = make_database("cancelled"), steps.Marks(tmp_path / "marks")
    child = parent.child("run", url, marks.file, run="it")
    waiting_for(marks, 3, child)
    state = cancel(url, "it")
    begun = marks.of("begin")
    nodes = child.result()["nodes"]
    again = parent.child("resume", url, marks.file, run="it").result()["nodes"]

    late = marks.of("begin") - begun  # between the word of a node that has begun, and its mark
    assert "cancelled" == state.status == show_run(url, "it")[0].status
    assert len(late) <= steps.WIDTH
    assert {"ok", "plan.cancelled", "plan.reference"} >= {node["code"] or "ok" for node in nodes.values()}
    assert "plan.cancelled" in {node["code"] for node in nodes.values()}
    assert nodes == again
    assert marks.of("end") == marks.of("begin")


def test_a_database_that_is_away_fails_no_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as the lease lasts, what is to be given out waits for it."""
    monkeypatch.setattr(durable_database, "BUSY", 0.1)
    file, held, tries = tmp_path / "held.sqlite", Toolset("held"), []

    @held.tool()
    def off() -> int:
        """Hold everybody up who writes, between two attempts of the other node."""
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


def test_a_process_that_is_cut_off_lets_go_and_goes_on_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so; its worker has ended, and the same process can go on with the run once the database is back."""
    monkeypatch.setattr(durable_database, "BUSY", 0.2)
    url, cut = f"sqlite:///{tmp_path}/cut.sqlite", Toolset("cut")
    begun = []

    @cut.tool(policy=ToolPolicy(effects=("idempotent",)))
    def off() -> int:
        """Hold everybody up who writes, the first time."""
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

    assert ("plan.taken", "never") == (caught.value.code, caught.value.retry)
    assert "succeeded" == trace.status


def test_what_was_under_way_in_a_cancelled_run_is_in_doubt(
    make_database: MakeDatabase, parent: Parent, tmp_path: Path
) -> None:
    """Where its process has died meanwhile: nobody says of it that it has not begun."""
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
def test_a_process_that_was_taken_for_dead_does_nothing_more(
    make_database: MakeDatabase, parent: Parent, tmp_path: Path
) -> None:
    """It was only stopped, and another one has gone on with its run: it begins no node, and its ends change nothing."""
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
    assert {"failed": "CallError: this process was taken for dead, and another one may go on with the run"} == failed
    assert {"ok", "plan.in_doubt", "plan.reference"} >= {node["code"] or "ok" for node in nodes.values()}
    assert {name: right[name] for name in done} == {name: nodes[name]["result"] for name in done}
    assert all(name.endswith(("_1", "_2")) for name in twice)


def test_a_lease_that_is_not_kept_is_over(parent: Parent, tmp_path: Path) -> None:
    """In real time: who resumes a run waits for it, and takes over what was under way."""
    url, marks = f"sqlite:///{tmp_path}/lease.sqlite", steps.Marks(tmp_path / "marks")
    child = parent.child("run", url, marks.file, run="it", lease=2.0)
    waiting_for(marks, 8, child)
    child.kill()
    killed = time.monotonic()
    nodes = parent.child("resume", url, marks.file, run="it").result()["nodes"]

    assert time.monotonic() - killed > 1.0
    assert {"ok", "plan.in_doubt", "plan.reference"} >= {node["code"] or "ok" for node in nodes.values()}
    assert max(marks.of("begin").values()) <= 2


def test_a_halted_run_that_is_gone_through_again_comes_to_all_that_it_had_done(
    engine: Engine, make_database: MakeDatabase
) -> None:
    """Also where what halts the plan makes no call, and so comes sooner than when each call took its time."""
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


def test_a_call_that_has_ended_is_not_begun_again(engine: Engine, make_database: MakeDatabase) -> None:
    """Also where its worker died before the queue had heard of it, and it is put back."""
    url = make_database("again")
    plan = plan_from_data({"nodes": {"one": {"tool": "kept.double", "inputs": {"number": 1}, "rerun": True}}})
    run_durably(engine, plan, url=url, run_id="it")
    database = Database(url)
    Workers(database).join("late", 60.0)
    begun = Calls(database).begin("it.one", "late", lambda: True)
    database.close()

    assert begun is None
    assert [("ok", 1)] == [(call.status, call.begun) for call in show_run(url, "it")[1]]
