"""Policies in words: a plain sentence for each rule, grouped by what the rules decide."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, Literal

import attrs

from neuroscript.policy.capabilities import Grant
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.policy.flow_rules import FlowLabels, FlowRule
from neuroscript.policy.isolation import Isolation
from neuroscript.policy.labels import SINKS
from neuroscript.policy.limits import Limits
from neuroscript.policy.scopes import is_exact_tool, tool_matcher

Group = Literal["run", "approval", "refused", "grants", "limits", "flow", "isolation"]

TITLES: Final[Mapping[Group, str]] = {
    "run": "May run",
    "approval": "Needs an approval",
    "refused": "Refused",
    "grants": "Grants",
    "limits": "Limits",
    "flow": "Information flow",
    "isolation": "Isolation",
}
"""The heading of each group, in the order of a page."""

ACTIONS: Final[Mapping[tuple[str, str], str]] = {
    ("fs", "read"): "read files",
    ("fs", "write"): "write files",
    ("fs", "delete"): "delete files",
    ("net", "read"): "read from the network",
    ("net", "write"): "send to the network",
    ("env", "read"): "read environment variables",
    ("shell", "exec"): "run programs",
    ("model", "use"): "use models",
    ("secret", "read"): "read secrets",
    ("crypto", "sign"): "sign with keys",
    ("mcp", "read"): "read from MCP servers",
}
"""What a verb of a resource means."""

PREPOSITIONS: Final[Mapping[str, str]] = {"net": "at", "env": "named", "model": "named", "secret": "named", "mcp": "at"}
"""The word before the scopes of a resource; others use ``matching``."""

LIMITS: Final[Mapping[str, str]] = {
    "calls": "At most {} calls in a session.",
    "depth": "Nested calls may be at most {} deep.",
    "seconds": "A call may take at most {} seconds.",
    "fs_bytes": "Tools may read and write at most {} bytes of files in a session.",
    "fs_entries": "Tools may list at most {} directory entries in a session.",
    "net_bytes": "Tools may send and receive at most {} bytes in a session.",
    "net_calls": "Tools may make at most {} network requests in a session.",
    "sleep": "Tools may sleep at most {} seconds in a session.",
    "concurrency": "At most {} calls may run at the same time.",
    "result_bytes": "A result may have at most {} bytes.",
    "items": "A stream may have at most {} items.",
    "max_identical_calls": "The same call may be made at most {} times in a row.",
}
"""The sentence of each limit that is a number."""


@attrs.frozen
class Sentence:
    """One rule of a policy in words.

    Attributes:
        text: The sentence.
        rule: The rule as the policy writes it, such as ``deny: *.delete``; ``""`` for a default.
        tools: The number of tools that its pattern matches, or None if it has no pattern.
        layer: The policy that has the rule: 0 is the innermost, and each further one encloses the one before.
    """

    text: str
    rule: str = ""
    tools: int | None = None
    layer: int = 0


def describe(policy: ExecutionPolicy, tools: Collection[str] = ()) -> dict[Group, tuple[Sentence, ...]]:
    """Return the sentences of each group, for a policy and all policies that enclose it.

    Args:
        tools: The canonical names of the tools, to count those that a pattern matches.
    """
    layers = [*enumerate(policy.layers)]
    return {
        group: tuple(
            attrs.evolve(sentence, layer=index) for index, layer in layers for sentence in SECTIONS[group](layer, tools)
        )
        for group in TITLES
    }


def _run(layer: ExecutionPolicy, tools: Collection[str]) -> Iterator[Sentence]:
    if "*" in layer.allow:
        yield Sentence("Every tool may run unless another rule refuses it.", "allow: *", len(tools))
    elif not layer.allow:
        yield Sentence("No tool may run.", "allow is empty")
    else:
        for pattern in layer.allow:
            yield _of_pattern("{} may run.", "allow", pattern, tools)
    if layer.trusted:
        yield Sentence("Tools that require a trusted host may run.", "trusted")


def _approval(layer: ExecutionPolicy, tools: Collection[str]) -> Iterator[Sentence]:
    if layer.otherwise == "ask":
        yield Sentence("Each call of a tool that no pattern allows needs an approval.", "otherwise: ask")
    if layer.approver is not None:
        yield Sentence("Each call of a tool that requires an approval is sent to the approver.", "approver")
    for name in layer.preapproved:
        yield _of_pattern("{} runs without an approval, even if it requires one.", "preapproved", name, tools)


def _refused(layer: ExecutionPolicy, tools: Collection[str]) -> Iterator[Sentence]:
    for pattern in layer.deny:
        yield _of_pattern("{} may not run, even if another pattern allows it.", "deny", pattern, tools)
    if "*" not in layer.allow and layer.otherwise == "refuse":
        yield Sentence("Tools that no pattern allows may not run.", "allow")
    if not layer.trusted:
        yield Sentence("Tools that require a trusted host may not run.")
    if layer.approver is None and layer.within is None:
        yield Sentence("Tools that require an approval and are not preapproved may not run: there is no approver.")


def _of_pattern(text: str, field: str, pattern: str, tools: Collection[str]) -> Sentence:
    """Return the sentence of a pattern of tools."""
    matches = tool_matcher(pattern)
    subject = pattern if is_exact_tool(pattern) else f"Each tool that matches {pattern}"
    return Sentence(text.format(subject), f"{field}: {pattern}", sum(map(matches, tools)))


def _grants(layer: ExecutionPolicy, tools: Collection[str]) -> Iterator[Sentence]:
    if not layer.grants:
        yield Sentence("Tools may not use files, the network or anything else that has to be granted.")
    yield from (Sentence(f"Tools may {_permitted(grant)}.", f"grants: {grant}") for grant in layer.grants)


def _permitted(grant: Grant) -> str:
    """Return what a grant permits.

    >>> _permitted(Grant.parse("fs:read,write:data/**"))
    'read files and write files matching data/**'
    """
    where = " or ".join(each for each in grant.scopes if each != "*")
    scope = f" {PREPOSITIONS.get(grant.resource, 'matching')} {where}" if where and "*" not in grant.scopes else ""
    if grant.resource == "*":
        verbs = "do anything" if "*" in grant.verbs else f"{_joined(grant.verbs)}"
        return f"{verbs} with every resource{scope}"
    if "*" in grant.verbs:
        known = [text for (resource, _), text in ACTIONS.items() if resource == grant.resource]
        return f"{_joined(known) or f'do anything with {grant.resource}'}{scope}"
    actions = [ACTIONS.get((grant.resource, verb), f"{verb} {grant.resource}") for verb in grant.verbs]
    return f"{_joined(actions)}{scope}"


def _joined(words: Collection[str]) -> str:
    """Return words as a list in a sentence."""
    *first, last = words or ("",)
    return f"{', '.join(first)} and {last}" if first else last


def _limits(layer: ExecutionPolicy, tools: Collection[str]) -> Iterator[Sentence]:
    limits = Limits() if layer.limits is None else layer.limits
    for name, text in LIMITS.items():
        value = getattr(limits, name)
        if value is not None:
            is_default = layer.limits is None or value == getattr(Limits(), name)
            yield Sentence(text.format(value), "" if is_default else f"limits.{name}: {value}")
    for tool, most in limits.tool_calls.items():
        text = f"{tool} may be called at most {most} times in a session." if most else f"{tool} may not be called."
        yield Sentence(text, f"limits.tool_calls: {tool} = {most}")
    for pattern, rate in limits.rates.items():
        count, _, period = rate.partition("/")
        subject = pattern if is_exact_tool(pattern) else f"All tools that match {pattern} together"
        text = f"{subject} may be called at most {count} times in any {period}."
        yield Sentence(text, f"limits.rates: {pattern} = {rate}", sum(map(tool_matcher(pattern), tools)))
    for name, what in (("money", "All calls"), ("money_per_call", "A call")):
        for currency, amount in getattr(limits, name).items():
            yield Sentence(f"{what} may cost at most {amount} {currency}.", f"limits.{name}: {currency} = {amount}")


def _flow(layer: ExecutionPolicy, tools: Collection[str]) -> Iterator[Sentence]:
    yield from (Sentence(_flow_text(rule), f"flow: {rule}") for rule in layer.flow)
    yield from (_labels(each, tools) for each in layer.labels)
    if layer.trust_textless:
        yield Sentence("Results that cannot contain text carry no labels.", "trust_textless")


def _flow_text(rule: FlowRule) -> str:
    """Return a rule about information flow in words.

    >>> _flow_text(FlowRule(("untrusted+private",), ("public",), "refuse", by="session"))
    'After a session has read data that is untrusted and private, a call that is published is refused.'
    """
    carried = " or ".join("labelled in any way" if each == "*" else each.replace("+", " and ") for each in rule.labels)
    sinks = " or ".join("goes anywhere" if each == "*" else SINKS.get(each, f"goes to {each}") for each in rule.to)
    then = {"ask": "needs an approval", "refuse": "is refused", "allow": "is permitted"}[rule.then]
    if rule.by == "session":
        return f"After a session has read data that is {carried}, a call that {sinks} {then}."
    return f"A call whose arguments contain data that is {carried}, and that {sinks}, {then}."


def _labels(labels: FlowLabels, tools: Collection[str]) -> Sentence:
    parts = [
        f"{text} {', '.join(values) or 'nothing'}"
        for text, values in (("its results carry", labels.sources), ("it sends its arguments to", labels.sinks))
        if values is not None
    ]
    if labels.declassifies:
        parts.append(f"it removes {', '.join(labels.declassifies)}")
    return _of_pattern(f"{{}}: {_escaped('; '.join(parts))}.", "labels", labels.tools, tools)


def _escaped(text: str) -> str:
    """Return text for `str.format`."""
    return text.replace("{", "{{").replace("}", "}}")


def _isolation(layer: ExecutionPolicy, tools: Collection[str]) -> Iterator[Sentence]:
    isolation = layer.isolate
    if isolation is None:
        if layer.within is None:
            yield Sentence("All tools run in the process of the host.")
        return
    for pattern in isolation.tools:
        yield _of_pattern("{} runs in a worker process.", "isolation.tools", pattern, tools)
    for pattern in isolation.exclude:
        yield _of_pattern("{} runs in the process of the host.", "isolation.exclude", pattern, tools)
    for pattern in isolation.plugins:
        text = f"Only worker processes import the code of plugins that match {pattern}."
        yield Sentence(text, f"isolation.plugins: {pattern}")
    for pattern in isolation.network:
        yield _of_pattern("{} keeps the network in its worker process.", "isolation.network", pattern, tools)
    yield from _worker_settings(isolation)


def _worker_settings(isolation: Isolation) -> Iterator[Sentence]:
    if isolation.require:
        layers = ", ".join(isolation.require)
        yield Sentence(f"A worker starts only if the system provides {layers}.", "isolation.require")
    if not isolation.reuse:
        yield Sentence("Each call starts a new worker process.", "isolation.reuse: false")
    if isolation.programs:
        yield Sentence("Programs that tools start are confined like workers.", "isolation.programs")
    cpu = "" if isolation.cpu_seconds is None else f", {isolation.cpu_seconds} seconds of processor time"
    yield Sentence(f"A worker may use {isolation.memory_bytes} bytes of memory{cpu}.", "isolation.memory_bytes")


SECTIONS: Final = {
    "run": _run,
    "approval": _approval,
    "refused": _refused,
    "grants": _grants,
    "limits": _limits,
    "flow": _flow,
    "isolation": _isolation,
}
"""The function that yields the sentences of each group."""
