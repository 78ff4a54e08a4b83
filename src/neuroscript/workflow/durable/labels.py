"""Labels of durable runs as text in the database, next to the values that carry them.

They are part of the text of the inputs, of the arguments and of the outcome, so a version that does not know them
rejects the row instead of ignoring its labels. They name tools but no calls, because the numbers of calls are those of
one process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from neuroscript.coercion.parameters import STRING, sequence
from neuroscript.flow.labels import MAX_SOURCES, Labels, Source
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.labels import SOURCES, label_problems
from neuroscript.workflow.durable.encoding import Unreadable, json_of, text_of, value_in
from neuroscript.workflow.plan.flows import PlanLabels
from neuroscript.workflow.plan.model import Plan

LABELLED: Final = "$labelled"
"""The key of a value with labels; `text_of` writes no such key, and `value_of` refuses it."""

FAULT: Final = "holds labels in an unknown form"

ORIGINS: Final = sequence(STRING, "strings")


def labelled_text(value: Any, labels: Labels | None) -> str:
    """Return an exact value as text, with its labels unless they are None, as they are without flow rules.

    Raises:
        NotStorable: It contains a value that cannot be stored, such as a handle.
    """
    return text_of(value) if labels is None else _joined(_labels_to_data(labels), value)


def labelled_value(text: str) -> tuple[Any, Labels | None]:
    """Return the value and the labels that `labelled_text` wrote, or raise `Unreadable`."""
    labels, value = _split(text)
    return value, None if labels is None else _labels_of(labels)


def labelled_inputs_text(inputs: Mapping[str, Any], labels: PlanLabels | None) -> str:
    """Return the inputs of a plan as text, with what the plan carries unless that is None."""
    if labels is None:
        return text_of(inputs)
    by_name = {name: _by_name_to_data(getattr(labels, name)) for name in ("inputs", "nodes")}
    return _joined({**by_name, "session": _labels_to_data(labels.session)}, inputs)


def labelled_inputs(text: str, plan: Plan) -> tuple[Any, PlanLabels | None]:
    """Return what `labelled_inputs_text` wrote, or raise `Unreadable`."""
    labels, value = _split(text)
    if labels is None:
        return value, None
    if type(labels) is not dict or labels.keys() != {"inputs", "nodes", "session"}:
        raise Unreadable(FAULT)
    inputs = _by_name_of(labels["inputs"], {arg.name for arg in plan.inputs})
    nodes = _by_name_of(labels["nodes"], {node.name for node in plan.nodes})
    return value, PlanLabels(inputs, nodes, _labels_of(labels["session"]))


def _joined(labels: Any, value: Any) -> str:
    return f'{{"{LABELLED}": [{json.dumps(labels)}, {text_of(value)}]}}'


def _split(text: str) -> tuple[Any, Any]:
    """Return the data of the labels, or None if the text has none, and the value."""
    data = json_of(text)
    if type(data) is not dict or data.keys() != {LABELLED}:
        return None, value_in(data)
    match data[LABELLED]:
        case [labels, value] if labels is not None:
            return labels, value_in(value)
    raise Unreadable(FAULT)


def _labels_to_data(labels: Labels) -> dict[str, list[str]]:
    return {name: [*dict.fromkeys(source.tool for source in sources)] for name, sources in labels.items()}


def _by_name_to_data(labels: Mapping[str, Labels]) -> dict[str, dict[str, list[str]]]:
    return {name: _labels_to_data(each) for name, each in labels.items()}


def _labels_of(data: Any) -> Labels:
    if type(data) is not dict or any(label_problems("labels", data, SOURCES)):
        raise Unreadable(FAULT)
    for origins in data.values():
        if type(origins) is not list or not ORIGINS.holds(origins) or not 1 <= len(origins) <= MAX_SOURCES:
            raise Unreadable(FAULT)
    return {name: tuple(Source(quote_untrusted(each), 0) for each in origins) for name, origins in data.items()}


def _by_name_of(data: Any, known: set[str]) -> dict[str, Labels]:
    if type(data) is not dict or not data.keys() <= known:
        raise Unreadable(FAULT)
    return {name: _labels_of(each) for name, each in data.items()}
