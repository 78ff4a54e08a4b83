"""Workers and drivers that are killed while calls are open, and a database that restarts: nothing is lost or repeated."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from tests.workflow.durable import steps
from tests.workflow.durable.conftest import Child, Parent
from tests.workflow.durable.databases import MISSING, MakeDatabase, binaries, outlast, outlast_leader, postgresql
from tests.workflow.durable.test_workers import name_of

from neuroscript.errors import SpecError
from neuroscript.workflow.durable import show_run
from neuroscript.workflow.durable.takeover import MAX_ATTEMPTS

pytestmark = pytest.mark.slow

ALL: Final = os.environ.get("NEUROSCRIPT_TEST_ALL") == "1"
WORKER_KILLS: Final = 200 if ALL else 3
DRIVER_KILLS: Final = 50 if ALL else 1
KILLS_PER_RUN: Final = 10
WORKERS: Final = 3
CALLS: Final = 48 if ALL else 24
SECONDS: Final = 0.1


@attrs.define
class Storm:
    """Processes that are killed while they work on one run.

    Attributes:
        workers: The workers that live, by their id.
        killed: How many workers were killed while they had open calls.
        drivers_killed: How many drivers were killed while there were open calls.
    """

    url: str
    parent: Parent
    marks: steps.Marks
    run: str
    rng: random.Random
    workers: dict[str, Child] = attrs.field(factory=dict)
    killed: int = 0
    drivers_killed: int = 0

    def start_worker(self) -> None:
        """Start a worker."""
        child = self.parent.child("work", self.url, self.marks.file, parallel=4)
        self.workers[name_of(child)] = child

    def start_driver(self) -> Child:
        """Start the run."""
        return self.parent.child("wide", self.url, self.marks.file, run=self.run, count=CALLS, seconds=SECONDS)

    def kill_worker(self, driver: Child) -> None:
        """Kill a worker that has open calls and replace it, unless the run ends before there is one."""
        while not driver.out.exists():
            victims = sorted(self.open_calls().keys() & self.workers.keys())
            if victims:
                name = self.rng.choice(victims)
                self.workers.pop(name).kill()
                outlast(self.url, worker=name)
                self.start_worker()
                self.killed += 1
                return
            time.sleep(0.005)

    def kill_driver(self, driver: Child) -> Child:
        """Kill the driver while calls are open, and resume its run."""
        while not self.open_calls() and not driver.out.exists():
            time.sleep(0.005)
        if driver.out.exists():
            return driver
        driver.kill()
        self.drivers_killed += 1
        outlast_leader(self.url)
        return self.parent.child("resume", self.url, self.marks.file, run=self.run, local=False)

    def open_calls(self) -> Counter[str]:
        """Return how many calls each worker makes."""
        try:
            return Counter(call.worker for call in show_run(self.url, self.run)[1] if call.status == "running")
        except SpecError:
            return Counter()  # the run does not exist yet


def storm(url: str, parent: Parent, folder: Path, run: int, kills: tuple[int, int]) -> tuple[Storm, Any]:
    """Kill workers and drivers of one run, and return how it ended."""
    it = Storm(url, parent, steps.Marks(folder / f"marks{run}"), f"run{run}", random.Random(run))
    for _ in range(WORKERS):
        it.start_worker()
    driver = it.start_driver()
    workers, drivers = kills
    for number in range(max(workers, drivers)):
        if number < workers:
            it.kill_worker(driver)
        if number < drivers:
            driver = it.kill_driver(driver)
    nodes = driver.result()["nodes"]
    for worker in it.workers.values():
        worker.kill()
    return it, nodes


def test_killed_workers_and_drivers_lose_and_repeat_nothing(
    make_database: MakeDatabase, parent: Parent, tmp_path: Path
) -> None:
    """Whenever they are killed: a call that may not repeat begins once, and every call ends or is in doubt."""
    workers = drivers = begun_twice = 0
    run = 0
    while workers < WORKER_KILLS or drivers < DRIVER_KILLS:
        kills = (min(KILLS_PER_RUN, WORKER_KILLS), -(-DRIVER_KILLS * KILLS_PER_RUN // WORKER_KILLS))
        it, nodes = storm(make_database(f"storm{run}"), parent, tmp_path, run, kills)
        check_outcome(it, nodes)
        workers, drivers, run = workers + it.killed, drivers + it.drivers_killed, run + 1
        begun_twice += sum(count > 1 for count in it.marks.of("begin").values())

    assert begun_twice, "no call was open on a worker that was killed"


def check_outcome(it: Storm, nodes: dict[str, Any]) -> None:
    """Check that no call was lost or repeated, and that each result is right."""
    plan = steps.wide(CALLS, SECONDS)
    begun, right = it.marks.of("begin"), steps.expected(plan)
    once = {node.name for node in plan.nodes if node.tool == "step.once"}
    doubtful = {name for name, node in nodes.items() if node["code"] == "plan.in_doubt"}
    starts = {call.node: call.starts for call in show_run(it.url, it.run)[1]}

    assert {node.name for node in plan.nodes} == set(nodes)
    assert {name: right[name].hex() for name in nodes.keys() - doubtful} == {
        name: node["result"] for name, node in nodes.items() if name not in doubtful
    }
    assert {name: count for name, count in begun.items() if count > 1 and name in once} == {}
    assert all(starts[name] >= MAX_ATTEMPTS for name in doubtful - once)


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """Return a PostgreSQL server that the test may restart."""
    programs = binaries()
    if programs is None:
        pytest.skip(MISSING)
    with postgresql(programs) as server:
        yield server


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT], ids=["fast", "immediate"])
def test_restart_of_postgresql_loses_and_repeats_nothing(
    server: Any, parent: Parent, tmp_path: Path, number: signal.Signals
) -> None:
    """Within the lease, every call succeeds, and begins once."""
    url, marks = server(f"restart{number}"), steps.Marks(tmp_path / "marks")
    workers = [parent.child("work", url, marks.file, parallel=4) for _ in range(2)]
    driver = parent.child("wide", url, marks.file, run="it", count=CALLS, seconds=SECONDS)
    while sum(marks.of("begin").values()) < CALLS / 3:
        time.sleep(0.005)
    server.stop(number)
    time.sleep(0.5)
    server.start()
    nodes = driver.result()["nodes"]
    for worker in workers:
        worker.kill()

    assert {"succeeded"} == {node["status"] for node in nodes.values()}
    assert {1} == set(marks.of("begin").values())
