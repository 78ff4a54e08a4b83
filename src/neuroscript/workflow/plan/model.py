"""The data model of plans: tool calls by name, references between them, and what happens when one fails.

The module does not depend on an engine. A `Plan` is always consistent in itself; `validation` checks that its tools
exist
and what a policy permits.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain
from sys import float_info
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.plain_data import to_plain
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.names import canonical
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec
from neuroscript.tools.serialization import spec_to_data
from neuroscript.workflow.plan.conditions import Condition
from neuroscript.workflow.plan.references import INPUT, RESERVED, Reference, Template, private_copy

OnFail = Literal["halt", "continue"]

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""The pattern of node names, which references use without quotes."""

LATER: Final = "later"
"""The word in `Retry.on` for all errors that may be temporary."""

CODE: Final = re.compile(r"[a-z_*?]+(\.[a-z_*?]+)*")
"""An error code, such as ``tool.failed``, or a pattern of codes, such as ``llm.*``."""

MAX_RETRIES: Final = 100
MAX_NODES: Final = 100_000


@attrs.frozen(kw_only=True)
class Retry:
    """When a failed node is retried.

    Attributes:
        count: Maximum number of retries.
        backoff: Seconds before the first retry.
        factor: The growth of each further pause over the one before.
        max_delay: The longest pause in seconds.
        on: Error codes and patterns of codes. The word ``later`` stands for all errors that may be temporary.

    A timeout is retried only if the tool is idempotent.

    Raises:
        SpecError: With every problem.

    >>> [Retry(count=4, backoff=1, max_delay=5).pause(number) for number in (1, 2, 3, 4)]
    [1.0, 2.0, 4.0, 5.0]
    """

    count: int = 0
    backoff: float = 1.0
    factor: float = 2.0
    max_delay: float = 60.0
    on: tuple[str, ...] = (LATER, "tool.*")

    def __attrs_post_init__(self) -> None:
        faults = list(_retry_faults(self))
        if faults:
            raise SpecError("retry", faults)

    def pause(self, number: int) -> float:
        """Return the seconds before retry *number*, from 1."""
        if not self.backoff:
            return 0.0
        try:
            return float(min(self.max_delay, self.backoff * self.factor ** (number - 1)))
        except OverflowError:
            return float(self.max_delay)


def _retry_faults(retry: Retry) -> Iterator[str]:
    if type(retry.count) is not int or not 0 <= retry.count <= MAX_RETRIES:
        yield f"count must be an integer from 0 to {MAX_RETRIES}"
    for name, least in (("backoff", 0.0), ("factor", 1.0), ("max_delay", 0.0)):
        if not _is_number(getattr(retry, name), least):
            yield f"{name} must be a finite number from {least:g}"
    if type(retry.on) is not tuple or not all(type(each) is str and CODE.fullmatch(each) for each in retry.on):
        yield f"on must be a list of codes such as tool.failed or llm.*, or {LATER}"


def _is_number(value: object, least: float) -> bool:
    return type(value) in (int, float) and least <= value <= float_info.max  # type: ignore[operator]


@attrs.frozen(kw_only=True)
class Node:
    """One call of a plan.

    Attributes:
        name: The name in references and traces.
        tool: The name of its tool, in any spelling.
        inputs: The arguments by name: plain values whose strings may contain references, see `references`.
        depends_on: Nodes that must end first. Nodes that it refers to need not be listed.
        when: A condition, see `conditions`. If it is false, the node is skipped.
        map: A list, or a reference to one. The node runs once for each item, ``${item}`` in its inputs, and its result
            is
            the list of results.
        retry: When it is retried.
        timeout: Maximum seconds of each attempt.
        on_fail: ``halt``: no further node starts, and the plan fails. ``continue``: the other nodes go on.
        rerun: Whether it may run again if a process died during the call, although its tool is not idempotent.
        description: Its purpose.
        needs: The nodes that must end first, without duplicates: *depends_on*, then those that it refers to.
        references: Each reference in it with its path.
        takes_trace: Whether it refers to ``trace``.
        arguments: The parsed inputs.
        condition: The parsed condition.
        items: The parsed *map*.

    Raises:
        SpecError: With every problem.
    """

    name: str
    tool: str
    inputs: Mapping[str, Any] = attrs.field(factory=dict, converter=private_copy)
    depends_on: tuple[str, ...] = ()
    when: Any = attrs.field(default=None, converter=private_copy)
    map: Any = attrs.field(default=None, converter=private_copy)
    retry: Retry = Retry()
    timeout: float | None = None
    on_fail: OnFail = "halt"
    rerun: bool = False
    description: str = ""
    needs: tuple[str, ...] = attrs.field(init=False, eq=False, repr=False)
    references: tuple[tuple[str, Reference], ...] = attrs.field(init=False, eq=False, repr=False)
    takes_trace: bool = attrs.field(init=False, eq=False, repr=False)
    arguments: Template = attrs.field(init=False, eq=False, repr=False)
    condition: Condition | None = attrs.field(init=False, eq=False, repr=False)
    items: Template | None = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        faults = list(_node_faults(self))
        set_field = object.__setattr__
        set_field(self, "arguments", Template.of(self.inputs, "inputs", faults))
        set_field(self, "condition", None if self.when is None else Condition.of(self.when, "when", faults))
        set_field(self, "items", None if self.map is None else Template.of(self.map, "map", faults))
        faults.extend(_item_faults(self))
        if faults:
            raise SpecError(f"node {quote_untrusted(str(self.name))}", faults)
        further = [part.references for part in (self.condition, self.items) if part is not None]
        set_field(self, "references", tuple(chain(self.arguments.references, *further)))
        named = (reference.root for _, reference in self.references if reference.root not in RESERVED)
        condition_nodes = () if self.condition is None else self.condition.nodes
        set_field(self, "takes_trace", any(reference.root == "trace" for _, reference in self.references))
        set_field(self, "needs", tuple(dict.fromkeys(chain(self.depends_on, named, condition_nodes))))


def _node_faults(node: Node) -> Iterator[str]:
    if type(node.name) is not str or not NAME.fullmatch(node.name) or node.name in RESERVED:
        words = ", ".join(sorted(RESERVED))
        yield f"name must be a letter or _, then letters, digits, _ and -, at most 64, and none of {words}"
    if type(node.tool) is not str or not node.tool:
        yield "tool must be the name of a tool"
    if not isinstance(node.inputs, Mapping) or not all(type(name) is str for name in node.inputs):
        yield "inputs must be values by name"
    if type(node.depends_on) is not tuple or not all(type(name) is str for name in node.depends_on):
        yield "depends_on must be a list of names of nodes"
    if type(node.retry) is not Retry:
        yield "retry must be a Retry"
    if node.timeout is not None and (not _is_number(node.timeout, 0) or node.timeout == 0):
        yield "timeout must be a positive, finite number of seconds"
    if node.on_fail not in ("halt", "continue"):
        yield "on_fail must be halt or continue"
    if type(node.rerun) is not bool:
        yield "rerun must be true or false"
    if type(node.description) is not str:
        yield "description must be a string"


def _item_faults(node: Node) -> Iterator[str]:
    """Yield the uses of ``item`` and ``index`` outside the inputs of a node with *map*."""
    places = [] if node.map is not None else [*node.arguments.references]
    for part in (node.condition, node.items):
        places += [] if part is None else part.references
    for where, reference in places:
        if reference.root in ("item", "index"):
            yield f"{where}: {reference.root} is only available in the inputs of a node with map"


NODE_FIELDS: Final = tuple(
    field.name for field in attrs.fields(Node) if field.init and field.name not in ("retry", "timeout")
)
"""The fields of a node, besides its times, that count for the digest."""


@attrs.frozen(kw_only=True)
class Plan:
    """A graph of tool calls, ordered by their references.

    Attributes:
        nodes: The calls, in the order in which they are written.
        name: Its name.
        description: Its purpose.
        inputs: Its inputs, coerced like the arguments of a tool; ``${input.NAME}`` in a node.
        output: Its output: a plain value with references. By default, the results by name of the nodes that no other
            node needs, or the result itself if there is one such node.
        synthesis: A question for a model at the end, with the trace in front of it; ``""`` asks none.

    Raises:
        SpecError: With every problem: duplicate names, references to unknown nodes, and cycles.
    """

    nodes: tuple[Node, ...]
    name: str = ""
    description: str = ""
    inputs: tuple[ArgSpec, ...] = ()
    output: Any = attrs.field(default=None, converter=private_copy)
    synthesis: str = ""
    answer: Template | None = attrs.field(init=False, eq=False, repr=False)
    signature: ToolSpec = attrs.field(init=False, eq=False, repr=False)
    _by_name: Mapping[str, Node] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        faults: list[str] = []
        object.__setattr__(self, "answer", None if self.output is None else Template.of(self.output, "output", faults))
        object.__setattr__(self, "_by_name", {node.name: node for node in self.nodes})
        try:
            object.__setattr__(self, "signature", ToolSpec("inputs", "plan", self.inputs))
        except SpecError as error:
            faults.extend(f"inputs: {problem}" for problem in error.problems)
        faults.extend(_plan_faults(self))
        if faults:
            raise SpecError(self.subject, faults)

    @property
    def subject(self) -> str:
        """The name of the plan in errors."""
        return f"plan {quote_untrusted(self.name)}" if self.name else "plan"

    def __getitem__(self, name: str) -> Node:
        """Return the node called *name*, or raise a KeyError."""
        return self._by_name[name]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan in hexadecimal digits; equal plans have the same digest, however they are written."""
        nodes = [(*(getattr(node, name) for name in NODE_FIELDS), _times(node)) for node in self.nodes]
        inputs = spec_to_data(self.signature)
        whole = [self.name, self.description, inputs, self.output, self.synthesis, nodes]
        return hashlib.sha256(json.dumps(whole, sort_keys=True, default=to_plain).encode()).hexdigest()

    @property
    def tools(self) -> tuple[str, ...]:
        """The canonical names of its tools, without duplicates: what `Session.narrowed` has to allow."""
        return tuple(dict.fromkeys(canonical(node.tool) for node in self.nodes))

    @property
    def ends(self) -> tuple[str, ...]:
        """The nodes that no other node needs."""
        needed = {name for node in self.nodes for name in node.needs}
        return tuple(node.name for node in self.nodes if node.name not in needed)


def nodes_before(plan: Plan, node: Node) -> tuple[str, ...]:
    """Return the nodes that have to end before *node*, in the order of the plan."""
    above: set[str] = set()
    waiting = list(node.needs)
    while waiting:
        name = waiting.pop()
        if name not in above:
            above.add(name)
            waiting.extend(plan[name].needs)
    return tuple(each.name for each in plan.nodes if each.name in above)


def _times(node: Node) -> tuple[Any, ...]:
    """Return the retry and timeout settings; seconds are floats, so that 1 and 1.0 have the same digest."""
    retry, timeout = node.retry, node.timeout
    seconds = [
        None if each is None else float(each) for each in (retry.backoff, retry.factor, retry.max_delay, timeout)
    ]
    return (retry.count, retry.on, seconds)


def _plan_faults(plan: Plan) -> Iterator[str]:
    if not plan.nodes:
        yield "nodes: must have at least one node"
    if len(plan.nodes) > MAX_NODES:
        yield f"nodes: must have at most {MAX_NODES} nodes"
    seen: set[str] = set()
    for node in plan.nodes:
        if node.name in seen:
            yield f"nodes.{node.name}: the name is used twice"
        seen.add(node.name)
    dangling = list(_dangling(plan, seen))
    yield from dangling
    if not dangling:
        yield from _cycles(plan)


def _dangling(plan: Plan, known: set[str]) -> Iterator[str]:
    input_names = {arg.name for arg in plan.inputs}
    for node in plan.nodes:
        said = set()
        for where, reference in node.references:
            said |= {reference.root} - RESERVED
            yield from _lost(f"nodes.{node.name}.{where}", reference, known, input_names)
        for name in node.needs:
            if name not in known and name not in said:
                yield f"nodes.{node.name}: needs the unknown node {quote_untrusted(name)}"
    for where, reference in () if plan.answer is None else plan.answer.references:
        if reference.root in ("item", "index"):
            yield f"{where}: {reference.root} is only available in the inputs of a node with map"
        else:
            yield from _lost(where, reference, known, input_names)


def _lost(where: str, reference: Reference, known: set[str], input_names: set[str]) -> Iterator[str]:
    if reference.root == INPUT:
        if reference.path and reference.path[0] not in input_names:
            yield f"{where}: the plan has no input {quote_untrusted(str(reference.path[0]))}"
    elif reference.root not in RESERVED and reference.root not in known:
        yield f"{where}: unknown node {quote_untrusted(reference.root)}"


def _cycles(plan: Plan) -> Iterator[str]:
    """Yield each cycle as a path that leads back to its start; no node is in two of them."""
    ended: set[str] = set()
    for node in plan.nodes:
        path = {} if node.name in ended else {node.name: iter(node.needs)}
        while path:
            name, needs = next(reversed(path.items()))
            above = next((each for each in needs if each not in ended), None)
            if above in path:
                knot = [name]
                while path.popitem()[0] != above:
                    knot.append(next(reversed(path)))
                knot.reverse()
                yield f"nodes.{above}: depends on itself: {' < '.join((*knot, above))}"
                ended.update(knot)
            elif above is None:
                ended.add(name)
                del path[name]
            else:
                path[above] = iter(plan[above].needs)
