"""Validation of Smith plans: reports every problem, in the wording of Smith's planner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from sys import float_info
from typing import Any, Final, cast

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.parameters import (
    BY_NAME,
    STRING,
    WORD,
    Form,
    as_tuple,
    collection,
    mapping_form,
    require,
    sequence,
)
from neuroscript.errors import MAX_LISTED_PROBLEMS, ArgumentError, SpecError
from neuroscript.formats.json_schema import spec_from_schema
from neuroscript.interop.foreign import bounded_schema
from neuroscript.interop.smith.json_values import shown_key, size_problem
from neuroscript.interop.smith.references import is_unreadable, referred_steps, refers
from neuroscript.io.text import NotJSON, parse_json, quote_untrusted
from neuroscript.spec.binding import bind_named
from neuroscript.spec.tool_spec import ToolSpec

HINT: Final = "pass METADATA of tools, as ToolsRegistry.get_tools_registry() returns it"

METADATA: Final = Form(
    "a collection of mappings",
    collection(BY_NAME, "").accepts,
    items=Form(BY_NAME.words, BY_NAME.accepts, hint=HINT),
    hint=HINT,
)
SCHEMAS: Final = mapping_form(BY_NAME, "schemas")
NAMES: Final = sequence(STRING, "strings")

NO_OBJECT: Final = "Plan is not a JSON object."
NO_NODES: Final[frozenset[int]] = frozenset()


def read_plan(text: str) -> Any:
    """Return the plan in a model's reply: the JSON between the first and the last brace, with or without a code fence.

    Raises:
        SpecError: The reply is not a string or does not contain valid JSON; the error names the position.

    >>> read_plan('```json\\n{"nodes": []}\\n```')
    {'nodes': []}
    """
    require("read_plan", text=(text, STRING))
    try:
        return parse_json(text[max(0, text.find("{")) : text.rfind("}") + 1 or None])
    except NotJSON as error:
        raise SpecError("plan", [error.hint]) from None


def plan_problems(plan: object, tools: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return every problem of a plan, in the order of its nodes; an empty tuple if it is valid.

    Nothing is executed. A plan with ``{"status": "error"}`` reports that no plan exists, and has no problems.

    Args:
        plan: The plan from `read_plan`.
        tools: METADATA, such as those from `ToolsRegistry.get_tools_registry`.

    Raises:
        SpecError: *tools* are not valid METADATA; with every problem found.

    >>> plan_problems([], ())
    ('Plan is not a JSON object.',)
    """
    by_name = {each["name"]: each for each in checked_tools("plan_problems", tools)}
    if not isinstance(plan, dict):
        return (NO_OBJECT,)
    if plan.get("status") == "error":
        return ()
    nodes = plan.get("nodes")
    if not isinstance(nodes, list) or not nodes:
        return ("Missing or empty 'nodes' list.",)
    ids = [each.get("id") if isinstance(each, dict) else None for each in nodes]
    known = [each for each in ids if type(each) is int]
    problems = ["Every node.id must be an integer."] if len(known) < len(ids) else []
    problems += [f"Duplicate node id {each}." for each, count in Counter(known).items() if count > 1]
    checked = _Checked(by_name, frozenset(known), _dependencies(nodes))
    for node in nodes:
        if isinstance(node, dict) and type(node.get("id")) is int:
            problems += [f"Node {node['id']}: {each}" for each in checked.problems(node)]
    last = plan.get("final_output_node")
    if type(last) is not int or last not in known:
        problems.append("Invalid or missing 'final_output_node' id.")
    return tuple(problems)


def checked_tools(subject: str, tools: Any) -> tuple[Mapping[str, Any], ...]:
    """Return METADATA that have the structure needed to check plans.

    Args:
        subject: The called function, for the error.

    Raises:
        SpecError: The METADATA are invalid; with every problem found.
    """
    listed = tools if isinstance(tools, Mapping) else as_tuple(tools)
    require(subject, tools=(listed, METADATA))
    faults = (fault for index, each in enumerate(listed) for fault in _shape_faults(f"tools[{index}]", each))
    found = [*islice(faults, MAX_LISTED_PROBLEMS)]
    if found:
        raise SpecError(subject, found)
    return cast(tuple[Mapping[str, Any], ...], listed)


def _shape_faults(where: str, metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of the METADATA keys that plans are checked against."""
    for key, form in (("name", WORD), ("function", WORD), ("parameters", BY_NAME)):
        if key not in metadata:
            yield f"{where} must have the key {key!r}, which is {form.words}"
        else:
            yield from form.problems(f"{where}[{key!r}]", metadata[key])
    parameters: Any = metadata.get("parameters")
    if BY_NAME.holds(parameters):
        for key, form in (("properties", SCHEMAS), ("required", NAMES)):
            if key in parameters:
                yield from form.problems(f"{where}['parameters'][{key!r}]", parameters[key])


def _dependencies(nodes: Iterable[Any]) -> Mapping[int, frozenset[int]]:
    """Return the declared dependencies of each node, by id."""
    found: dict[int, frozenset[int]] = {}
    for node in nodes:
        if isinstance(node, dict) and type(node.get("id")) is int:
            before = node.get("depends_on", [])
            own = before if isinstance(before, list) else []
            found[node["id"]] = frozenset(each for each in own if type(each) is int)
    return found


@attrs.frozen
class _Checked:
    """The data that nodes are checked against.

    Attributes:
        tools: METADATA by name.
        ids: The ids of all nodes.
        before: The declared dependencies of each node, by id.
        specs: The specs of the tools that were needed so far, by name.
    """

    tools: Mapping[str, Mapping[str, Any]]
    ids: frozenset[int]
    before: Mapping[int, frozenset[int]]
    specs: dict[str, ToolSpec] = attrs.field(init=False, factory=dict)

    def problems(self, node: Mapping[str, Any]) -> Iterator[str]:
        """Yield the problems of one node."""
        tool, function = node.get("tool"), node.get("function")
        metadata = self.tools.get(tool) if isinstance(tool, str) else None
        if not isinstance(tool, str) or not isinstance(function, str) or not tool or not function:
            yield "missing 'tool' or 'function'."
        elif metadata is None:
            yield f"tool '{quote_untrusted(tool)}' not in registry."
        elif function != metadata["function"]:
            expected = f"(expected '{quote_untrusted(metadata['function'])}')"
            yield f"invalid function '{quote_untrusted(function)}' for tool '{quote_untrusted(tool)}' {expected}."
        inputs = node.get("inputs", {})
        large = size_problem(inputs)
        if not isinstance(inputs, dict):
            yield "'inputs' must be an object."
        elif large:
            yield f"'inputs': {large}."
        elif metadata is not None:
            yield from _name_problems(inputs, metadata)
            yield from _literal_problems(inputs, self.spec(metadata))
        yield from self.dependency_problems(node)
        if not large:
            yield from self.reference_problems(node["id"], inputs)
        yield from _manner_problems(node)

    def spec(self, metadata: Mapping[str, Any]) -> ToolSpec:
        """Return the spec of a tool."""
        name = metadata["name"]
        if name not in self.specs:
            self.specs[name] = spec_from_schema("tool", bounded_schema(metadata["parameters"], name), group="smith")
        return self.specs[name]

    def dependency_problems(self, node: Mapping[str, Any]) -> Iterator[str]:
        """Yield the problems of a node's dependencies."""
        depends_on = node.get("depends_on", [])
        if not isinstance(depends_on, list):
            yield "'depends_on' must be a list."
        for each in depends_on if isinstance(depends_on, list) else ():
            if type(each) is not int:
                yield f"depends_on contains non-int id ({type_name(each)})."
            elif each not in self.ids:
                yield f"depends_on references unknown id {each}."
            elif each >= node["id"]:
                yield f"depends_on id {each} must be < {node['id']}."

    def reference_problems(self, id: int, inputs: object) -> Iterator[str]:
        """Yield the problems of a node's references to steps."""
        if is_unreadable(inputs):
            yield "inputs contain a reference without a valid step."
        strange = referred_steps(inputs) - self.before[id]
        for step in sorted(strange - self.all_before(id) if strange else ()):
            yield f"inputs refer to step {step}, which is not in 'depends_on'."

    def all_before(self, id: int) -> frozenset[int]:
        """Return all direct and indirect dependencies of a node."""
        found: set[int] = set()
        rest = [*self.before[id]]
        while rest:
            each = rest.pop()
            if each not in found:
                found.add(each)
                rest.extend(self.before.get(each, NO_NODES))
        return frozenset(found)


def _name_problems(inputs: dict[str, Any], metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the inputs that a tool does not have, and required inputs that are missing."""
    parameters, tool = metadata["parameters"], quote_untrusted(metadata["name"])
    properties = parameters.get("properties", {})
    for name in inputs:
        if name not in properties:
            yield f"invalid input '{shown_key(name)}' for tool '{tool}'."
    for name in parameters.get("required", ()):
        if name not in inputs:
            yield f"missing required input '{quote_untrusted(name)}' for tool '{tool}'."


def _literal_problems(inputs: dict[str, Any], spec: ToolSpec) -> Iterator[str]:
    """Yield the invalid inputs, as far as their values are known before the plan runs."""
    literal = {name: each for name, each in inputs.items() if not refers(each)}
    args = tuple(arg for arg in spec.args if arg.name in literal)
    try:
        bind_named(ToolSpec("tool", "smith", args), {arg.name: literal[arg.name] for arg in args})
    except ArgumentError as error:
        yield from (f"{problem}." for problem in error.problems)


def _manner_problems(node: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of a node's run settings; all three are required."""
    retry, timeout = node.get("retry"), node.get("timeout")
    if type(retry) is not int or retry < 0:
        yield "'retry' must be a non-negative integer."
    if not isinstance(timeout, (int, float)) or type(timeout) is bool or not 0 < timeout <= float_info.max:
        yield "'timeout' must be a positive number."
    if node.get("on_fail") not in ("halt", "continue"):
        yield "'on_fail' must be 'halt' or 'continue'."
