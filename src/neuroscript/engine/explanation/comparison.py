"""Comparisons of two policies: which tools they decide about differently, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import attrs

from neuroscript.engine.explanation.description import TITLES, Group, Sentence, describe
from neuroscript.engine.explanation.findings import can_cover, find_refusal
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.tools.tool import ToolImplementation

Standing = Literal["runs", "asks", "depends", "refused"]
"""What a policy says about a tool: it runs with any arguments, each call asks, it depends on them, or it never runs."""


@attrs.frozen
class Verdict:
    """What a policy says about a tool before its arguments are known.

    Attributes:
        standing: See `Standing`.
        rule: The rule that decides.
        text: The reason, or ``""``.
    """

    standing: Standing
    rule: str = ""
    text: str = ""

    def agrees(self, other: Verdict) -> bool:
        """Return whether another verdict has the same consequences, whatever its reason is."""
        return self.standing == other.standing and (self.standing != "depends" or self.text == other.text)


@attrs.frozen
class ToolDifference:
    """A tool about which two policies decide differently.

    Attributes:
        tool: Its canonical name.
        before: What the first policy says.
        after: What the second policy says.
    """

    tool: str
    before: Verdict
    after: Verdict

    @property
    def is_wider(self) -> bool:
        """Whether the second policy refuses the tool less than the first one."""
        order = ("refused", "asks", "depends", "runs")
        return order.index(self.after.standing) > order.index(self.before.standing)


@attrs.frozen
class PolicyComparison:
    """The differences between two policies.

    Attributes:
        tools: The tools about which they decide differently, sorted by name.
        removed: The sentences that only the first policy has, by group.
        added: The sentences that only the second policy has, by group.
    """

    tools: tuple[ToolDifference, ...]
    removed: Mapping[Group, tuple[Sentence, ...]]
    added: Mapping[Group, tuple[Sentence, ...]]


def compare(
    before: ExecutionPolicy,
    after: ExecutionPolicy,
    tools: Mapping[str, ToolImplementation],
    aliases: Mapping[str, str] | None = None,
) -> PolicyComparison:
    """Return the differences between two policies for these tools.

    Args:
        tools: The tools by canonical name.
        aliases: The canonical name for each alias, because *deny* applies to aliases too.
    """
    old: dict[str, list[str]] = {}
    for alias, name in (aliases or {}).items():
        old.setdefault(name, []).append(alias)
    return PolicyComparison(
        tuple(_tool_differences(before, after, tools, old)),
        _missing(describe(before, tools), describe(after, tools)),
        _missing(describe(after, tools), describe(before, tools)),
    )


def _tool_differences(
    before: ExecutionPolicy,
    after: ExecutionPolicy,
    tools: Mapping[str, ToolImplementation],
    old: Mapping[str, Collection[str]],
) -> Iterator[ToolDifference]:
    for name, tool in sorted(tools.items()):
        verdicts = [verdict_of(policy, tool, old.get(name, ())) for policy in (before, after)]
        if not verdicts[0].agrees(verdicts[1]):
            yield ToolDifference(name, *verdicts)


def verdict_of(policy: ExecutionPolicy, tool: ToolImplementation, old: Collection[str] = ()) -> Verdict:
    """Return what a policy says about a tool before its arguments are known.

    Args:
        old: The aliases of the tool.
    """
    refused = find_refusal(policy, tool, old)
    if refused is not None:
        return Verdict("refused", refused.rule, refused.text)
    if policy.asks(tool.name, tool.policy) and policy.approvers(tool.name, tool.policy):
        return Verdict("asks", policy.allowing(tool.name) or "otherwise", "each call needs an approval")
    needs = tool.policy.capabilities
    if needs:
        grants = {
            str(grant) for need in needs for layer in policy.layers for grant in layer.grants if can_cover(grant, need)
        }
        return Verdict("depends", policy.allowing(tool.name), f"within {', '.join(sorted(grants))}")
    return Verdict("runs", policy.allowing(tool.name))


def _missing(
    sentences: Mapping[Group, tuple[Sentence, ...]], others: Mapping[Group, tuple[Sentence, ...]]
) -> dict[Group, tuple[Sentence, ...]]:
    """Return the sentences that the other policy does not have, without empty groups."""
    found = {
        group: tuple(each for each in sentences[group] if each.text not in {other.text for other in others[group]})
        for group in TITLES
    }
    return {group: each for group, each in found.items() if each}
