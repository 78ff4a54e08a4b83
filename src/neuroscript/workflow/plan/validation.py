"""Static validation of a plan in a session: its tools, the types of its references, and the policy.

All problems are reported at once. A reference is known only by its type before the run, so a call that contains one is
checked with a sample value of that type, and only capabilities that do not depend on the reference are checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

import attrs

from neuroscript.coercion.parameters import optional, require
from neuroscript.coercion.rule_text import rule_phrase
from neuroscript.coercion.types import ELEMENTS, LISTS, NONE_TYPES, VALUES, ArgType, type_phrase
from neuroscript.engine.entries import SessionTool
from neuroscript.engine.session import Session
from neuroscript.errors import MAX_LISTED_PROBLEMS, MAX_PROBLEMS, ArgumentError, CallError, Problem, ToolNotFound
from neuroscript.io.text import quote_untrusted
from neuroscript.names import canonical
from neuroscript.runtime.interfaces import AskedModel, ToolCall
from neuroscript.spec.nested_values import item_of, value_of
from neuroscript.spec.tool_spec import MAYBE, ArgSpec, ToolSpec
from neuroscript.workflow.plan.conditions import STATES, ComparisonError, Condition
from neuroscript.workflow.plan.flows import InputLabels, flow_problems, input_labels
from neuroscript.workflow.plan.model import LATER, Node, Plan
from neuroscript.workflow.plan.parameters import MODEL, PLAN, SESSION
from neuroscript.workflow.plan.references import MixedString, Reference, UnresolvedReference, is_index
from neuroscript.workflow.plan.type_inference import UNKNOWN, can_fit_rule, part_at, sample_values, type_at


def check(
    session: Session, plan: Plan, llm: AskedModel | None = None, *, labels: InputLabels | None = None
) -> tuple[str, ...]:
    """Return every problem that prevents a plan from running in a session, each with its path; nothing runs.

    Approvals and the remaining limits are only known during the run. Of limits, only permanent ones are reported here,
    not
    the current load.

    Args:
        llm: The model for a synthesis; by default the one that the host provides.
        labels: The labels of inputs, by name, as for `run`.

    Raises:
        SpecError: If a parameter has the wrong type, or a label or its input does not exist.
    """
    require("check", session=(session, SESSION), plan=(plan, PLAN), llm=(llm, optional(MODEL)))
    tools = _Tools(session, plan)
    output = () if plan.answer is None else plan.answer.references
    start = input_labels(plan, labels)
    found = (*chain.from_iterable(_problems(tools, node) for node in plan.nodes), *_astray(tools, output))
    if session._entries.tracks_flow:
        found += tuple(flow_problems(session, plan, start, tools.tracker))
    if plan.synthesis and llm is None and session.host.llm is None:
        return (*found, "synthesis: needs a model, and the host provides none")
    return found


class _Tools:
    """The tools of a plan as a session knows them."""

    def __init__(self, session: Session, plan: Plan) -> None:
        self.session = session
        self.plan = plan
        self._known: dict[str, SessionTool | CallError] = {}
        self._samples: dict[tuple[str, tuple[str, ...]], Mapping[str, Any]] = {}
        self._rules: dict[str, Mapping[str, ArgSpec]] = {}
        self._not_found = 0
        self._inputs: dict[Any, ArgSpec] = {arg.name: arg for arg in plan.inputs}

    def known(self, tool: str) -> SessionTool | CallError:
        """Return a tool as the session knows it, or the error that a call of it would raise."""
        found = self._known.get(tool)
        if found is None:
            try:
                found = self._known[tool] = self._resolved(tool)
            except CallError as error:
                found = self._known[tool] = error
                self._not_found += isinstance(error, ToolNotFound)
        return found

    def _resolved(self, tool: str) -> SessionTool:
        """Return a tool as the session knows it; only the first `MAX_PROBLEMS` unknown tools get suggestions."""
        if self._not_found >= MAX_PROBLEMS and self.session._shared.registry.named(canonical(tool)) is None:
            raise ToolNotFound(quote_untrusted(tool))
        return self.session._resolved(tool, tool)

    def tracker(self, tool: str) -> Any:
        """Return the `FlowTracker` of a tool under flow rules, or None if the session does not have the tool."""
        known: Any = self.known(tool)
        return None if isinstance(known, CallError) else known.pipeline.tracker

    def rules(self, spec: ToolSpec) -> Mapping[str, ArgSpec]:
        """Return the arguments of a tool by name; a variadic argument becomes a list."""
        tool = spec.full_name
        if tool not in self._rules:
            rules = {arg.name: arg for arg in spec.args}
            if spec.variadic:
                last = spec.args[-1]
                items = ArgSpec(last.name, LISTS.get(last.type, ArgType.SLICE))
                if last.has_parts:
                    item = attrs.evolve(last, required=True, secret=False)
                    items = ArgSpec(last.name, ArgType.SLICE, items=item)
                rules[last.name] = items
            self._rules[tool] = rules
        return self._rules[tool]

    def samples(self, spec: ToolSpec, names: tuple[str, ...]) -> Mapping[str, Any]:
        """Return sample values for the arguments of a tool that come from references."""
        samples = self._samples.get((spec.full_name, names))
        if samples is None:
            rules = self.rules(spec)
            samples = {name: _sample(rules.get(name)) for name in names}
            self._samples[spec.full_name, names] = samples
        return samples

    def type_of(self, reference: Reference, node: Node | None = None) -> ArgType | None:
        """Return the type of a reference's value, or None if it is unknown.

        Args:
            node: The node that contains the reference.
        """
        match reference.root, reference.path:
            case "input", (name, *path):
                arg = self._inputs.get(name)
                return None if arg is None else part_at(arg, path)
            case "input", _:
                return ArgType.MAP
            case "item", path:
                over = None if node is None or node.items is None else node.items.value
                if not isinstance(over, Reference):
                    return None
                return self.type_of(Reference(over.root, (*over.path, 0, *path)), node)
            case "index", path:
                return type_at(ArgType.INT, path)
            case "trace", path:
                return type_at(ArgType.SLICE_MAP, path)
        node = self.plan[reference.root]
        known, path = self.known(node.tool), reference.path
        if isinstance(known, CallError):
            return None
        spec = known.pipeline.tool.spec
        for is_many in (node.map is not None, spec.stream):
            if is_many == MAYBE:
                return None
            if is_many and not (path and is_index(path[0])):
                return ArgType.NIL if path else ArgType.SLICE
            path = path[1:] if is_many else path
        return type_at(spec.return_type, path) if spec.returns is None else part_at(spec.returns, path)


def _problems(tools: _Tools, node: Node) -> Iterable[str]:
    known = tools.known(node.tool)
    if isinstance(known, CallError):
        return [f"nodes.{node.name}.tool: {known}"]
    found: list[str] = []
    if node.references or node.items is not None:
        found.extend(_unfit(tools, node, known.pipeline.tool.spec))
    if node.condition is not None:
        found.extend(_undecided(tools, node, node.condition))
    if node.arguments.references:
        found.extend(_call_problems(tools, node, known))
        if not found:
            found.extend(_refused_items(tools, node, known))
    else:
        found.extend(_refused_as_it_is(tools, node.arguments.value, known))
    return [f"nodes.{node.name}.{problem}" for problem in found] if found else found


def _unfit(tools: _Tools, node: Node, spec: ToolSpec) -> Iterator[str]:
    """Yield the references whose values cannot be used in their place."""
    if node.items is not None:
        yield from _no_list(tools, node.items.value)
    rules, arguments = tools.rules(spec), node.arguments.value
    yield from _astray(tools, node.references, node)
    for name in node.arguments.referring_keys:
        if name in rules:
            yield from _misfits(tools, node, arguments[name], rules[name], f"inputs.{quote_untrusted(name)}")


def _misfits(tools: _Tools, node: Node, value: Any, target: ArgSpec, where: str) -> Iterator[str]:
    """Yield the references in a value, at any depth, whose types do not match the declared type."""
    match value:
        case Reference() | MixedString():
            gives = tools.type_of(value, node) if isinstance(value, Reference) else ArgType.STRING
            if gives is not None and gives not in UNKNOWN and not can_fit_rule(gives, target):
                yield f"{where}: expected {rule_phrase(target)}, but the reference returns {type_phrase(gives)}"
        case list() if target.type in ELEMENTS:
            rules = target.prefix_items or (item_of(target),) * len(value)
            for index, (each, rule) in enumerate(zip(value, rules, strict=False)):
                yield from _misfits(tools, node, each, rule, f"{where}[{index}]")
        case dict() if target.type in VALUES:
            keys = {key.name: key for key in target.keys}
            for key, each in value.items():
                rule = keys.get(key) or value_of(target)
                yield from _misfits(tools, node, each, rule, f"{where}.{quote_untrusted(key)}")


def _undecided(tools: _Tools, node: Node, condition: Condition) -> Iterator[str]:
    """Yield the parts of a condition that values of their types cannot satisfy or violate."""

    def sample(reference: Reference) -> Any:
        kind = tools.type_of(reference, node)
        if kind is None or kind in UNKNOWN:
            raise UnresolvedReference
        return sample_values(kind)[0]

    match condition.word:
        case "all" | "any" | "not":
            for part in condition.operands:
                yield from _undecided(tools, node, part)
        case word if word not in STATES:
            try:
                condition.holds(sample, str)
            except ComparisonError as error:
                yield f"when: {error}"
            except UnresolvedReference:
                return


def _astray(tools: _Tools, references: Iterable[tuple[str, Reference]], node: Node | None = None) -> Iterator[str]:
    """Yield the references to parts that no value of their type has."""
    for where, reference in references:
        if reference.path and tools.type_of(reference, node) is ArgType.NIL:
            yield f"{where}: {quote_untrusted(str(reference))} refers to a part that the value cannot have"


def _no_list(tools: _Tools, items: Any) -> Iterator[str]:
    kind = (
        tools.type_of(items) if isinstance(items, Reference) else ArgType.SLICE if type(items) is list else ArgType.NIL
    )
    if kind in NONE_TYPES or (kind not in UNKNOWN and kind not in ELEMENTS):
        yield "map: expected a list"


def _call_problems(tools: _Tools, node: Node, known: SessionTool) -> Iterator[str]:
    """Yield the problems of the known arguments, and what the policy refuses."""
    line, referring_keys, values = known.pipeline, node.arguments.referring_keys, None
    try:
        values = known.bind({**node.arguments.value, **tools.samples(line.tool.spec, referring_keys)})
    except ArgumentError as error:
        yield from (
            _input_problem(problem)
            for problem in error.problems[:MAX_LISTED_PROBLEMS]
            if _is_known(problem, referring_keys)
        )
    if line.tool.policy.capabilities:
        try:
            texts = [*_uncovered(tools, line, referring_keys, values)]
        except ArgumentError as error:  # a URL without a host
            yield from map(_input_problem, error.problems)
        else:
            yield from (f"tool: needs {quote_untrusted(text)}, which is not granted" for text in texts)


def _refused_items(tools: _Tools, node: Node, known: SessionTool) -> Iterator[str]:
    """Yield the problems of each call of a map over literal items, whose arguments are all known."""
    if node.items is None or node.items.references or type(node.items.value) is not list:
        return  # the items are only known during the run
    if any(reference.root not in ("item", "index") for _, reference in node.arguments.references):
        return
    for index, item in enumerate(node.items.value):
        try:
            arguments = node.arguments.fill(partial(_resolve, {"item": item, "index": index}))
        except UnresolvedReference as lost:
            yield f"map[{index}]: {lost}"
        else:
            yield from (f"map[{index}].{problem}" for problem in _refused_as_it_is(tools, arguments, known))


def _resolve(values: Mapping[str, Any], reference: Reference) -> Any:
    return reference.within(values[reference.root])


def _refused_as_it_is(tools: _Tools, arguments: Mapping[str, Any], known: SessionTool) -> Iterator[str]:
    """Yield the problems of a call whose arguments are all known."""
    line = known.pipeline
    try:
        known.bind(arguments)
    except ArgumentError as error:
        yield from map(_input_problem, error.problems[:MAX_LISTED_PROBLEMS])
        return
    if line.gate is None and not line.tool.templates:
        return
    decision = tools.session.check([ToolCall(line.tool.name, arguments)])[0]
    is_of_now = decision.rule == "limits" and decision.retry == LATER
    if not decision.allowed and not is_of_now:
        yield f"tool: {decision.text}"


def _sample(rule: ArgSpec | None) -> Any:
    """Return a sample value for an argument that contains references."""
    if rule is None or rule.type in UNKNOWN:
        return ""
    return sample_values(rule.type)[-1]


def _is_known(problem: Problem, sampled: Collection[str]) -> bool:
    """Return whether a problem does not stem from a sample value."""
    return problem.code == "arg.unknown" or problem.where.partition("[")[0] not in sampled


def _input_problem(problem: Problem) -> str:
    return f"inputs.{problem}" if problem.where else f"inputs: {problem}"


def _uncovered(
    tools: _Tools, line: Any, referring_keys: Collection[str], values: tuple[Any, ...] | None
) -> Iterator[str]:
    """Yield the capabilities of a tool that no grant can cover, whatever the references return.

    Args:
        referring_keys: The arguments that contain references.
        values: One for each argument; None if the known ones are invalid.
    """
    from neuroscript.policy.templates import may_cover, named_in

    policy = tools.session.policy
    for text, template in zip(line.tool.policy.capabilities, line.tool.templates, strict=True):
        is_open = values is None or not named_in(text).isdisjoint(referring_keys)
        if not all(any(may_cover(grant, text) for grant in layer.grants) for layer in policy.layers) or (
            not is_open and policy.uncovered_need(template.fill(values)) is not None
        ):
            yield text
