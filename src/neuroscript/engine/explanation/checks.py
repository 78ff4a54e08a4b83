"""Explanations of calls: the outcome of each check, the rule that decides, and the decision."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Any, Literal

import attrs

from neuroscript.coercion.context import CoercionSettings
from neuroscript.engine.explanation.decisions import decision_text
from neuroscript.engine.explanation.findings import find_refusal
from neuroscript.engine.explanation.tool_sources import ToolSource, isolation_of, isolation_text
from neuroscript.engine.session import Session
from neuroscript.errors import ArgumentError
from neuroscript.policy.capabilities import Capability, Grant, split_need
from neuroscript.policy.execution_policy import Decision, ExecutionPolicy
from neuroscript.policy.flow_rules import FlowRule, ToolFlow, flow_of, labels_for
from neuroscript.policy.labels import covers
from neuroscript.policy.limits import Limits
from neuroscript.policy.refusals import filled_text
from neuroscript.policy.templates import may_cover, named_in
from neuroscript.runtime.interfaces import ToolCall
from neuroscript.spec.binding import bind_arguments, parse_arguments
from neuroscript.tools.tool import ToolImplementation

Outcome = Literal["passes", "refuses", "asks", "depends"]
"""The outcome of a check; ``depends`` means on missing arguments, or for a flow rule on what the session has read."""

Values = tuple[Any, ...] | ArgumentError | None
"""The converted arguments of a call, or the error in them, or None without a call."""


@attrs.frozen
class Check:
    """The outcome of one check for a call, independent of the other checks.

    Attributes:
        name: The name of the check.
        outcome: passes, refuses, asks, or depends, see `Outcome`.
        rule: The rule that decides: a pattern, grants or a keyword.
        text: The reason.
    """

    name: str
    outcome: Outcome
    rule: str = ""
    text: str = ""


@attrs.frozen
class Explanation:
    """Why a call may run or is refused.

    Attributes:
        decision: The decision; without arguments, the one that no arguments can change.
        checks: The outcome of each check, in the order of the call pipeline.
        has_call: Whether a call is explained; otherwise the tool with any arguments.
    """

    decision: Decision
    checks: tuple[Check, ...]
    has_call: bool

    @property
    def text(self) -> str:
        """The outcome as a sentence."""
        decision = self.decision
        if self.has_call:
            outcome = decision_text(decision)
        elif not decision.allowed:
            outcome = f"{decision.tool}: can never run: {decision.text}"
        else:
            asks = "; each call asks for approval" if decision.needs_approval else ""
            outcome = f"{decision.tool}: may run, depending on its arguments{asks}"
        if decision.allowed and any(check.name == "flow" and check.outcome == "depends" for check in self.checks):
            return f"{outcome}; flow rules depend on what the session has read"
        return outcome


def explain(
    session: Session,
    tool: ToolImplementation,
    source: ToolSource,
    call: ToolCall | ArgumentError | None,
    *,
    old: Collection[str] = (),
) -> Explanation:
    """Return the outcome of each check for a call in a session, and the decision; nothing runs.

    Args:
        source: What provides the tool.
        call: The call; or the error in its arguments, if they cannot be read; or None to explain the tool itself.
        old: The aliases of the tool.
    """
    decision = _decision(session, tool, call, old)
    values = _values(tool, call, session._shared.coercion)
    checks = explain_checks(session.policy, tool, source, values, decision)
    if session.secrets is not None:
        checks = (attrs.evolve(each, text=str(session._without_secrets(each.text))) for each in checks)
    return Explanation(decision, tuple(checks), call is not None)


def _decision(
    session: Session, tool: ToolImplementation, call: ToolCall | ArgumentError | None, old: Collection[str]
) -> Decision:
    if isinstance(call, ToolCall):
        return session.check((call,))[0]
    policy = session.policy
    refused = find_refusal(policy, tool, old)
    if refused is not None:
        decision = Decision(tool.name, False, refused.rule, refused.code, refused.need, refused.text, "host")
        return attrs.evolve(decision, remedy=refused.remedy)
    if call is not None:
        return Decision.of(call, tool.name)
    needs_approval = policy.asks(tool.name, tool.policy) and bool(policy.approvers(tool.name, tool.policy))
    return Decision(tool.name, True, rule=policy.allowing(tool.name), needs_approval=needs_approval)


def _values(tool: ToolImplementation, call: ToolCall | ArgumentError | None, coercion: CoercionSettings) -> Values:
    if call is None or isinstance(call, ArgumentError):
        return call
    try:
        arguments = parse_arguments(call.arguments, tool.name, coercion.sizes)
        return bind_arguments(tool.spec, coercion, arguments, by_name=isinstance(arguments, dict))
    except ArgumentError as error:
        return error


def explain_checks(
    policy: ExecutionPolicy, tool: ToolImplementation, source: ToolSource, values: Values, decision: Decision
) -> Iterator[Check]:
    """Yield the outcome of each check, in the order of the call pipeline.

    Args:
        source: What provides the tool.
        decision: The decision about the call, which takes the used part of the limits into account.
    """
    yield Check("exists", "passes", text="the tool exists")
    yield _trust(policy, tool)
    yield _deny(policy, tool)
    yield _allow(policy, tool)
    yield _arguments(values)
    yield from _needs(policy, tool, values)
    yield _approval(policy, tool)
    yield from _flows(policy, tool, decision)
    yield _limits(policy, tool, decision)
    if policy.isolates:
        yield _isolation(policy, tool, source)


def _trust(policy: ExecutionPolicy, tool: ToolImplementation) -> Check:
    if not tool.policy.requires_trust:
        return Check("trust", "passes", text="not required")
    if all(layer.trusted for layer in policy.layers):
        return Check("trust", "passes", "trusted", "required and granted")
    return Check("trust", "refuses", "trust", "requires trust")


def _deny(policy: ExecutionPolicy, tool: ToolImplementation) -> Check:
    patterns = [pattern for layer in policy.layers for pattern in layer.deny]
    matching = next((each for each in patterns if ExecutionPolicy(allow=(each,)).allowing(tool.name)), None)
    if matching is None:
        return Check("deny", "passes", text="no pattern matches it")
    return Check("deny", "refuses", matching, "matches it")


def _allow(policy: ExecutionPolicy, tool: ToolImplementation) -> Check:
    patterns = [layer.allowing(tool.name) for layer in policy.layers]
    if all(patterns):
        return Check("allow", "passes", ", ".join(dict.fromkeys(patterns)), "matches it")
    if any(layer.otherwise == "refuse" for layer in policy.layers if not layer.allowing(tool.name)):
        return Check("allow", "refuses", "allow", "no pattern matches it")
    return Check("allow", "asks", "otherwise", "no pattern matches it")


def _arguments(values: Values) -> Check:
    if values is None:
        return Check("arguments", "depends", text="depends on the arguments")
    if isinstance(values, ArgumentError):
        return Check("arguments", "refuses", "arguments", str(values).removeprefix(f"{values.tool}: "))
    return Check("arguments", "passes", text="the arguments are valid")


def _needs(policy: ExecutionPolicy, tool: ToolImplementation, values: Values) -> Iterator[Check]:
    """Yield a check for each need, with the arguments filled in if there are any."""
    if not tool.templates:
        yield Check("needs", "passes", text="nothing")
    for template in tool.templates:
        if isinstance(values, tuple):
            is_hidden = not tool.spec.secret_names.isdisjoint(named_in(template.text))
            yield from _need_checks(policy, template, values, is_hidden)
        else:
            yield _template(policy, template.text)


def _need_checks(policy: ExecutionPolicy, template: Any, values: Sequence[Any], is_hidden: bool) -> Iterator[Check]:
    try:
        needs: tuple[Capability, ...] = template.fill(values)
    except ArgumentError as error:
        yield Check("needs", "refuses", "arguments", str(error))
        return
    if not needs:
        yield Check("needs", "passes", text=f"nothing (from {template.text})")
    for need in (each for whole in needs for each in split_need(whole)):
        covering = [_first_grant(layer.grants, need) for layer in policy.layers]
        text = f"{filled_text(need, is_hidden=is_hidden)} (from {template.text})"
        if None in covering:
            yield Check("needs", "refuses", "grants", f"{text}, which no grant covers")
        else:
            yield Check("needs", "passes", ", ".join(dict.fromkeys(map(str, covering))), text)


def _first_grant(grants: Sequence[Grant], need: Capability) -> Grant | None:
    return next((grant for grant in grants if grant.covers(need)), None)


def _template(policy: ExecutionPolicy, text: str) -> Check:
    covering = [[str(grant) for grant in layer.grants if may_cover(grant, text)] for layer in policy.layers]
    if not all(covering):
        return Check("needs", "refuses", "grants", f"{text}, which no grant can cover")
    grants = dict.fromkeys(grant for layer in covering for grant in layer)
    return Check("needs", "depends", ", ".join(grants), f"{text}, which may be covered")


def _approval(policy: ExecutionPolicy, tool: ToolImplementation) -> Check:
    if not policy.asks(tool.name, tool.policy):
        return Check("approval", "passes", text="not required")
    approvers = policy.approvers(tool.name, tool.policy)
    if approvers is None:
        return Check("approval", "refuses", "approval", "required for each call, but there is no approver")
    if approvers:
        return Check("approval", "asks", "approval", "required for each call")
    return Check("approval", "passes", "preapproved", "preapproved")


def _flows(policy: ExecutionPolicy, tool: ToolImplementation, decision: Decision) -> Iterator[Check]:
    """Yield what a tool reads and where it sends, and a check for each rule about information flow."""
    flow = flow_of(policy, tool.name, tool.policy)
    removed = f"; it removes {', '.join(flow.declassifies)}" if flow.declassifies else ""
    sources = ", ".join(flow.sources) or "no labels"
    sinks = f"to {', '.join(flow.sinks)}" if flow.sinks else "nowhere"
    yield Check("sources", "passes", _origin(policy, tool, "sources"), f"its results carry {sources}{removed}")
    yield Check("sinks", "passes", _origin(policy, tool, "sinks"), f"it sends its arguments {sinks}")
    rules = [rule for layer in policy.layers for rule in layer.flow]
    if decision.code == "policy.flow":
        yield Check("flow", "refuses", decision.rule, decision.text)
    elif decision.flows:
        yield from (Check("flow", "asks", text=text) for text in decision.flows)
    elif rules:
        yield from (_rule(rule, flow) for rule in dict.fromkeys(rules))
    else:
        yield Check("flow", "passes", text="no rules")


def _origin(policy: ExecutionPolicy, tool: ToolImplementation, field: str) -> str:
    """Return where the sources or the sinks of a tool come from: patterns of the host, or the tool itself."""
    declared = "effects" if tool.policy.effects else "no effects"
    found = {"declared" if getattr(tool.policy, field) is not None else declared: None}
    for depth, layer in enumerate(reversed(policy.layers)):
        own = labels_for(layer, tool.name)
        if own is not None and getattr(own, field) is not None:
            found = {**found, own.tools: None} if depth else {own.tools: None}
    return ", ".join(found)


def _rule(rule: FlowRule, flow: ToolFlow) -> Check:
    if not any(covers(each, sink) for each in rule.to for sink in flow.sinks):
        return Check("flow", "passes", str(rule), "it sends nothing there")
    carrier = "the call carries" if rule.by == "values" else "the session has read"
    return Check("flow", "depends", str(rule), f"{rule.then}s if {carrier} such data")


def _limits(policy: ExecutionPolicy, tool: ToolImplementation, decision: Decision) -> Check:
    counting = [text for layer in policy.layers if layer.limits for text in _counting(layer.limits, tool.name)]
    text = ", ".join(dict.fromkeys(counting)) or "none"
    if decision.rule.startswith("limits"):
        return Check("limits", "refuses", decision.rule, f"{text}: {decision.text}")
    return Check("limits", "passes", text=text)


def _counting(limits: Limits, name: str) -> Iterator[str]:
    """Yield the limits that apply to a tool."""
    if name in limits.tool_calls:
        yield f"tool_calls {limits.tool_calls[name]}"
    yield from (f"rates {pattern} {limits.rates[pattern]}" for pattern in limits.rates_of(name))
    for each, value in attrs.asdict(limits, recurse=False).items():
        if each in ("money", "money_per_call"):
            yield from (f"{each} {currency} {amount}" for currency, amount in value.items())
        elif each not in ("tool_calls", "rates") and value is not None:
            yield f"{each} {value}"


def _isolation(policy: ExecutionPolicy, tool: ToolImplementation, source: ToolSource) -> Check:
    """Return which process runs and imports a tool."""
    from neuroscript.engine.explanation.isolation import excluding_patterns, isolating_patterns

    isolations = [layer.isolate for layer in policy.layers if layer.isolate is not None]
    found = isolation_of(policy, tool.name, source)
    select = excluding_patterns if found is None else isolating_patterns
    patterns = dict.fromkeys(chain.from_iterable(select(each, tool.name, source) for each in isolations))
    text = isolation_text(found)
    if found is None and patterns:
        text = f"is excluded, so it {text}"
    if found is None and policy.program_isolation(tool.name) and _starts_programs(tool):
        text = f"{text}, and the programs that it starts are confined"
    return Check("isolation", "passes", ", ".join(patterns), text)


def _starts_programs(tool: ToolImplementation) -> bool:
    return any(need.startswith("shell:") for need in tool.policy.capabilities)
