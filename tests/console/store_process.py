"""A process that runs a plan durably, until it is killed: ``python store_process.py PLAN URL RUN SANDBOX PLUGIN``."""

from __future__ import annotations

import sys

from neuroscript import Engine, ExecutionPolicy, Host
from neuroscript.workflow import load_plan
from neuroscript.workflow.durable import run_durably

LEASE_SECONDS = 0.5


def main(plan: str, url: str, run_id: str, sandbox: str, plugin: str) -> None:
    """Run the plan."""
    policy = ExecutionPolicy(grants=["fs:read:**"])
    with Engine(policy=policy, host=Host(sandbox_dir=sandbox)) as engine:
        engine.load_plugin(plugin)
        run_durably(engine, load_plan(plan), url=url, run_id=run_id, lease=LEASE_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
