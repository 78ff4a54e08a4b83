"""The progress of a run in this process: what each node does, and the parts of a page that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final

import attrs

from neuroscript.console.activities import Activity
from neuroscript.console.plans.values import value_text
from neuroscript.errors import NeuroScriptError, SpecError
from neuroscript.io.text import duration
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.runner import Step
from neuroscript.workflow.trace.graph_picture import Box, GraphPicture
from neuroscript.workflow.trace.inline_svg import inline_box, plan_box, plan_picture
from neuroscript.workflow.trace.trace import Trace

MIN_ITEM_SECONDS: Final = 0.1
"""Seconds between two events about items of the same node."""

STATUS_KINDS: Final[Mapping[str, str]] = {
    "waiting": "info",
    "running": "info",
    "retrying": "warn",
    "succeeded": "ok",
    "failed": "bad",
    "skipped": "warn",
    "unstarted": "info",
}
"""The kind of the badge of each status of a node."""


@attrs.define(eq=False)
class NodeProgress:
    """The progress of one node.

    Attributes:
        status: ``waiting``, ``running``, ``retrying``, or the status in the trace.
        running: The number of calls that run.
        ended: The number of calls that have ended.
        failed: The number of these that have failed.
        code: The error code of the last call that has failed, or ``""``.
        seconds: From the beginning of the first call to the end of the node.
    """

    status: str = "waiting"
    running: int = 0
    ended: int = 0
    failed: int = 0
    code: str = ""
    seconds: float = 0.0
    _began: float | None = None
    _shown: float = 0.0

    def apply(self, step: Step) -> None:
        """Apply a step of the run."""
        now = monotonic()
        match step.kind:
            case "started":
                self._began = now if self._began is None else self._began
                self.running += 1
                self.status = "running"
            case "ended":
                self.running = max(0, self.running - 1)
                self.ended += 1
                if step.code != "ok":
                    self.failed, self.code = self.failed + 1, step.code
                    self.status = "running" if self.running else "retrying"
            case _:
                self.status = step.code
        self.seconds = 0.0 if self._began is None else now - self._began

    def is_due(self, kind: str) -> bool:
        """Return whether a page has to show a step; steps of many items follow each other quickly."""
        now = monotonic()
        if kind != "finished" and now - self._shown < MIN_ITEM_SECONDS and self.ended:
            return False
        self._shown = now
        return True

    @property
    def kind(self) -> str:
        """The kind of the badge of the status."""
        return STATUS_KINDS[self.status]

    @property
    def details(self) -> str:
        """What a page says about its calls."""
        parts = []
        if self.ended > 1 or (self.ended and self.running):
            parts.append(f"{self.ended} calls ended")
        if self.running > 1:
            parts.append(f"{self.running} running")
        if self.code and self.status != "succeeded":
            parts.append(self.code)
        return ", ".join(parts)


@attrs.define(eq=False)
class PlanRun:
    """A run of a plan that a browser has started.

    Attributes:
        file: The name of the plan file, or ``""`` for a durable run that was resumed.
        plan: The plan.
        run_id: The id of a durable run, or ``""``.
        picture: The graph, or None if it is too large for a picture.
        nodes: The progress of each node.
        trace: The trace, once the run has ended.
        problems: Why it could not run.
    """

    file: str
    plan: Plan
    run_id: str = ""
    picture: GraphPicture | None = None
    nodes: dict[str, NodeProgress] = attrs.field(factory=dict)
    trace: Trace | None = None
    problems: tuple[str, ...] = ()

    @classmethod
    def of(cls, file: str, plan: Plan, run_id: str = "") -> PlanRun:
        """Return a run that has not begun."""
        try:
            picture = plan_picture(plan, has_states=True)
        except ValueError:
            picture = None
        return cls(file, plan, run_id, picture, {node.name: NodeProgress() for node in plan.nodes})

    @property
    def done(self) -> int:
        """The number of nodes that have ended."""
        return sum(each.status not in ("waiting", "running", "retrying", "unstarted") for each in self.nodes.values())

    @property
    def output(self) -> str:
        """The output of the plan as text, once the run has succeeded."""
        return "" if self.trace is None else value_text(self.trace.output)

    def watch(self, activity: Activity, show: Callable[..., str]) -> Callable[[Step], None]:
        """Return what receives the steps of the run and sends them to pages.

        Args:
            show: Renders the template of a node.
        """

        def watched(step: Step) -> None:
            progress = self.nodes[step.node]
            progress.apply(step)
            if progress.is_due(step.kind):
                activity.emit(show("plans/_state.html", progress=progress), target=f"state-{step.node}", mode="replace")
                if self.picture is not None:
                    box = inline_box(self.picture, self.box(step.node))
                    activity.emit(box, target=f"box-{step.node}", mode="replace")
            if step.kind == "finished":
                activity.emit(show("plans/_done.html", run=self), target="plan-progress", mode="replace")

        return watched

    def box(self, name: str) -> Box:
        """Return the text in the box of a node."""
        progress = self.nodes[name]
        took = duration(progress.seconds) if progress.seconds and progress.status not in ("running", "waiting") else ""
        return plan_box(self.plan[name], progress.status, took, progress.details)

    def end(self, trace: Trace) -> None:
        """Record the trace; steps that were not reported are taken from it."""
        self.trace = trace
        for node in trace.nodes:
            if node.name in self.nodes:
                progress = self.nodes[node.name]
                progress.status, progress.seconds = node.status, node.seconds
                progress.code = str(node.error.get("code", "")) if node.error else progress.code

    def fail(self, error: NeuroScriptError) -> None:
        """Record why the plan could not run, or could not go on."""
        self.problems = tuple(error.problems) if isinstance(error, SpecError) else (str(error),)
