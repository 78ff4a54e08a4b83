"""Cancelled durable runs: their traces say so, whenever they were cancelled and whatever their nodes do on failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.workflow.durable import steps
from tests.workflow.durable.databases import MakeDatabase
from tests.workflow.durable.test_runs import comparable

from neuroscript import Engine, ExecutionPolicy, Host, Limits, ToolFailed, ToolPolicy, Toolset, Turn
from neuroscript.workflow import Trace, load_trace, plan_from_data, save_trace, trace_diff, trace_text
from neuroscript.workflow.durable import cancel, list_runs, resume, run_durably, show_run
from neuroscript.workflow.durable.database import RUNS, Database, sa
from neuroscript.workflow.durable.takeover import take_over

CANCELLED = {"code": "plan.cancelled", "number": 6, "retry": "never", "message": "the run was cancelled"}


class Talker:
    """A model that counts its prompts.

    Args:
        then: Called by each prompt.
    """

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self.prompts = 0
        self._then = then

    def ask(self, turns: Sequence[Turn], tools: Any = None) -> Turn:
        """Answer a prompt."""
        self.prompts += 1
        self._then()
        return Turn("assistant", "It went well.")


def engine_for(url: str, llm: Any = None, limits: Limits | None = None) -> Engine:
    """Return an engine whose tools cancel the run ``it``, in which they are called."""
    stop = Toolset("stop")

    @stop.tool()
    def now(item: int = 0) -> int:
        """Cancel the run, for item 0."""
        if item == 0:
            cancel(url, "it")
        return item

    @stop.tool(policy=ToolPolicy(effects=("idempotent",)))
    def fail() -> int:
        """Cancel the run and fail."""
        cancel(url, "it")
        raise ToolFailed("not now", retry="later")

    @stop.tool()
    def pretend() -> int:
        """Fail with the error code of a cancelled run."""
        raise ToolFailed("was cancelled", code="plan.cancelled")

    @stop.tool()
    def after(item: int = 1) -> int:
        """Return a number."""
        return item

    return Engine(
        toolsets=[stop], plugins="none", host=Host(llm=llm), policy=ExecutionPolicy(limits=limits or Limits())
    )


def run_and_resume(url: str, nodes: dict[str, Any], llm: Any = None, **settings: Any) -> Trace:
    """Run a plan that cancels itself, compare its trace with that of `resume`, and return it."""
    with engine_for(url, llm) as engine:
        first = run_durably(engine, plan_from_data({"nodes": nodes, **settings}), url=url, run_id="it", parallel=1)
        again = resume(engine, url, "it")

    assert comparable(first) == comparable(again)
    assert ["cancelled"] == [run.status for run in list_runs(url)]
    return first


@pytest.mark.parametrize("on_fail", ["continue", "halt"])
def test_trace_of_cancelled_run_says_so(make_database: MakeDatabase, tmp_path: Path, on_fail: str) -> None:
    """Nodes that never ran are unstarted, also those that run only if another one has failed."""
    nodes = {
        "stop": {"tool": "stop.now"},
        "after": {"tool": "stop.after", "depends_on": ["stop"], "on_fail": on_fail},
        "instead": {"tool": "stop.after", "when": {"failed": "after"}, "on_fail": on_fail},
    }
    trace = run_and_resume(make_database(f"says_{on_fail}"), nodes)
    save_trace(trace, tmp_path / "trace.json")

    assert ("cancelled", CANCELLED, None) == (trace.status, trace.error, trace.output)
    assert ["succeeded", "unstarted", "unstarted"] == [node.status for node in trace.nodes]
    assert [(None, ()), (None, ())] == [(node.error, node.attempts) for node in trace.nodes[1:]]
    assert trace == load_trace(tmp_path / "trace.json")


def test_run_cancelled_during_its_last_call_asks_no_model(make_sqlite: MakeDatabase) -> None:
    """It is cancelled although each node has succeeded; `resume` asks no model either."""
    llm = Talker()
    trace = run_and_resume(make_sqlite("last"), {"stop": {"tool": "stop.now"}}, llm, synthesis="How was it?")

    assert ("cancelled", CANCELLED, None, "", 0) == (trace.status, trace.error, trace.output, trace.answer, llm.prompts)
    assert "succeeded" == trace["stop"].status


def test_run_cancelled_during_its_synthesis_has_no_answer(make_sqlite: MakeDatabase) -> None:
    """Its trace is that of `resume`, which asks no model."""
    url = make_sqlite("synthesis")
    llm = Talker(then=lambda: cancel(url, "it"))
    trace = run_and_resume(url, {"one": {"tool": "stop.after"}}, llm, synthesis="How was it?")

    assert ("cancelled", CANCELLED, None, "", 1) == (trace.status, trace.error, trace.output, trace.answer, llm.prompts)


def test_failed_and_incomplete_nodes_of_cancelled_run(make_sqlite: MakeDatabase) -> None:
    """A node whose retry was dropped has its own error, and one that lacks items fails."""
    mapped = {"tool": "stop.now", "map": [0, 1, 2], "inputs": {"item": "${item}"}, "on_fail": "continue"}
    retried = {"tool": "stop.fail", "retry": {"count": 3, "backoff": 0.01}, "on_fail": "continue"}
    items = run_and_resume(make_sqlite("items"), {"each": mapped})["each"]
    again = run_and_resume(make_sqlite("retry"), {"again": retried})["again"]

    text = "stop.now: did not run for every item, because the run was cancelled"
    assert items.error is not None and again.error is not None
    assert ("failed", "plan.cancelled", text) == (items.status, items.error["code"], items.error["message"])
    assert [(0, "ok")] == [(each.item, each.code) for each in items.attempts]
    assert ("failed", "tool.failed", 1) == (again.status, again.error["code"], len(again.attempts))


def test_queued_call_of_cancelled_run_never_begins(make_database: MakeDatabase) -> None:
    """It waited for a slot of the worker; `runs show` still lists it."""
    url, node = make_database("queued"), {"tool": "stop.now", "on_fail": "continue"}
    plan = plan_from_data({"nodes": {"a": node, "b": node, "c": {"tool": "stop.after", "depends_on": ["a", "b"]}}})
    with engine_for(url, limits=Limits(concurrency=1)) as engine:
        trace = run_durably(engine, plan, url=url, run_id="it")
        again = resume(engine, url, "it")

    assert "cancelled" == trace.status
    assert ["succeeded", "unstarted"] == sorted(trace[name].status for name in "ab")
    assert "unstarted" == trace["c"].status
    assert comparable(trace) == comparable(again)
    assert [("ok", 1), ("plan.cancelled", 0)] == [(call.status, call.starts) for call in show_run(url, "it")[1]]


@pytest.mark.parametrize("on_fail", ["continue", "halt"])
def test_tool_cannot_pretend_that_its_run_was_cancelled(make_sqlite: MakeDatabase, on_fail: str) -> None:
    """Its error code is that of a failed node."""
    url = make_sqlite(f"pretend_{on_fail}")
    nodes = {
        "bad": {"tool": "stop.pretend", "on_fail": on_fail},
        "next": {"tool": "stop.after", "depends_on": ["bad"]},
    }
    with engine_for(url) as engine:
        trace = run_durably(engine, plan_from_data({"nodes": nodes}), url=url, run_id="it")
        again = resume(engine, url, "it")

    status, last = ("succeeded", "succeeded") if on_fail == "continue" else ("failed", "unstarted")
    assert (status, ["failed", last]) == (trace.status, [node.status for node in trace.nodes])
    assert comparable(trace) == comparable(again)
    assert [status] == [run.status for run in list_runs(url)]


def test_begun_idempotent_call_of_cancelled_run_is_in_doubt(make_database: MakeDatabase, tmp_path: Path) -> None:
    """Its worker has died: it may have run, so it is not reported as never begun."""
    url = make_database("begun")
    with steps.engine(tmp_path / "marks") as engine:
        run_durably(engine, steps.wide(2, 0.0), url=url, run_id="it")
        database = Database(url)
        forget = "UPDATE neuroscript_calls SET ended = NULL, code = NULL, outcome = NULL WHERE id = 'it.w1'"
        with database.engine.begin() as connection:  # as if its worker had died
            connection.execute(sa.text(forget))
            connection.execute(sa.update(RUNS).values(status="cancelled"))
        taken_over = take_over(database)
        database.close()
        trace = resume(engine, url, "it")

    assert taken_over == 1
    assert ("cancelled", "failed") == (trace.status, trace["w1"].status)
    assert trace["w1"].error is not None and "plan.in_doubt" == trace["w1"].error["code"]


def test_texts_and_differences_of_traces_say_cancelled(make_sqlite: MakeDatabase) -> None:
    """The status is compared like any other value."""
    url, nodes = (
        make_sqlite("text"),
        {"one": {"tool": "stop.now"}, "two": {"tool": "stop.after", "depends_on": ["one"]}},
    )
    trace = run_and_resume(url, nodes)
    with engine_for(make_sqlite("other")) as engine:
        plan = plan_from_data({"nodes": {**nodes, "one": {"tool": "stop.after"}}})
        other = run_durably(engine, plan, url=make_sqlite("other"), run_id="other")
    differences = {each.path: each.text for each in trace_diff(other, trace)}

    lines = trace_text(trace).splitlines()
    assert lines[0].startswith("plan: cancelled, ") and "error: plan.cancelled: the run was cancelled" == lines[-1]
    assert ["two", "unstarted", "stop.after"] == lines[4].split()
    assert '"cancelled", was "succeeded"' == differences["status"]
    assert '"plan.cancelled: the run was cancelled", was null' == differences["error"]
    assert '"unstarted", was "succeeded"' == differences["nodes.two.status"]
