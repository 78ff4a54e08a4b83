"""Labels in plans: what the arguments of each node carry, and the rules about information flow that refuse a node.

Each argument carries the labels of what its references point to. A condition decides whether a node runs, but its
values are not sent anywhere, so their labels do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any, Final

import attrs

from neuroscript.coercion.parameters import STRINGS, require
from neuroscript.errors import SpecError
from neuroscript.flow.labels import NO_LABELS, Labels, Source, labels_from, union
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.labels import SOURCES, label_problems
from neuroscript.workflow.plan.model import Node, Plan, nodes_before
from neuroscript.workflow.plan.parameters import INPUTS
from neuroscript.workflow.plan.references import INPUT, Reference

if TYPE_CHECKING:
    from neuroscript.calls.flow_pipeline import FlowTracker
    from neuroscript.engine.session import Session

InputLabels = Mapping[str, Collection[str]]
"""The labels of inputs of a plan, by name, such as ``{"page": ["untrusted"]}``."""


@attrs.frozen
class PlanLabels:
    """What a plan carries before it runs.

    Attributes:
        inputs: The labels of its inputs, by name; an input without labels is trusted.
        nodes: What the strings of a node carry because the session had read them, by name. Only durable runs record
            it, because their calls are made by other sessions.
        session: What the session had read, for rules that assume that each call carries it; also only for durable runs.
    """

    inputs: Mapping[str, Labels] = attrs.field(factory=dict)
    nodes: Mapping[str, Labels] = attrs.field(factory=dict)
    session: Labels = NO_LABELS


NOTHING_LABELLED: Final = PlanLabels()


def input_labels(plan: Plan, labels: InputLabels | None) -> PlanLabels:
    """Return the labels that a host declares for the inputs of a plan.

    Raises:
        SpecError: With every unknown input and every invalid label.
    """
    if labels is None:
        return NOTHING_LABELLED
    require("run", labels=(labels, INPUTS))
    problems = list(_label_problems(plan, labels))
    if problems:
        raise SpecError(plan.subject, problems)
    return PlanLabels({name: labels_from(words, Source(f"{INPUT}.{name}", 0)) for name, words in labels.items()})


def _label_problems(plan: Plan, labels: InputLabels) -> Iterator[str]:
    known = {arg.name for arg in plan.inputs}
    for name, words in labels.items():
        where = f"labels.{quote_untrusted(name)}"
        if name not in known:
            yield f"{where}: the plan has no input {quote_untrusted(name)}"
        elif not STRINGS.holds(words):
            yield from STRINGS.problems(where, words)
        else:
            yield from label_problems(where, words, SOURCES)


def argument_labels(plan: Plan, node: Node, start: PlanLabels, results: Mapping[str, Labels]) -> Labels:
    """Return what the arguments of a node carry.

    Args:
        start: What the plan carries before it runs.
        results: The labels of the nodes before it, by name.
    """
    found = union(start.session, start.nodes.get(node.name, NO_LABELS))
    references = [reference for _, reference in node.arguments.references]
    if node.items is not None and any(each.root in ("item", "index") for each in references):
        references += [reference for _, reference in node.items.references]
    before = nodes_before(plan, node) if any(each.root == "trace" for each in references) else ()
    return union(found, reference_labels(references, start, results, before))


def reference_labels(
    references: Iterable[Reference], start: PlanLabels, results: Mapping[str, Labels], before: Iterable[str] = ()
) -> Labels:
    """Return what the values of references carry; ``${item}`` and ``${index}`` carry nothing of their own.

    Args:
        before: The nodes that ``${trace}`` shows.
    """
    found = NO_LABELS
    for reference in references:
        match reference.root, reference.path:
            case "input", (name, *_):
                found = union(found, start.inputs.get(str(name), NO_LABELS))
            case "input", _:
                found = _union_of(start.inputs.values(), found)
            case "trace", _:
                found = _union_of((results.get(name, NO_LABELS) for name in before), found)
            case name, _:
                found = union(found, results.get(name, NO_LABELS))
    return found


def _union_of(each: Iterable[Labels], found: Labels) -> Labels:
    for labels in each:
        found = union(found, labels)
    return found


def flow_problems(session: Session, plan: Plan, start: PlanLabels, tracker_of: Callable[[str], Any]) -> Iterator[str]:
    """Yield the nodes that the rules of a session refuse whatever the calls return.

    A result carries at least what its tool declares, so a node that is refused for these labels is always refused.

    Args:
        tracker_of: Returns the `FlowTracker` of a tool by its name in the plan; None if the session does not have it.
    """
    flow = session.memory.flow
    assert flow is not None
    results: dict[str, Labels] = {}
    refusals: dict[str, str] = {}
    for name in TopologicalSorter({node.name: node.needs for node in plan.nodes}).static_order():
        node = plan[name]
        tracker: FlowTracker | None = tracker_of(node.tool)
        carried = argument_labels(plan, node, start, results)
        if tracker is None:
            continue
        results[name] = tracker.passed(union(carried, tracker.own(0)))
        found = tracker.find(flow, carried) if carried else ()
        refusal = tracker.refusal_of(flow, found, carried) if found else None
        if refusal is not None:
            refusals[name] = refusal.text
    yield from (f"nodes.{node.name}.tool: {refusals[node.name]}" for node in plan.nodes if node.name in refusals)
