"""Several workers share the calls of a database and take over from each other."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event

from tests.workflow.durable import steps
from tests.workflow.durable.conftest import Child, Parent
from tests.workflow.durable.databases import MakeDatabase, lead_by, outlast

from neuroscript import Engine, ExecutionPolicy, Limits, Toolset
from neuroscript.errors import CallError
from neuroscript.workflow import plan_from_data
from neuroscript.workflow.durable import Worker, list_runs, resume, run_durably, show_run

COUNT = 200


def name_of(worker: Child) -> str:
    """Return the id of a worker after it has begun."""
    file = worker.out.with_suffix(".id")
    while not (file.exists() and file.read_text()):
        assert not worker.out.exists(), worker.out.read_text()
        time.sleep(0.01)
    return file.read_text()


def test_running_calls_are_awaited_after_halt(make_database: MakeDatabase) -> None:
    """Also when the run is resumed, because they did run."""
    url, shop, begun, over = make_database("halting"), Toolset("shop"), Event(), Event()

    @shop.tool()
    def slow() -> int:
        """Take a given time."""
        begun.set()
        over.wait(20)
        return 1

    @shop.tool()
    def fail() -> None:
        """Fail while the other one is running."""
        begun.wait(20)
        raise ValueError

    plan = plan_from_data({"nodes": {"slow": {"tool": "shop.slow"}, "fails": {"tool": "shop.fail"}}})
    with Engine(toolsets=[shop], plugins="none") as engine, Worker(engine, url), ThreadPoolExecutor() as threads:
        first = threads.submit(run_durably, engine, plan, url=url, run_id="it", lease=0.5, local_calls=False)
        while not (list_runs(url) and "tool.failed" in [call.status for call in show_run(url, "it")[1]]):
            time.sleep(0.01)
        lead_by(url, "another")
        assert isinstance(first.exception(), CallError)
        lead_by(url, None)
        second = threads.submit(resume, engine, url, "it", local_calls=False)
        wait([second], timeout=0.5)
        over.set()
        trace = second.result()

    assert ["succeeded", "failed"] == [node.status for node in trace.nodes]


def test_two_workers_share_nodes_and_one_is_killed(make_database: MakeDatabase, parent: Parent, tmp_path: Path) -> None:
    """All nodes end, and those that may not repeat run once or are in doubt."""
    url, marks = make_database("shared"), steps.Marks(tmp_path / "marks")
    first, second = (parent.child("work", url, marks.file, parallel=8, lease=4.0) for _ in range(2))
    killed = name_of(first)
    run = parent.child("wide", url, marks.file, run="it", count=COUNT)
    while sum(marks.of("begin").values()) < COUNT / 3:
        time.sleep(0.01)
    first.kill()
    outlast(url, worker=killed)
    nodes = run.result()["nodes"]
    second.kill()

    begun, right = marks.of("begin"), steps.expected(steps.wide(COUNT))
    doubtful = {name for name, node in nodes.items() if node["code"] == "plan.in_doubt"}
    assert set(right) == set(begun) | doubtful
    assert {name: right[name].hex() for name in right if name not in doubtful} == {
        name: node["result"] for name, node in nodes.items() if name not in doubtful
    }
    assert all(int(name[1:]) % 2 == 0 and begun[name] <= 1 for name in doubtful)
    assert all(int(name[1:]) % 2 and count == 2 for name, count in begun.items() if count > 1)


def test_worker_respects_concurrency_limit(make_database: MakeDatabase, tmp_path: Path) -> None:
    """The other calls wait, and none is refused."""
    policy = ExecutionPolicy(allow=("*",), limits=Limits(concurrency=2))
    with steps.engine(tmp_path / "marks", policy=policy) as engine:
        trace = run_durably(engine, steps.wide(8), url=make_database("limited"))

    assert {"succeeded"} == {node.status for node in trace.nodes}
