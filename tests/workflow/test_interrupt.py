"""An interrupted run: running calls are stopped, and the trace so far is reported."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from neuroscript import Engine, Runtime, Toolset, Turn
from neuroscript.workflow import Node, Plan, Retry, Step, Trace, arun

hall = Toolset("hall")
stopped: list[str] = []


@hall.tool()
def opened(rt: Runtime) -> str:
    """Return at once."""
    return "open"


@hall.tool()
async def waits(rt: Runtime, name: str) -> str:
    """Wait forever."""
    try:
        await asyncio.Event().wait()
    finally:
        stopped.append(name)
    return name


PLAN = Plan(
    nodes=(
        Node(name="door", tool="hall.opened"),
        Node(name="guest", tool="hall.waits", inputs={"name": "Ada"}, retry=Retry(count=3, backoff=0, on=("*",))),
        Node(name="table", tool="hall.opened", depends_on=("guest",)),
    )
)


def test_cancelled_run_reports_trace_so_far() -> None:
    """Ended calls have results, running calls were interrupted and are not retried, and the others never began."""
    left: list[Trace] = []
    stopped.clear()

    async def cancelled() -> None:
        begun = asyncio.Event()

        def watch(step: Step) -> None:
            if (step.kind, step.node) == ("started", "guest"):
                begun.set()

        with Engine(toolsets=[hall]) as engine:
            task = asyncio.ensure_future(arun(engine, PLAN, watch=watch, left=left.append))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancelled())
    (trace,) = left
    assert trace.error is not None

    assert ["succeeded", "failed", "unstarted"] == [node.status for node in trace.nodes]
    assert ("open", "Ada") == (trace["door"].result, (trace["guest"].arguments or {})["name"])
    assert ["call.interrupted"] == [each.code for each in trace["guest"].attempts]
    assert ("failed", "plan.interrupted", "the run was interrupted") == (
        trace.status,
        trace.error["code"],
        trace.error["message"],
    )
    assert stopped in ([], ["Ada"])


class Slow:
    """A model that answers when the test allows it.

    Attributes:
        asked: Set when it is asked.
        gate: The event that it waits for.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.gate = threading.Event()

    def ask(self, turns: Sequence[Turn]) -> Turn:
        """Answer late."""
        self.asked.set()
        self.gate.wait(30)
        return Turn("assistant", "late")


def test_run_cancelled_during_synthesis_reports_trace() -> None:
    """With the results of all nodes; only the answer is missing."""
    left: list[Trace] = []
    model = Slow()
    plan = Plan(nodes=(Node(name="door", tool="hall.opened"),), synthesis="Is it open?")

    async def cancelled() -> None:
        with Engine(toolsets=[hall]) as engine:
            task = asyncio.ensure_future(arun(engine, plan, left=left.append, llm=model))
            await asyncio.to_thread(model.asked.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            model.gate.set()

    asyncio.run(cancelled())
    (trace,) = left
    assert trace.error is not None

    assert ("failed", "plan.interrupted", "", "open") == (
        trace.status,
        trace.error["code"],
        trace.answer,
        trace["door"].result,
    )
