"""Rules about information flow, and labels of tools, that have no effect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from neuroscript.io.near_names import did_you_mean
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.policy.flow_rules import FlowLabels, FlowRule, flow_of
from neuroscript.policy.labels import covers, is_covered
from neuroscript.policy.scopes import tool_matcher
from neuroscript.tools.tool import ToolImplementation

Tools = Mapping[str, ToolImplementation]


def unused_flows(policy: ExecutionPolicy, tools: Tools) -> Iterator[tuple[str, str, str]]:
    """Yield the field, the rule and the reason of each rule that can never decide about a call.

    Labels that the host adds to data of its own do not count, because the policy does not contain them.
    """
    flows = [flow_of(policy, name, tool.policy) for name, tool in tools.items()]
    sources = {label for flow in flows for label in flow.sources}
    sinks = {sink for flow in flows for sink in flow.sinks}
    for layer in policy.layers:
        for index, rule in enumerate(layer.flow):
            for reason in _reasons(rule, layer.flow[:index], sources, sinks):
                yield "flow", str(rule), reason
        for index, labels in enumerate(layer.labels):
            if _is_hidden(labels, layer.labels[:index], tools):
                yield "labels", labels.tools, "an earlier pattern matches each of its tools"


def _reasons(
    rule: FlowRule, earlier: Sequence[FlowRule], sources: Collection[str], sinks: Collection[str]
) -> Iterator[str]:
    """Yield why a rule never decides. A label of the host that no tool has is reported in any rule."""
    parts = [part for pattern in rule.labels for part in pattern.split("+")]
    own = [*_unknown("source", parts, sources), *_unknown("sink", rule.to, sinks)]
    if own:
        yield from own
    elif not any(all(_is_known(part, sources) for part in pattern.split("+")) for pattern in rule.labels):
        yield "no tool has such sources"
    elif not any(_is_known(sink, sinks) for sink in rule.to):
        yield "no tool has such sinks"
    elif all(_is_decided(pattern, sink, rule, earlier) for pattern in rule.labels for sink in rule.to):
        yield "earlier rules decide about all of it"


def _unknown(what: str, words: Iterable[str], known: Collection[str]) -> Iterator[str]:
    for word in words:
        if ":" in word and not _is_known(word, known):
            yield f"no tool has the {what} {word}{did_you_mean(word, known)}"


def _is_known(pattern: str, labels: Collection[str]) -> bool:
    return any(covers(pattern, label) for label in labels)


def _is_decided(pattern: str, sink: str, rule: FlowRule, earlier: Sequence[FlowRule]) -> bool:
    """Return whether earlier rules decide about every label that a pattern of a rule matches, for one sink."""
    parts = pattern.split("+")
    deciding = [
        words
        for each in earlier
        if is_covered(sink, each.to) and each.by in ("session", rule.by)
        for words in (alternative.split("+") for alternative in each.labels)
        if all(any(covers(word, part) for part in parts) for word in words)
    ]
    return all(any(is_covered(part, words) for words in deciding) for part in parts)


def _is_hidden(labels: FlowLabels, earlier: Sequence[FlowLabels], tools: Tools) -> bool:
    """Return whether an earlier pattern matches each tool that the pattern of some labels matches."""
    matched = [name for name in tools if tool_matcher(labels.tools)(name)]
    return bool(matched) and all(any(tool_matcher(each.tools)(name) for each in earlier) for name in matched)
