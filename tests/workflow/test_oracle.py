"""Random plans, run on a simulated clock and compared with an oracle."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from random import Random
from typing import Any

import pytest
from tests.workflow.moved_clock import MovedClock
from tests.workflow.oracle import Drawn, outcome, plan_data

from neuroscript import Engine, Host, ToolFailed, ToolPolicy, Toolset
from neuroscript.workflow import arun, plan_from_data

PLANS = 2000 if os.environ.get("NEUROSCRIPT_TEST_ALL") else 150
MOST_NODES = 60


def draw_nodes(random: Random) -> list[Drawn]:
    """Return the nodes of a plan, each after some of the nodes before it."""
    nodes: list[Drawn] = []
    for number in range(random.randint(1, MOST_NODES)):
        before = [node.name for node in nodes]
        after = tuple(random.sample(before, min(len(before), random.choice((0, 1, 1, 2, 3)))))
        uses = tuple(name for name in after if random.random() < 0.6)
        above = (random.choice(after), random.uniform(0, 6)) if after and random.random() < 0.2 else None
        script = tuple(
            (random.uniform(0.1, 10), random.choices(("ok", "failed", "later"), (6, 1, 1))[0]) for _ in range(5)
        )
        nodes.append(
            Drawn(
                f"n{number}",
                after,
                uses,
                script,
                retries=random.choice((0, 0, 1, 2, 4)),
                backoff=random.uniform(0, 3),
                on=random.choice((("later", "tool.*"), ("later",), ("tool.*",), ())),
                timeout=random.uniform(1, 12) if random.random() < 0.4 else None,
                idempotent=random.random() < 0.5,
                halts=random.random() < 0.3,
                above=above,
                unless=random.choice(after) if after and random.random() < 0.1 else None,
            )
        )
    return nodes


class Lab:
    """Tools that follow the script of their node, on the clock that the test moves."""

    def __init__(self, nodes: list[Drawn]) -> None:
        self.clock = MovedClock()
        self.scripts = {node.name: node.script for node in nodes}
        self.calls: Counter[str] = Counter()
        self.under_way: set[str] = set()
        self.twice: list[str] = []
        lab = Toolset("lab")
        lab.tool(name="once")(self.work)
        lab.tool(name="again", policy=ToolPolicy(effects=("idempotent",)))(self.work)
        self.engine = Engine(toolsets=[lab], plugins="none", host=Host(clock=self.clock))

    async def work(self, name: str, given: list[float]) -> float:
        """Take the seconds of the script, and end as it says.

        Args:
            name: The name of the node.
            given: The results of the nodes before.
        """
        seconds, how = self.scripts[name][self.calls[name]]
        self.calls[name] += 1
        if name in self.under_way:
            self.twice.append(name)
        self.under_way.add(name)
        try:
            await self.clock.wait(seconds)
        finally:
            self.under_way.discard(name)
        if how != "ok":
            raise ToolFailed("as the script says", retry="later" if how == "later" else "never")
        return seconds


@pytest.mark.parametrize("seed", range(8))
def test_run_matches_oracle(seed: int) -> None:
    """For plans of up to 60 nodes with failures, timeouts, retries and conditions. No node ever runs twice at once."""
    random = Random(seed)
    for _ in range(PLANS // 8):
        nodes = draw_nodes(random)
        lab = Lab(nodes)
        trace = asyncio.run(arun(lab.engine, plan_from_data(plan_data(nodes)), parallel=1000))

        found: tuple[bool, dict[str, Any]] = (
            any(node.status == "failed" and known.halts for node, known in zip(trace.nodes, nodes, strict=True)),
            {node.name: (node.status, lab.calls[node.name]) for node in trace.nodes},
        )
        assert found == outcome(nodes)
        assert [len(node.attempts) for node in trace.nodes] == [lab.calls[node.name] for node in nodes]
        assert lab.twice == []
