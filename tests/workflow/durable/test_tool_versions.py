"""Calls go to workers that have their tool in the version that the run was checked with."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.cli.conftest import command
from tests.workflow.durable.databases import MakeDatabase, lead_by

from neuroscript import Engine, ToolPolicy, Toolset
from neuroscript.errors import SpecError
from neuroscript.workflow import Plan, plan_from_data
from neuroscript.workflow.durable import Worker, resume, run_durably, show_run

PLAN: Plan = plan_from_data(
    {
        "nodes": {
            "left": {"tool": "left.next", "map": list(range(10)), "inputs": {"number": "${item}"}},
            "right": {"tool": "right.next", "map": list(range(10)), "inputs": {"number": "${item}"}},
        }
    }
)


def toolset(group: str, step: int = 1, text: str = "Return the next number.") -> Toolset:
    """Return a toolset with one tool; another *text* is another version of it."""
    tools = Toolset(group)

    def following(number: int) -> int:
        return number + step

    following.__doc__ = text
    tools.tool(name="next", policy=ToolPolicy(effects=("idempotent",)))(following)
    return tools


def engine_with(*tools: Toolset) -> Engine:
    """Return an engine with toolsets."""
    return Engine(toolsets=[*tools], plugins="none")


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for a condition; the time limit of the test ends a hang."""
    while not is_so():
        time.sleep(0.01)


def test_workers_with_different_toolsets_share_a_run(make_database: MakeDatabase) -> None:
    """Each makes the calls of its own tools, and none fails."""
    url = make_database("toolsets")
    left, right = toolset("left"), toolset("right")
    with engine_with(left, right) as driver, engine_with(left) as one, engine_with(right) as other:
        with Worker(one, url) as first, Worker(other, url) as second:
            trace = run_durably(driver, PLAN, url=url, run_id="it", local_calls=False)

    assert {"left": list(range(1, 11)), "right": list(range(1, 11))} == trace.output
    assert {("left", first.id), ("right", second.id)} == {(call.node, call.worker) for call in show_run(url, "it")[1]}


def test_call_without_a_worker_waits_and_is_shown(make_database: MakeDatabase) -> None:
    """A worker with another version of the tool does not make it; one that comes later does."""
    url = make_database("waits")
    left, right, newer = toolset("left"), toolset("right"), toolset("right", text="Return a later number.")

    def stranded() -> set[str]:
        return {call.node for call in show_run(url, "it")[1] if not call.has_worker}

    with engine_with(left, right) as driver, engine_with(left, newer) as one, ThreadPoolExecutor() as threads:
        with Worker(one, url):
            run = threads.submit(run_durably, driver, PLAN, url=url, run_id="it", local_calls=False)
            wait_until(lambda: bool(run.done() or (len(started(url)) == 10 and stranded() == {"right"})))
            shown = command("runs", "show", url, "it").out
            with Worker(driver, url):
                trace = run.result()

    assert "no living worker has its tool in the version of the run" in shown
    assert "succeeded" == trace.status
    assert {1} == {call.starts for call in show_run(url, "it")[1]}


def started(url: str) -> set[tuple[str, int | None]]:
    """Return the calls of the run that have ended."""
    try:
        return {(call.node, call.item) for call in show_run(url, "it")[1] if call.status == "ok"}
    except SpecError:
        return set()  # the run does not exist yet


def test_rolling_deploy_loses_nothing(make_database: MakeDatabase, caplog: pytest.LogCaptureFixture) -> None:
    """The old driver dies and the new one resumes; waiting calls go to workers with the new version."""
    url = make_database("rolling")
    old = (toolset("left"), toolset("right"))
    new = (toolset("left"), toolset("right", text="Return a later number."))
    with engine_with(*old) as before, engine_with(*new) as after, ThreadPoolExecutor() as threads:
        run = threads.submit(run_durably, before, PLAN, url=url, run_id="it", local_calls=False, lease=0.5)
        wait_until(lambda: bool(run.done() or queued(url)))
        lead_by(url, "another")  # as if it had died
        assert run.exception() is not None
        lead_by(url, None)
        with pytest.raises(SpecError) as caught:
            resume(after, url, "it", exact=True)
        trace = resume(after, url, "it")

    assert "run it: right.next has changed since the run was checked with it" == str(caught.value)
    assert ["right.next has changed since run it was checked with it; the new version is used"] == caplog.messages
    assert {"left": list(range(1, 11)), "right": list(range(1, 11))} == trace.output
    assert {1} == {call.starts for call in show_run(url, "it")[1]}


def queued(url: str) -> bool:
    """Return whether calls of both tools wait."""
    try:
        return {"left", "right"} == {call.node for call in show_run(url, "it")[1]}
    except SpecError:
        return False


def test_exact_resume_of_unchanged_tools_is_permitted(make_database: MakeDatabase) -> None:
    """Also after the run has ended."""
    url = make_database("exact")
    with engine_with(toolset("left"), toolset("right")) as engine:
        run_durably(engine, PLAN, url=url, run_id="it")
        trace = resume(engine, url, "it", exact=True)

    assert "succeeded" == trace.status
