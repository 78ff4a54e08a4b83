"""Rules about information flow: which labels a call carries, where it sends them, and what happens then.

A label names what data contains (``untrusted``, ``private``), a sink where a call sends its arguments (``outside``,
``money``). Tools declare both, see `ToolPolicy`; hosts can replace what a tool declares.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import attrs

from neuroscript.coercion.parameters import STRING, STRINGS, field_problems, one_of
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.names import canonical
from neuroscript.policy.labels import SINKS, SOURCES, covers, label_problems, sinks_of, sources_of
from neuroscript.policy.scopes import is_tool_pattern, tool_matcher
from neuroscript.policy.tool_policy import as_names, as_optional_names, label_field_problems, unique_values

if TYPE_CHECKING:
    from neuroscript.policy.execution_policy import ExecutionPolicy
    from neuroscript.policy.tool_policy import ToolPolicy

Then = Literal["allow", "ask", "refuse"]
"""What happens to a call whose labels a rule matches."""

STRICTNESS: Final[Mapping[Then, int]] = {"allow": 0, "ask": 1, "refuse": 2}

Tracking = Literal["values", "session"]
"""How labels pass through a model: with text that occurs again, or to every later call of the session."""


@attrs.frozen
class FlowRule:
    """A rule about what may be sent where.

    Attributes:
        labels: What the call carries, such as ``untrusted``; one of them is enough. ``private`` means ``private:mail``
            too, ``*`` any label, and ``untrusted+private`` both at once.
        to: The sinks of the tool, such as ``outside``; ``*`` means any sink.
        then: Whether the call is refused, needs an approval, or is allowed.
        by: ``"values"`` follows text: an argument carries the labels of the results in which its text occurs.
            ``"session"`` assumes that every call carries the labels of everything that the session has read.

    Raises:
        SpecError: If a field is invalid. The error lists every problem.
    """

    labels: tuple[str, ...] = attrs.field(converter=as_names)
    to: tuple[str, ...] = attrs.field(converter=as_names)
    then: Then = "ask"
    by: Tracking = "values"

    def __attrs_post_init__(self) -> None:
        faults = list(_rule_problems(self))
        if faults:
            raise SpecError("flow rule", faults)

    def matched(self, labels: Collection[str], sink: str) -> tuple[tuple[str, ...], ...]:
        """Return the labels, and the combinations of *labels*, that this rule matches for a sink."""
        if not any(covers(each, sink) for each in self.to):
            return ()
        found: list[tuple[str, ...]] = []
        for pattern in self.labels:
            parts = [[each for each in labels if covers(part, each)] for part in pattern.split("+")]
            found.extend(product(*parts))
        return tuple(found)

    def __str__(self) -> str:
        how = "" if self.by == "values" else ", by session"
        return f"{', '.join(self.labels)} -> {', '.join(self.to)}: {self.then}{how}"


def _rule_problems(rule: FlowRule) -> Iterator[str]:
    yield from field_problems(rule, then=one_of("allow", "ask", "refuse"), by=one_of("values", "session"))
    for name, known in (("labels", SOURCES), ("to", SINKS)):
        given = getattr(rule, name)
        if not STRINGS.holds(given):
            yield from STRINGS.problems(name, given)
            continue
        words = unique_values(given)
        object.__setattr__(rule, name, words)
        if not words:
            yield f"{name} is empty; write '*' for all"
        joined = (part for word in words for part in (word.split("+") if name == "labels" else [word]))
        yield from label_problems(name, (part for part in joined if part != "*"), known)


FLOW_PROFILES: Final[Mapping[str, tuple[FlowRule, ...]]] = {
    "untrusted-text": (FlowRule(("untrusted",), ("*",)),),
    "lethal-trifecta": (FlowRule(("untrusted+private",), ("outside", "public"), by="session"),),
    "rule-of-two": (FlowRule(("untrusted+private",), ("*",), by="session"),),
}
"""Rules by name. In a policy, the name stands for the rules.

``untrusted-text`` asks before text from outsiders is sent anywhere. ``lethal-trifecta`` asks before a session that has
read both private and untrusted data sends anything outside. ``rule-of-two`` asks before such a session changes
anything at all.
"""


@attrs.frozen
class FlowLabels:
    """What a host declares about the tools that a pattern matches, in place of what they declare themselves.

    Attributes:
        tools: A pattern over canonical names, such as ``mail.*``.
        sources: What their results carry; None leaves it as declared.
        sinks: Where their calls send their arguments; None leaves it as declared.
        declassifies: The labels that their results no longer carry.

    Raises:
        SpecError: If a field is invalid. The error lists every problem.
    """

    tools: str
    sources: tuple[str, ...] | None = attrs.field(default=None, kw_only=True, converter=as_optional_names)
    sinks: tuple[str, ...] | None = attrs.field(default=None, kw_only=True, converter=as_optional_names)
    declassifies: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=as_names)

    def __attrs_post_init__(self) -> None:
        faults = list(_labels_problems(self))
        if faults:
            raise SpecError("flow labels", faults)


def _labels_problems(labels: FlowLabels) -> Iterator[str]:
    if type(labels.tools) is not str:
        yield from STRING.problems("tools", labels.tools)
    elif not is_tool_pattern(canonical(labels.tools)):
        yield f"tools: {quote_untrusted(labels.tools)} is not a valid pattern; use a name, or a pattern such as mail.*"
    else:
        object.__setattr__(labels, "tools", canonical(labels.tools))
    yield from label_field_problems(labels)


class ToolFlow(NamedTuple):
    """The labels of one tool under a policy.

    Attributes:
        sources: What its results carry.
        sinks: Where its calls send their arguments.
        declassifies: The labels that its results no longer carry.
    """

    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    declassifies: tuple[str, ...]


def flow_of(policy: ExecutionPolicy, tool: str, declared: ToolPolicy) -> ToolFlow:
    """Return the labels of a tool under a policy.

    An enclosed policy can add sources and sinks to those of the policy that encloses it, but remove none.

    Args:
        tool: Its canonical name.
        declared: What it declares.
    """
    trusted = all(layer.trusted for layer in policy.layers)
    flow = ToolFlow(sources_of(declared), sinks_of(declared), declared.declassifies if trusted else ())
    for depth, layer in enumerate(reversed(policy.layers)):
        own = labels_for(layer, tool)
        if own is None:
            continue
        sources = flow.sources if own.sources is None else own.sources
        sinks = flow.sinks if own.sinks is None else own.sinks
        if depth == 0:
            flow = ToolFlow(sources, sinks, (*flow.declassifies, *own.declassifies))
        else:
            flow = ToolFlow(
                unique_values((*flow.sources, *sources)), unique_values((*flow.sinks, *sinks)), flow.declassifies
            )
    return flow


def labels_for(layer: ExecutionPolicy, tool: str) -> FlowLabels | None:
    """Return what one policy declares about a tool, or None."""
    return next((each for each in layer.labels if tool_matcher(each.tools)(tool)), None)


def has_rules(policy: ExecutionPolicy, by: Tracking) -> bool:
    """Return whether any layer of a policy has rules that follow labels in this way."""
    return any(rule.by == by for layer in policy.layers for rule in layer.flow)


class Flow(NamedTuple):
    """What a rule says about one call.

    Attributes:
        then: ``"ask"`` or ``"refuse"``.
        labels: The labels of the call that the rule matches.
        sink: Where the call would send them.
        rule: The rule.
        layer: The index of the layer of the policy that has the rule; 0 is the innermost.
    """

    then: Then
    labels: tuple[str, ...]
    sink: str
    rule: FlowRule
    layer: int


def find_flows(
    layers: Sequence[ExecutionPolicy], sinks: Iterable[str], labels: Collection[str], of_session: Collection[str]
) -> tuple[Flow, ...]:
    """Return what refuses a call or requires its approval, the strictest first; nothing if it may run unasked.

    Within one policy, the first rule that matches a label and a sink decides about them; every policy that encloses
    another one decides too. A rule about several labels at once decides about their combination, and not about each of
    them, so that a further label never makes the decision less strict.

    Args:
        sinks: Where the call sends its arguments.
        labels: The labels that the call carries.
        of_session: These, and the labels of everything that the session has read.
    """
    found: list[Flow] = []
    for index, layer in enumerate(layers):
        for sink in sinks:
            decided: set[frozenset[str]] = set()
            for rule in layer.flow:
                matched = rule.matched(labels if rule.by == "values" else of_session, sink)
                new = [each for each in matched if {*each} not in decided and not _singles(each) <= decided]
                decided.update(map(frozenset, new))
                if new and rule.then != "allow":
                    named = tuple(dict.fromkeys(chain.from_iterable(new)))
                    found.append(Flow(rule.then, named, sink, rule, index))
    return tuple(sorted(found, key=lambda flow: -STRICTNESS[flow.then]))


def _singles(labels: Iterable[str]) -> set[frozenset[str]]:
    return {frozenset((each,)) for each in labels}
