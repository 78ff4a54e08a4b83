"""A tool that runs in a worker, to find out what confines workers on this machine."""

from __future__ import annotations

from neuroscript.engine.engine import Engine
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.tools.toolset import Toolset

probe = Toolset("probe")


@probe.tool
def run_nothing() -> None:
    """Return at once, so that a worker starts."""


def layers_of_a_worker() -> tuple[str, ...]:
    """Return what confines a worker, from one that is started for that.

    Raises:
        ToolFailed: No worker can be started.
    """
    with Engine(toolsets=probe, plugins="none", policy=ExecutionPolicy(isolate=("probe.*",))) as engine:
        engine.call("probe.run_nothing")
        (worker,) = engine.workers
        return worker.layers
