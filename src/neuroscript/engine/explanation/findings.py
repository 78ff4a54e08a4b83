"""Findings about a policy: rules that have no effect, and tools that can never run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Final

import attrs

from neuroscript.engine.engine import Engine
from neuroscript.engine.explanation.tool_sources import ToolSource, source_of
from neuroscript.engine.explanation.unused_flows import unused_flows
from neuroscript.io.near_names import did_you_mean
from neuroscript.policy.capabilities import Grant, parts
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.policy.scopes import is_exact_tool
from neuroscript.policy.templates import may_cover, repeated_names
from neuroscript.tools.tool import ToolImplementation

if TYPE_CHECKING:
    from neuroscript.engine.explanation.isolation import IsolatedTool

Tools = Mapping[str, ToolImplementation]

MAX_COVERED: Final = 10_000
"""Maximum number of pairs of a grant and a need that are cached."""


@attrs.frozen
class UnusedRule:
    """A rule that has no effect.

    Attributes:
        where: The field that contains it, such as ``deny``.
        rule: The rule.
        text: The reason.
    """

    where: str
    rule: str
    text: str


@attrs.frozen
class UnusableTool:
    """A tool that can never run.

    Attributes:
        tool: Its canonical name.
        code: The error code of every call, or ``""`` if a limit refuses it.
        rule: The rule that decides.
        need: The capability that is never granted, or ``""``.
        text: The reason.
        remedy: What would permit it, or ``""``.
    """

    tool: str
    code: str
    rule: str
    need: str
    text: str
    remedy: str = ""


@attrs.frozen
class PolicyReport:
    """The findings about a policy.

    Attributes:
        tools: The number of tools.
        unused_rules: The rules without effect.
        unusable_tools: The tools that can never run.
        isolated_tools: The tools that run in worker processes.
    """

    tools: int
    unused_rules: tuple[UnusedRule, ...]
    unusable_tools: tuple[UnusableTool, ...]
    isolated_tools: tuple[IsolatedTool, ...] = ()


def check_engine(engine: Engine) -> PolicyReport:
    """Return the findings about the policy of an engine, with its tools."""
    sources = {name: source_of(engine, name) for name in engine.tools} if engine.policy.isolates else {}
    return check_policy(engine.policy, engine.tools, engine.aliases, sources)


def check_policy(
    policy: ExecutionPolicy, tools: Tools, aliases: Mapping[str, str], sources: Mapping[str, ToolSource]
) -> PolicyReport:
    """Return the findings about *policy* with these *tools*.

    Args:
        aliases: The canonical name for each alias.
        sources: What provides each tool, if the policy isolates any.
    """
    refusals = (
        find_refusal(policy, tool, [old for old, now in aliases.items() if now == name])
        for name, tool in sorted(tools.items())
    )
    unused_rules = dict.fromkeys(
        (
            *_unmatched(policy, tools, aliases),
            *_unused(policy, tools),
            *_ineffective(policy, tools),
            *(UnusedRule(*each) for each in unused_flows(policy, tools)),
            *_unused_isolation(policy, sources),
        )
    )
    unusable = tuple(each for each in refusals if each is not None)
    return PolicyReport(len(tools), tuple(unused_rules), unusable, _isolated(policy, sources))


def _unused_isolation(policy: ExecutionPolicy, sources: Mapping[str, ToolSource]) -> Iterator[UnusedRule]:
    for isolation in (layer.isolate for layer in policy.layers if layer.isolate is not None):
        from neuroscript.engine.explanation.isolation import unused_isolation

        yield from (UnusedRule(*each) for each in unused_isolation(isolation, sources))


def _isolated(policy: ExecutionPolicy, sources: Mapping[str, ToolSource]) -> tuple[IsolatedTool, ...]:
    if not policy.isolates:
        return ()
    from neuroscript.engine.explanation.isolation import isolated_tools

    return tuple(isolated_tools(policy, sources))


def _unmatched(policy: ExecutionPolicy, tools: Tools, aliases: Mapping[str, str]) -> Iterator[UnusedRule]:
    for layer in policy.layers:
        unmatched = frozenset(layer.unmatched(tools, aliases)) - {"*"}
        for where, rules in _patterns(layer):
            for rule in rules:
                if rule in unmatched:
                    hint = did_you_mean(rule, tools) if is_exact_tool(rule) else ""
                    yield UnusedRule(where, rule, f"matches no tool{hint}")


def _patterns(layer: ExecutionPolicy) -> Iterator[tuple[str, Iterable[str]]]:
    yield from (("allow", layer.allow), ("deny", layer.deny), ("preapproved", layer.preapproved))
    yield "labels", [each.tools for each in layer.labels]
    if layer.limits is not None:
        yield from (("limits.tool_calls", layer.limits.tool_calls), ("limits.rates", layer.limits.rates))


def _unused(policy: ExecutionPolicy, tools: Tools) -> Iterator[UnusedRule]:
    needs = [need for tool in tools.values() for need in tool.policy.capabilities]
    for layer in policy.layers:
        yield from (UnusedRule("grants", str(grant), "no tool needs it") for grant in layer.unused(needs))


def _ineffective(policy: ExecutionPolicy, tools: Tools) -> Iterator[UnusedRule]:
    """Yield the patterns of ``allow`` that match tools, none of which can ever run."""
    for layer in policy.layers:
        running = [name for name, tool in tools.items() if find_refusal(layer, tool) is None]
        for pattern in layer.allow:
            alone = ExecutionPolicy(allow=(pattern,))
            if pattern != "*" and any(map(alone.allowing, tools)) and not any(map(alone.allowing, running)):
                yield UnusedRule("allow", pattern, "matches only tools that can never run")


def find_refusal(policy: ExecutionPolicy, tool: ToolImplementation, old: Iterable[str] = ()) -> UnusableTool | None:
    """Return why no call of a tool can run with any arguments, or None.

    Args:
        old: The aliases of the tool.
    """
    denials = (policy.denial(name, tool.name) for name in old)
    refusal = policy.precheck(tool.name, tool.policy) or next((each for each in denials if each is not None), None)
    if refusal is not None:
        return UnusableTool(tool.name, refusal.code, refusal.rule, refusal.need, refusal.text, refusal.remedy)
    for layer in policy.layers:
        rule = _zero(layer, tool.name)
        if rule:
            return UnusableTool(tool.name, "", rule, "", "is limited to 0 calls")
    for need, layer in product(_needs(tool), policy.layers):
        if not any(can_cover(grant, need) for grant in layer.grants):
            return UnusableTool(
                tool.name, "policy.capability", "grants", need, f"needs {need}, which no grant can cover"
            )
    return None


@lru_cache(maxsize=MAX_COVERED)
def can_cover(grant: Grant, need: str) -> bool:
    """Return what `may_cover` returns, from a cache: many tools have the same needs."""
    return may_cover(grant, need)


def _zero(layer: ExecutionPolicy, name: str) -> str:
    """Return the limit that permits zero calls of a tool, or ``""``."""
    if layer.limits is None:
        return ""
    if layer.limits.calls == 0:
        return "limits.calls"
    return "limits.tool_calls" if layer.limits.tool_calls.get(name) == 0 else ""


def _needs(tool: ToolImplementation) -> Iterator[str]:
    """Yield the needs of every call of a tool; needs from a list are omitted, because the list may be empty."""
    spec = tool.spec
    lists = repeated_names({arg.name: arg for arg in spec.args}, spec.variadic)
    slots = [f"{{{name}{attribute}}}" for name in lists for attribute in ("", ".host")]
    for text in tool.policy.capabilities:
        resource, verbs, scopes = parts(text)
        for verb in verbs:
            if not scopes:
                yield f"{resource}:{verb}"
            for scope in scopes:
                if not any(slot in scope for slot in slots):
                    yield f"{resource}:{verb}:{scope}"
