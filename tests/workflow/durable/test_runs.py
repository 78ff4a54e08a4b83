"""Durable runs: the same trace as without a database, and refused runs."""

from __future__ import annotations

import time
import traceback
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.workflow.durable import steps
from tests.workflow.durable.databases import MakeDatabase, ended_last
from tests.workflow.durable.durable_plans import VALUES, plan_of

from neuroscript import Engine, Host, ToolFailed, ToolPolicy, Toolset
from neuroscript.errors import CallError, SpecError
from neuroscript.workflow import NodeTrace, Trace, plan_from_data, run
from neuroscript.workflow.durable import Worker, cancel, list_runs, resume, run_durably, show_run
from neuroscript.workflow.durable.database import Database, once


def comparable(trace: Trace) -> list[Any]:
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

    assert comparable(plain) == comparable(durable) == comparable(again)
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
    assert comparable(first) == comparable(again)
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

    assert comparable(first) == comparable(again)
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
    assert comparable(first) == comparable(again)


def test_pending_retry_does_not_run_after_halt(make_database: MakeDatabase, tmp_path: Path) -> None:
    """Although it is due when the run is repeated."""
    url, marks = make_database("due"), steps.Marks(tmp_path / "marks")
    again = {"count": 1, "backoff": 2.0}
    nodes = {
        "due": {"tool": "step.fail", "retry": again},
        "slow": {"tool": "step.once", "inputs": {"name": "slow", "before": [], "seconds": 0.2}},
        "halts": {"tool": "step.fail", "depends_on": ["slow"]},
    }
    with steps.engine(marks.file) as engine:
        first = run_durably(engine, plan_from_data({"nodes": nodes}), url=url, run_id="it")
        time.sleep(2.1)
        later = resume(engine, url, "it")

    assert 3 == len(show_run(url, "it")[1])
    assert comparable(first) == comparable(later)
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
    messages = []
    for do in refused.values():
        with pytest.raises(SpecError) as caught:
            do()
        messages.append(str(caught.value))

    assert [*refused] == messages


def test_errors_contain_no_password() -> None:
    """Wherever in an address it is, and however it is written."""
    messages = []
    for url in (
        "postgresql://me:open@127.0.0.1:1/plans",
        "postgresql://me@127.0.0.1:1/plans?password=open",
        "postgresql://me:op@en@127.0.0.1:1/plans",
    ):
        with pytest.raises(SpecError) as caught:
            list_runs(url)
        messages.append(str(caught.value).partition(": cannot be used as a database: ")[0])

    assert [
        "postgresql://me:***@127.0.0.1:1/plans",
        "postgresql://me@127.0.0.1:1/plans",
        "durable: an @ in the password of an address must be written as %40",
    ] == messages


def test_database_errors_contain_no_arguments(make_database: MakeDatabase) -> None:
    """Nor do their causes."""
    database = Database(make_database("quiet"))
    query, given = sa.text("SELECT * FROM nowhere WHERE it = :given"), "-".join(("open", "sesame"))
    with pytest.raises((CallError, SpecError)) as caught:
        database.transaction(lambda connection: connection.execute(query, {"given": given}), once)
    database.close()

    assert given not in "".join(traceback.format_exception(caught.value))


def test_process_can_have_several_workers(engine: Engine, make_database: MakeDatabase) -> None:
    """The run has one of its own, too."""
    url = make_database("second")
    plan = plan_of({f"n{number}": {"tool": "kept.double", "inputs": {"number": number}} for number in range(4)})
    with Worker(engine, url), Worker(engine, url):
        trace = run_durably(engine, plan, url=url)

    assert {f"n{number}": 2 * number for number in range(4)} == trace.output
