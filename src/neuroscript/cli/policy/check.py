"""``neuroscript policy check``: rules that have no effect, and tools that can never run."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Final

import attrs

from neuroscript.cli.env.choices import file_of
from neuroscript.cli.env.engine import MakeEngine, open_engine
from neuroscript.cli.env.isolation import ToolSource, source_of
from neuroscript.cli.policy.unused_flows import unused_flows
from neuroscript.cli.terminal.exit_codes import FAILED, OK
from neuroscript.cli.terminal.output import EMPTY, Output, Rows, cell, line
from neuroscript.cli.terminal.printing import show
from neuroscript.io.near_names import did_you_mean
from neuroscript.policy.capabilities import parts
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.policy.scopes import is_exact_tool
from neuroscript.policy.templates import may_cover, repeated_names
from neuroscript.tools.tool import ToolImplementation

if TYPE_CHECKING:
    from neuroscript.cli.policy.isolated import IsolatedTool

INDENT: Final = 2
Tools = Mapping[str, ToolImplementation]


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Print the findings about the policy, and return 1 if a rule has no effect, otherwise 0."""
    file = file_of(vars(options))
    with open_engine(make_engine, output, options) as engine:
        names = frozenset(engine.tools)
        sources = {name: source_of(engine, name) for name in names} if engine.policy.isolates else {}
        found = check_policy(engine.policy, engine.tools, engine.aliases, sources)
    if options.json:
        output.json({"file": file, "profile": options.profile, **attrs.asdict(found)})
    else:
        title = "no policy file, only options" if file is None else file
        title = title if options.profile is None else f"{title}, profile {options.profile}"
        show(_blocks(title, found, names), output)
    return FAILED if found.unused_rules else OK


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
        from neuroscript.cli.policy.isolated import unused_isolation

        yield from (UnusedRule(*each) for each in unused_isolation(isolation, sources))


def _isolated(policy: ExecutionPolicy, sources: Mapping[str, ToolSource]) -> tuple[IsolatedTool, ...]:
    if not policy.isolates:
        return ()
    from neuroscript.cli.policy.isolated import isolated_tools

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
        if not any(may_cover(grant, need) for grant in layer.grants):
            return UnusableTool(
                tool.name, "policy.capability", "grants", need, f"needs {need}, which no grant can cover"
            )
    return None


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


def _blocks(title: str, found: PolicyReport, names: Collection[str]) -> Iterator[Rows]:
    yield line(title, "title")
    if found.unused_rules:
        yield from (EMPTY, line("rules without effect", "title"))
        rows = ((cell(each.where), cell(each.rule, "name"), cell(each.text, "bad")) for each in found.unused_rules)
        yield Rows(tuple(rows), indent=INDENT)
    if found.unusable_tools:
        yield from (EMPTY, line("tools that can never run", "title"))
        yield from _unusable_blocks(found.unusable_tools, names)
    if found.isolated_tools:
        from neuroscript.cli.policy.isolated import counts

        yield from (EMPTY, line("isolated tools", "title"))
        yield Rows(
            tuple((cell(origin, "name"), cell(text)) for origin, text in counts(found.isolated_tools)), indent=INDENT
        )
    yield from (EMPTY, line(_in_numbers(found)))


def _unusable_blocks(refused: Iterable[UnusableTool], names: Collection[str]) -> Iterator[Rows]:
    """Yield each tool with its reason; tools that are merely not allowed are many, so they share one line."""
    others = {each.tool for each in refused if each.code == "policy.not_allowed"}
    rows = [(cell(each.tool, "name"), cell(_reason(each))) for each in refused if each.tool not in others]
    if rows:
        yield Rows(tuple(rows), indent=INDENT)
    if others:
        allowed = {_group(name) for name in names if name not in others}
        labels = dict.fromkeys(name if _group(name) in allowed else f"{_group(name)}.*" for name in sorted(others))
        yield line(f"not matched by any allow pattern: {', '.join(labels)}", indent=INDENT)


def _group(name: str) -> str:
    return name.rpartition(".")[0]


def _reason(each: UnusableTool) -> str:
    return f"{each.text} ({each.rule})" if each.rule not in ("grants", "trust", "approval") else each.text


def _in_numbers(found: PolicyReport) -> str:
    unusable, unused = len(found.unusable_tools), len(found.unused_rules)
    tools = f"{found.tools} tool{'s' * (found.tools != 1)}"
    rules = f"{unused} rules have" if unused != 1 else "1 rule has"
    return f"{tools}: {found.tools - unusable} can run, {unusable} cannot; {rules} no effect"
