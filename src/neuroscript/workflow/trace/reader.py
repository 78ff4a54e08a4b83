"""Strict reading of trace data, which reports all problems at once with their paths.

Any program may have written the file, so nothing is trusted: invalid names, unknown or cyclic needs, and impossible
times are rejected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, get_args

import attrs

from neuroscript.audit.recording import decode
from neuroscript.coercion.context import type_name
from neuroscript.errors import MAX_LISTED_PROBLEMS, SpecError
from neuroscript.io.text import first, quote_untrusted
from neuroscript.io.toml import Place, TomlDocument
from neuroscript.io.toml_errors import Faults
from neuroscript.policy.labels import LABEL
from neuroscript.workflow.plan.model import NAME
from neuroscript.workflow.trace.trace import Attempt, NodeTrace, Outcome, Status, Trace

FORMAT_VERSION: Final = 1
"""The version of the format; other versions are rejected."""

MAX_TIME_SECONDS: Final = 1e12
"""The largest accepted number of seconds."""

DIGEST: Final = re.compile(r"[0-9a-f]{64}")
NODE_DEFAULTS: Final[Mapping[str, Any]] = {field.name: field.default for field in attrs.fields(NodeTrace)}


def read_trace(data: Mapping[str, Any], source: str) -> Trace:
    """Return the trace in *data*.

    Args:
        source: The name to use in errors.

    Raises:
        SpecError: With every problem.
    """
    reader = _Reader(Faults(TomlDocument({}, {})))
    trace = reader.trace(data)
    if trace is None:
        raise SpecError(source, first([text for _, text in reader.faults.found], MAX_LISTED_PROBLEMS))
    return trace


@attrs.frozen
class _Reader:
    """Reads the data of one trace."""

    faults: Faults

    def trace(self, data: Mapping[str, Any]) -> Trace | None:
        """Return the trace, or None if anything is invalid."""
        if data.get("trace") != FORMAT_VERSION or type(data["trace"]) is not int:
            self.faults.note(("trace",), f"must be {FORMAT_VERSION}, the supported version of the format")
            return None
        names = tuple(field.name for field in attrs.fields(Trace))
        self.faults.only((), data, ("trace", *names))
        fields = {name: self._part((), data, name) for name in names if name != "nodes"}
        nodes_data = self._list(("nodes",), data["nodes"]) if "nodes" in data else self._note_missing(("nodes",))
        fields["nodes"] = tuple(self._node(("nodes", index), each) for index, each in enumerate(nodes_data))
        if all(NAME.fullmatch(node.name) for node in fields["nodes"]):
            self._graph(fields["nodes"])
        return None if self.faults.found else Trace(**fields)

    def _node(self, place: Place, data: Any) -> NodeTrace:
        table = self._table(place, data)
        if table is None:
            return NodeTrace("", "", "unstarted")
        self.faults.only(place, table, tuple(NODE_DEFAULTS))
        fields = {name: self._part(place, table, name) for name in ("name", "tool", "status")}
        fields["name"] = str(fields["name"])
        fields |= {name: self._part(place, table, name) for name in ("arguments", "result", "error", "reason")}
        needs, labels = (self._strings((*place, name), table.get(name, [])) for name in ("needs", "labels"))
        for index, label in enumerate(labels):
            if LABEL.fullmatch(label) is None:
                self.faults.note((*place, "labels", index), "must be a label, such as untrusted or private:mail")
        attempts = self._list((*place, "attempts"), table.get("attempts", []))
        return NodeTrace(
            **fields,
            needs=needs,
            labels=labels,
            attempts=tuple(self._attempt((*place, "attempts", index), each) for index, each in enumerate(attempts)),
        )

    def _strings(self, place: Place, value: Any) -> tuple[str, ...]:
        """Return a list of strings, and note its problem if it is something else."""
        found = self._list(place, value)
        if not all(type(each) is str for each in found):
            self.faults.note(place, "must be a list of strings")
        return tuple(each for each in found if type(each) is str)

    def _attempt(self, place: Place, data: Any) -> Attempt:
        table = self._table(place, data)
        names = tuple(field.name for field in attrs.fields(Attempt))
        if table is None:
            return Attempt(1, None, 0.0, 0.0)
        self.faults.only(place, table, names)
        return Attempt(**{name: self._part(place, table, name) for name in names})

    def _part(self, place: Place, table: Mapping[str, Any], name: str) -> Any:
        """Return the value of a member, and note its problem if it is invalid."""
        if name not in table:
            if name in NODE_DEFAULTS and NODE_DEFAULTS[name] is not attrs.NOTHING and place:
                return NODE_DEFAULTS[name]
            return self._note_missing((*place, name)) or None
        is_right, expected = PARTS.get(name if place else f"trace.{name}", PARTS.get(name, ANYTHING))
        value = table[name]
        try:
            value = decode(value) if name in VALUES else value
        except ValueError as error:
            self.faults.note((*place, name), str(error))
            return None
        if not is_right(value):
            self.faults.note((*place, name), f"must be {expected}, got {type_name(value)}")
        return value

    def _table(self, place: Place, data: Any) -> Mapping[str, Any] | None:
        if isinstance(data, Mapping):
            return data
        self.faults.note(place, f"must be a JSON object, got {type_name(data)}")
        return None

    def _list(self, place: Place, value: Any) -> list[Any]:
        if isinstance(value, list):
            return value
        self.faults.note(place, f"must be a list, got {type_name(value)}")
        return []

    def _note_missing(self, place: Place) -> list[Any]:
        self.faults.note(place, "is missing")
        return []

    def _graph(self, nodes: tuple[NodeTrace, ...]) -> None:
        """Note duplicate names, and needs that no plan can have."""
        graph: dict[str, tuple[str, ...]] = {}
        for index, node in enumerate(nodes):
            if node.name in graph:
                self.faults.note(("nodes", index, "name"), "the name is used twice")
            graph[node.name] = node.needs
        lost = False
        for index, node in enumerate(nodes):
            for name in node.needs:
                if name not in graph:
                    lost = True
                    self.faults.note(("nodes", index, "needs"), f"unknown node {quote_untrusted(name)}")
        try:
            TopologicalSorter({} if lost else graph).prepare()
        except CycleError as error:
            knot = " < ".join(map(quote_untrusted, reversed(error.args[1])))
            self.faults.note(("nodes",), f"the nodes depend on each other: {knot}")


Check = tuple[Callable[[Any], bool], str]


def _is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and -MAX_TIME_SECONDS <= value <= MAX_TIME_SECONDS


def _is_error(value: Any) -> bool:
    return value is None or (type(value) is dict and all(type(value.get(key)) is str for key in ("code", "message")))


def _is_text(value: Any) -> bool:
    return type(value) is str


ANYTHING: Final[Check] = (lambda value: True, "anything")
TEXT: Final[Check] = (_is_text, "a string")
SECONDS: Final[Check] = (_is_seconds, f"a number of seconds within {MAX_TIME_SECONDS:g}")
VALUES: Final = frozenset({"inputs", "arguments", "result", "output", "error"})

PARTS: Final[Mapping[str, Check]] = {
    **dict.fromkeys(("run", "plan", "answer", "tool", "reason", "code"), TEXT),
    **dict.fromkeys(("started", "seconds"), SECONDS),
    "digest": (lambda value: _is_text(value) and DIGEST.fullmatch(value) is not None, "64 hexadecimal digits"),
    "inputs": (lambda value: type(value) is dict, "values by name"),
    "trace.status": (lambda value: value in get_args(Outcome), f"one of {', '.join(get_args(Outcome))}"),
    "status": (lambda value: value in get_args(Status), f"one of {', '.join(get_args(Status))}"),
    "error": (_is_error, "null or an object with code and message"),
    "name": (
        lambda value: _is_text(value) and NAME.fullmatch(value) is not None,
        "a letter or _, then letters, digits, _ and -, at most 64",
    ),
    "number": (lambda value: type(value) is int and value >= 1, "an integer from 1"),
    "item": (lambda value: value is None or (type(value) is int and value >= 0), "null or an integer from 0"),
}
