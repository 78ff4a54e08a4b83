"""What a call in a worker costs, in round trips between two processes that do nothing else."""

from __future__ import annotations

import pytest
from tests.benchmarks import isolation

from neuroscript import Engine, ExecutionPolicy


@pytest.mark.alone
def test_warm_call_takes_a_bounded_number_of_round_trips() -> None:
    """Both alternate between two processes, so the ratio hardly depends on the machine."""
    ratios = []
    for _ in range(3):
        ratios.append(isolation.warm_seconds(5).wall / isolation.bare_seconds(5).wall)
        if ratios[-1] <= isolation.ROUND_TRIPS:
            return
    pytest.fail(f"{ratios} round trips, and at most {isolation.ROUND_TRIPS} are permitted")


@pytest.mark.alone
def test_new_worker_costs_less_than_a_new_interpreter() -> None:
    import subprocess
    import sys

    command = [sys.executable, "-I", "-S", "-c", "pass"]
    interpreter = isolation.least(lambda: subprocess.run(command, check=True), 10)
    assert isolation.new_seconds(2, namespaces=True).wall < 2 * interpreter.wall


def test_call_that_is_not_isolated_is_compiled_as_ever() -> None:
    """The same functions run for it, whether other tools are isolated or not."""
    codes = []
    for isolate in ((), ("other.*",)):
        with Engine(toolsets=isolation.tools, plugins="none", policy=ExecutionPolicy(isolate=isolate)) as engine:
            engine.call("isolated.add", (1, 2))
            codes.append(engine._names.positional["isolated.add"].__code__)
    assert codes[0].co_code == codes[1].co_code
