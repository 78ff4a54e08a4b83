"""Tools that record each beginning and end in a file, plans that use them, and the expected results.

The result of a node depends on its name and on the results of the nodes before, so a wrong result is noticed.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from neuroscript import Engine, Runtime, ToolPolicy, Toolset, ask
from neuroscript.workflow import Plan, plan_from_data

LAYERS: Final = 5
WIDTH: Final = 4
KINDS: Final = ("once", "again", "twice", "once")
"""The tool of each node of a layer; ``twice`` is ``once`` in a node with ``rerun = true``."""


class Marks:
    """The file of marks and its content."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.gate = file.with_suffix(".gate")

    def hold(self, layer: str) -> None:
        """Keep the nodes with these name prefixes running until `let_go`."""
        self.gate.write_text(layer)

    def let_go(self) -> None:
        """Let the held nodes continue."""
        self.gate.unlink()

    def are_held(self, name: str) -> bool:
        """Return whether a node must keep running."""
        try:
            return name.startswith(self.gate.read_text())
        except FileNotFoundError:
            return False

    def leave(self, what: str, name: str) -> None:
        """Append a mark atomically."""
        descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, f"{what} {name}\n".encode())
        finally:
            os.close(descriptor)

    def of(self, what: str) -> Counter[str]:
        """Return how many marks each node has left."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return Counter(line.partition(" ")[2] for line in lines if line.startswith(f"{what} "))

    def under_way(self) -> set[str]:
        """Return the nodes that have begun more often than they have ended."""
        return set(self.of("begin") - self.of("end"))


def engine(file: Path, **settings: Any) -> Engine:
    """Return an engine with the tools."""
    return Engine(toolsets=[toolset(file)], plugins="none", **settings)


def toolset(file: Path) -> Toolset:
    """Return the tools, which write their marks to a file."""
    marks, steps = Marks(file), Toolset("step")

    def step(name: str, before: list[str], seconds: float) -> bytes:
        """Leave a mark, take some time, and leave another one.

        Args:
            name: The name of the node.
            before: The results of the nodes before.
            seconds: How long it takes.
        """
        marks.leave("begin", name)
        time.sleep(seconds)
        while marks.are_held(name):
            time.sleep(0.01)
        marks.leave("end", name)
        return given(name, before)

    @steps.tool(policy=ToolPolicy(effects=("idempotent",)))
    def die(name: str, beside: int) -> None:
        """Kill the process, the first time after a number of calls has begun.

        Args:
            name: The name of the node.
            beside: How many calls begin before, including this one.
        """
        marks.leave("begin", name)
        while sum(marks.of("begin").values()) < beside:
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGKILL)

    @steps.tool()
    def fail() -> None:
        """Fail."""
        raise ValueError

    @steps.tool(policy=ToolPolicy(effects=("model",), capabilities=("model:use",)))
    def answer(rt: Runtime, question: str) -> bytes:
        """Return the numbers that a model answers.

        Args:
            question: The question.
        """
        marks.leave("begin", question)
        return bytes(ask(rt.llm, question, answer=list[int]))

    steps.tool(name="once")(step)
    steps.tool(name="again", policy=ToolPolicy(effects=("idempotent",)))(step)
    return steps


def given(name: str, before: list[str]) -> bytes:
    """Return the result of a node: bytes, to test more than strings."""
    return sha256("|".join([name, *before]).encode()).digest()[:6]


def layered(seconds: float = 0.04) -> Plan:
    """Return a plan of 20 nodes in layers; each uses the results of two nodes of the previous layer."""
    nodes: dict[str, Any] = {}
    for layer in range(LAYERS):
        for place in range(WIDTH):
            above = [f"n{layer - 1}_{each % WIDTH}" for each in (place, place + 1)] if layer else []
            kind = KINDS[place]
            nodes[f"n{layer}_{place}"] = {
                "tool": "step.again" if kind == "again" else "step.once",
                "inputs": {
                    "name": f"n{layer}_{place}",
                    "before": [f"${{{each}}} of {each}" for each in above],
                    "seconds": seconds,
                },
                "rerun": kind == "twice",
                "on_fail": "continue",
            }
    return plan_from_data({"name": "layered", "nodes": nodes})


def wide(count: int, seconds: float = 0.02) -> Plan:
    """Return a plan of independent nodes, every other one idempotent."""
    nodes = {
        f"w{number}": {
            "tool": "step.again" if number % 2 else "step.once",
            "inputs": {"name": f"w{number}", "before": [], "seconds": seconds},
            "on_fail": "continue",
        }
        for number in range(count)
    }
    return plan_from_data({"name": "wide", "nodes": nodes})


def poisoned(honest: int) -> Plan:
    """Return a plan of one call that kills its process, and others beside it; all are idempotent."""
    nodes: dict[str, Any] = {"poison": {"tool": "step.die", "inputs": {"name": "poison", "beside": honest + 1}}}
    for number in range(honest):
        inputs = {"name": f"h{number}", "before": [], "seconds": 0.0}
        nodes[f"h{number}"] = {"tool": "step.again", "inputs": inputs}
    return plan_from_data(
        {"name": "poisoned", "nodes": {name: {**node, "on_fail": "continue"} for name, node in nodes.items()}}
    )


def questions(*, rerun: bool) -> Plan:
    """Return a plan of two questions to a model, the second with the answer to the first."""
    first = {"tool": "step.answer", "inputs": {"question": "first"}}
    second = {"tool": "step.answer", "inputs": {"question": "second after ${first}"}, "rerun": rerun}
    return plan_from_data({"name": "questions", "nodes": {"first": first, "second": {**second, "on_fail": "continue"}}})


def expected(plan: Plan) -> dict[str, bytes]:
    """Return the result of each node of a plan if nothing fails."""
    from neuroscript.workflow.plan.references import as_text

    results: dict[str, bytes] = {}
    for node in plan.nodes:
        before = [f"{as_text(results[each])} of {each}" for each in node.needs]
        results[node.name] = given(node.name, before)
    return results
