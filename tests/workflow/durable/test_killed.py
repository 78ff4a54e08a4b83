"""A plan whose process is killed at any moment can be resumed, and repeats only calls that may run twice."""

from __future__ import annotations

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.workflow.durable import steps
from tests.workflow.durable.conftest import Parent
from tests.workflow.durable.databases import MakeDatabase, outlast

from neuroscript.workflow.durable import show_run

pytestmark = pytest.mark.slow

AT_ONCE = 4
TRIALS = 50 if os.environ.get("NEUROSCRIPT_TEST_ALL") == "1" else 8
PLAN = steps.layered()
MAY_RERUN = {node.name for node in PLAN.nodes if node.rerun or node.tool == "step.again"}


@attrs.frozen
class Trial:
    """A run that was killed and resumed.

    Attributes:
        under_way: The nodes that were running when it was killed.
        finished: The nodes whose end was in the database at that time.
        begun: How often each node has begun in total.
        trace: The trace of the resumed run.
    """

    under_way: set[str]
    finished: set[str]
    begun: dict[str, int]
    trace: dict[str, Any]


@pytest.fixture(scope="module")
def trials(make_database: MakeDatabase, parent: Parent, tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    """Return runs that were killed at random moments, each resumed by another process; some run at once."""
    rng = random.Random(9)
    moments = [(rng.randint(1, len(PLAN.nodes)), rng.uniform(0, 0.04)) for _ in range(TRIALS)]
    places = [(make_database(f"killed{n}"), tmp_path_factory.mktemp("marks")) for n in range(TRIALS)]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        requests = [(url, parent, folder, *moment) for (url, folder), moment in zip(places, moments, strict=True)]
        return list(threads.map(lambda each: trial(*each), requests))


def trial(url: str, parent: Parent, folder: Path, count: int, pause: float) -> Trial:
    """Kill a run after some nodes have begun and some time has passed, and resume it."""
    marks = steps.Marks(folder / "marks")
    child = parent.child("run", url, marks.file, run="it")
    while sum(marks.of("begin").values()) < count:
        assert not child.out.exists(), child.out.read_text()
        time.sleep(0.005)
    time.sleep(pause)
    child.kill()
    outlast(url)
    finished = {call.node for call in show_run(url, "it")[1] if call.seconds is not None}
    under_way = marks.under_way()
    trace = parent.child("resume", url, marks.file, run="it").result()
    return Trial(under_way, finished, dict(marks.of("begin")), trace)


def test_nodes_were_running_when_killed(trials: list[Trial]) -> None:
    """In at least half of the runs; otherwise these tests would prove nothing."""
    assert sum(bool(each.under_way) for each in trials) >= len(trials) / 2


def test_finished_nodes_run_once(trials: list[Trial]) -> None:
    """Every run that was not killed in its first layer has such nodes."""
    counts = [{name: each.begun[name] for name in each.finished} for each in trials]

    assert [dict.fromkeys(each.finished, 1) for each in trials] == counts
    assert any(counts)


def test_running_node_repeats_at_most_once(trials: list[Trial]) -> None:
    """And only if its tool is idempotent or the plan allows it."""
    twice = [{name for name, count in each.begun.items() if count > 1} for each in trials]

    assert all(names <= MAY_RERUN for names in twice)
    assert all(names <= set(each.begun) - each.finished for names, each in zip(twice, trials, strict=True))
    assert max(count for each in trials for count in each.begun.values()) == 2


def test_each_node_has_its_own_result(trials: list[Trial]) -> None:
    """Whatever process it came from."""
    right = {name: value.hex() for name, value in steps.expected(PLAN).items()}

    for each in trials:
        nodes = each.trace["nodes"].items()
        given = {name: node["result"] for name, node in nodes if node["status"] == "succeeded"}
        assert {name: right[name] for name in given} == given


def test_every_node_has_a_status(trials: list[Trial]) -> None:
    """It succeeded, or was running and may not repeat, or needs such a node."""
    for each in trials:
        nodes = each.trace["nodes"]
        doubtful = {name for name, node in nodes.items() if node["code"] == "plan.in_doubt"}
        lost = {name for name, node in nodes.items() if node["code"] == "plan.reference"}
        succeeded = {name for name, node in nodes.items() if node["status"] == "succeeded"}
        assert {node.name for node in PLAN.nodes} == doubtful | lost | succeeded
        assert not doubtful & MAY_RERUN
        assert all(any(need in doubtful | lost for need in PLAN[name].needs) for name in lost)
        assert not lost & set(each.begun)
        assert all(each.begun.get(name, 0) <= 1 for name in doubtful)  # killed before or during its tool
