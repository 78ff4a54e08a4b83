"""The cost of durable calls beside a bare queue of DBOS, in one run: ``python -m tests.workflow.durable.cost [URL]``.

Each figure is user and system CPU time of this process for a call, the minimum of batches that alternate, so that load
on the machine affects all alike. It does not contain the CPU time of a PostgreSQL server.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
from tests.workflow.durable.databases import binaries, postgresql

from neuroscript import Engine, ToolPolicy, Toolset
from neuroscript.workflow import Plan, plan_from_data
from neuroscript.workflow.durable import Worker, run_durably

BATCHES: Final = 5
CALLS: Final = 100
CHAIN: Final = 30
POLL_SECONDS: Final = 0.1
"""The polling interval of the bare queue."""

WAITS: Final = 64
"""Calls of the tool that waits."""

WAIT_SECONDS: Final = 0.25


@attrs.frozen
class Cost:
    """CPU time a call in milliseconds, and wall time a node of a chain in milliseconds."""

    bare: float
    idempotent: float
    other: float
    chain: float

    def text(self, database: str) -> str:
        """Return the figures as a row."""
        ratios = f"{self.idempotent / self.bare:.2f} | {self.other / self.bare:.2f}"
        return (
            f"| {database} | {self.bare:.1f} | {self.idempotent:.1f} | {self.other:.1f} | {ratios} | {self.chain:.0f} |"
        )


def toolset() -> Toolset:
    """Return one tool that may run twice, one that may not, and one that waits."""
    tools = Toolset("cost")

    def following(number: int) -> int:
        """Return the next number."""
        return number + 1

    def wait(number: int) -> int:
        """Wait and return the next number."""
        time.sleep(WAIT_SECONDS)
        return number + 1

    idempotent = ToolPolicy(effects=("idempotent",))
    tools.tool(name="again", policy=idempotent)(following)
    tools.tool(name="once")(following)
    tools.tool(name="wait", policy=idempotent)(wait)
    return tools


def wide(tool: str, count: int) -> Plan:
    """Return a plan of independent nodes."""
    return plan_from_data({"nodes": {f"n{n}": {"tool": tool, "inputs": {"number": n}} for n in range(count)}})


def chain(count: int) -> Plan:
    """Return a plan in which each node needs the one before."""
    nodes: dict[str, Any] = {"n0": {"tool": "cost.again", "inputs": {"number": 0}}}
    for n in range(1, count):
        nodes[f"n{n}"] = {"tool": "cost.again", "inputs": {"number": f"${{n{n - 1}}}"}}
    return plan_from_data({"nodes": nodes})


def cpu_seconds() -> float:
    """Return the user and system CPU time of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measured(work: Callable[[], object], count: int) -> float:
    """Return the CPU milliseconds of *work* for each of *count* calls."""
    before = cpu_seconds()
    work()
    return 1_000 * (cpu_seconds() - before) / count


@contextmanager
def bare_queue(url: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that makes a number of calls on a queue of DBOS, with a worker in this process."""
    from dbos import DBOS, DBOSClient

    DBOS.migrate(url)
    client = DBOSClient(system_database_url=url, application_name="bare-queue")
    client.register_queue("bare", worker_concurrency=16, polling_interval_sec=POLL_SECONDS)
    config: Any = {
        "name": "bare-queue",
        "system_database_url": url,
        "application_version": "1",
        "log_level": "CRITICAL",
    }
    DBOS(config=config)

    @DBOS.workflow(name="following")
    def following(number: int) -> int:
        return number + 1

    DBOS.listen_queues(["bare"])
    DBOS.launch()
    options: Any = {"workflow_name": "following", "queue_name": "bare", "app_version": "1"}

    def work(count: int) -> None:
        handles = [client.enqueue(options, number) for number in range(count)]
        for handle in handles:
            handle.get_result(polling_interval_sec=POLL_SECONDS)

    try:
        yield work
    finally:
        DBOS.destroy()
        client.destroy()


def cost_of(url: str, bare_url: str) -> Cost:
    """Return the cost of durable calls in one database, and of a bare queue in another."""
    engine = Engine(toolsets=[toolset()], plugins="none")
    figures: dict[str, list[float]] = {"bare": [], "again": [], "once": [], "chain": []}
    with ExitStack() as stack:
        stack.enter_context(engine)
        stack.enter_context(Worker(engine, url))
        bare = stack.enter_context(bare_queue(bare_url))

        def run(plan: Plan) -> None:
            run_durably(engine, plan, url=url, parallel=CALLS, local_calls=False)

        for work in (lambda: bare(2), lambda: run(chain(2)), lambda: run(wide("cost.once", 2))):
            work()  # the first call loads and compiles
        for _ in range(BATCHES):
            figures["bare"].append(measured(lambda: bare(CALLS), CALLS))
            for tool in ("again", "once"):
                plan = wide(f"cost.{tool}", CALLS)
                figures[tool].append(measured(lambda plan=plan: run(plan), CALLS))  # type: ignore[misc]
            begun = time.perf_counter()
            run(chain(CHAIN))
            figures["chain"].append(1_000 * (time.perf_counter() - begun) / CHAIN)
    least = {name: min(values) for name, values in figures.items()}
    return Cost(least["bare"], least["again"], least["once"], least["chain"])


def throughput(url: str, workers: int) -> float:
    """Return the calls a second of processes that make eight calls at once of a tool that waits."""
    words = [sys.executable, "-m", "tests.workflow.durable.cost", "--worker", url]
    processes = [subprocess.Popen(words, stdin=-1, stdout=-1, text=True) for _ in range(workers)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        with Engine(toolsets=[toolset()], plugins="none") as engine:
            begun = time.perf_counter()
            run_durably(engine, wide("cost.wait", WAITS), url=url, parallel=WAITS, local_calls=False)
            return WAITS / (time.perf_counter() - begun)
    finally:
        for process in processes:
            process.communicate()


def work_until_stdin_ends(url: str) -> None:
    """Be a worker until the standard input ends."""
    with Engine(toolsets=[toolset()], plugins="none") as engine, Worker(engine, url, parallel=8):
        print("ready", flush=True)
        sys.stdin.read()


def main(words: list[str]) -> None:
    """Print the figures for SQLite and, if it is installed, PostgreSQL."""
    if words[:1] == ["--worker"]:
        work_until_stdin_ends(words[1])
        return
    print("| database | bare queue, ms | idempotent, ms | other, ms | ratio | ratio | chain, ms a node |")
    with tempfile.TemporaryDirectory() as folder:
        files = [f"sqlite:///{Path(folder) / name}.sqlite" for name in ("ours", "bare", *"124")]
        print(cost_of(files[0], files[1]).text("SQLite"), flush=True)
        rates = {workers: throughput(file, workers) for workers, file in zip((1, 2, 4), files[2:], strict=True)}
        print("SQLite, calls a second by workers:", json.dumps({key: round(rate) for key, rate in rates.items()}))
    programs = binaries()
    if programs is not None:
        with postgresql(programs) as make:
            print(cost_of(make("ours"), make("bare", "template1")).text("PostgreSQL"), flush=True)
            rates = {workers: throughput(make(f"workers{workers}"), workers) for workers in (1, 2, 4)}
            print(
                "PostgreSQL, calls a second by workers:", json.dumps({key: round(rate) for key, rate in rates.items()})
            )


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main(sys.argv[1:])
