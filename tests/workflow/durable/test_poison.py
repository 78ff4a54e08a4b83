"""A call that kills its process fails alone: the calls beside it succeed."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from tests.workflow.durable import steps
from tests.workflow.durable.conftest import Child, Parent
from tests.workflow.durable.databases import MakeDatabase, outlast
from tests.workflow.durable.fatal_tools import fatal
from tests.workflow.durable.test_workers import name_of

from neuroscript import Engine, ExecutionPolicy, Isolation
from neuroscript.workflow import plan_from_data
from neuroscript.workflow.durable import run_durably, show_run
from neuroscript.workflow.durable.takeover import MAX_ATTEMPTS

pytestmark = pytest.mark.slow

HONEST = 3


def test_call_that_kills_its_process_fails_alone(make_database: MakeDatabase, parent: Parent, tmp_path: Path) -> None:
    """It begins five times: once beside the others, and then alone; the others begin once or twice."""
    url, marks = make_database("poison"), steps.Marks(tmp_path / "marks")
    marks.hold("h")
    worker = parent.child("work", url, marks.file, parallel=HONEST + 1)
    run = parent.child("poisoned", url, marks.file, run="it", honest=HONEST)
    for deaths in range(1, MAX_ATTEMPTS + 1):
        while marks.of("begin")["poison"] < deaths or len(marks.of("begin")) <= HONEST:  # it waits for the others
            assert not run.out.exists(), run.result()
            time.sleep(0.01)
        bury(worker, url)
        if deaths == 1:
            assert {f"h{number}": 1 for number in range(HONEST)} | {"poison": 1} == dict(marks.of("begin"))
            marks.let_go()
        worker = parent.child("work", url, marks.file, parallel=HONEST + 1)
    nodes = run.result()["nodes"]
    worker.kill()

    assert {"poison": "plan.in_doubt"} | {f"h{number}": "" for number in range(HONEST)} == {
        name: node["code"] for name, node in nodes.items()
    }
    assert {"poison": MAX_ATTEMPTS} | {f"h{number}": 2 for number in range(HONEST)} == dict(marks.of("begin"))
    assert {call.node: call.starts for call in show_run(url, "it")[1]} == dict(marks.of("begin"))


def bury(worker: Child, url: str) -> None:
    """Let the lease of a worker that has died expire."""
    outlast(url, worker=name_of(worker))


@pytest.mark.skipif(sys.platform != "linux", reason="tools are isolated on Linux")
def test_isolated_call_that_kills_its_process_harms_nothing(make_database: MakeDatabase) -> None:
    """Its own process ends and the worker lives, so each call begins once."""
    url = make_database("isolated_poison")
    nodes = {"poison": {"tool": "fatal.die", "on_fail": "continue"}}
    nodes |= {f"h{number}": {"tool": "fatal.double", "inputs": {"number": number}} for number in range(HONEST)}
    policy = ExecutionPolicy(isolate=Isolation(tools=("fatal.*",)))
    with Engine(toolsets=[fatal], plugins="none", policy=policy) as engine:
        trace = run_durably(engine, plan_from_data({"nodes": nodes}), url=url, run_id="it")

    calls = show_run(url, "it")[1]
    assert {"poison": "isolation.died"} | {f"h{number}": "ok" for number in range(HONEST)} == {
        call.node: call.status for call in calls
    }
    assert {1} == {call.starts for call in calls}
    assert {f"h{number}": 2 * number for number in range(HONEST)} == {
        node.name: node.result for node in trace.nodes if node.name != "poison"
    }
