"""The labels of one run of a plan: each node's result carries those of its call.

A plan knows which results each argument was made from. So its calls state what their arguments carry, and the session
counts their results as read only when the run has ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import attrs

from neuroscript.calls.drivers import adrive
from neuroscript.calls.flow_pipeline import FlowPipeline, flow_of_session
from neuroscript.engine.session import Session
from neuroscript.errors import CallError
from neuroscript.flow.labels import NO_LABELS, Labels, union
from neuroscript.flow.state import CallLabels
from neuroscript.policy.flow_rules import has_rules
from neuroscript.workflow.plan.flows import NOTHING_LABELLED, PlanLabels, argument_labels, reference_labels
from neuroscript.workflow.plan.model import Node, Plan
from neuroscript.workflow.scheduler import NodeState, ScheduledCall
from neuroscript.workflow.trace.trace import NodeTrace

MakeCall = Callable[[ScheduledCall], Awaitable[Any]]
"""A function that makes a call of a plan."""


class RunLabels:
    """The labels of one run.

    Args:
        states: The state of each node, by name.
        inputs: The exact inputs of the plan, by name.
        start: What the plan carries before it runs; the session trusts the other inputs as words of the user.
    """

    def __init__(
        self,
        session: Session,
        plan: Plan,
        states: Mapping[str, NodeState],
        inputs: Mapping[str, Any],
        start: PlanLabels,
    ) -> None:
        self._session = session
        self._flow = flow_of_session(session)
        self._by_text = has_rules(session.policy, "values")
        self._plan = plan
        self._states = states
        self._inputs = inputs
        self._start = start
        self._arguments: dict[str, Labels] = {}
        self._results: dict[str, Labels] = {}
        self._is_read = False
        for name, value in inputs.items():
            if name not in start.inputs:
                session.user_said(value)

    def tracked(self, call: MakeCall) -> MakeCall:
        """Return a function that makes a call with the labels of its arguments, and records those of its outcome."""

        async def make(work: ScheduledCall) -> Any:
            work.labels = CallLabels(self._of_arguments(work.node), is_exact=True)
            try:
                return await call(work)
            finally:
                self._add(work)

        return make

    async def acall_named(
        self, work: ScheduledCall, name: str, mapping: Mapping[str, Any], timeout: float | None = None
    ) -> Any:
        """Make a call in the session, as `Session.acall_named` does."""
        steps, work.labels = self._session._labelled_steps(name, mapping, timeout, work.labels.given)
        return await adrive(steps, self._session._shared)

    def _of_arguments(self, node: Node) -> Labels:
        """Return what the arguments of a node carry; all nodes that it needs have ended."""
        found = self._arguments.get(node.name)
        if found is None:
            found = self._arguments[node.name] = argument_labels(self._plan, node, self._start, self._results)
        return found

    def _add(self, work: ScheduledCall) -> None:
        """Add the labels of a call that has ended to those of its node."""
        name = work.node.name
        self._results[name] = union(self._results.get(name, NO_LABELS), work.labels.outcome)

    # After the run

    def read(self) -> None:
        """Add what the nodes have returned to what the session has read, once."""
        if self._is_read:
            return
        self._is_read = True
        for name, labels in self._start.inputs.items():
            self._flow.saw(self._inputs.get(name), labels, by_text=self._by_text)
        for name, labels in self._results.items():
            self._flow.saw(_outcome_of(self._states[name]), labels, by_text=self._by_text)

    def read_output(self, output: Any) -> None:
        """Add the output of the plan, whose text may join several results."""
        if self._plan.answer is not None:
            references = (reference for _, reference in self._plan.answer.references)
            labels = reference_labels(references, self._start, self._results, self._results)
            self._flow.saw(output, labels, by_text=self._by_text)

    def shown(self, nodes: Iterable[NodeTrace]) -> tuple[NodeTrace, ...]:
        """Return the traces of nodes with the names of their labels."""
        return tuple(attrs.evolve(node, labels=tuple(sorted(self._results.get(node.name, ())))) for node in nodes)


def _outcome_of(state: NodeState) -> Any:
    """Return what the trace shows of a node."""
    return state.result if state.status == "succeeded" else str(state.error or "")


def with_session_labels(session: Session, plan: Plan, start: PlanLabels) -> PlanLabels:
    """Return what a durable plan carries: also what the session has read, because other sessions make its calls."""
    if not session._entries.tracks_flow:
        return NOTHING_LABELLED
    flow = flow_of_session(session)
    nodes = {}
    if has_rules(session.policy, "values") and not flow.texts.is_empty:
        found = {node.name: flow.texts.search([node.inputs, node.map]) for node in plan.nodes}
        nodes = {name: labels for name, labels in found.items() if labels}
    return attrs.evolve(start, nodes=nodes, session=flow.read if has_rules(session.policy, "session") else NO_LABELS)


def declared_labels(session: Session, tool: str) -> Labels:
    """Return what a tool reads by its declaration; nothing if the session does not have it."""
    try:
        pipeline = session._resolved(tool, tool).pipeline
    except CallError:
        return NO_LABELS
    return pipeline.tracker.own(0) if isinstance(pipeline, FlowPipeline) else NO_LABELS
