"""The labels of tools: what their results carry, and where their calls send their arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from neuroscript.io.text import quote_untrusted

if TYPE_CHECKING:
    from neuroscript.policy.tool_policy import ToolPolicy

SOURCES: Final[Mapping[str, str]] = {
    "untrusted": "someone outside the user's organization can write part of it",
    "private": "not everyone may read it",
}
"""The built-in labels of results, each with its meaning."""

SINKS: Final[Mapping[str, str]] = {
    "outside": "leaves the user's organization",
    "public": "is published",
    "money": "moves money or orders something",
    "people": "reaches people inside the organization, or changes what they may do",
    "code": "is executed",
    "storage": "is stored, or changes what is stored",
}
"""The built-in sinks, each with its meaning."""

ALL_SOURCES: Final = tuple(SOURCES)
"""What the results of a tool carry that could be anything."""

ALL_SINKS: Final = tuple(SINKS)
"""Where a tool that could do anything sends its arguments."""

WORD: Final = r"[a-z][a-z0-9_-]{0,63}"
LABEL: Final = re.compile(rf"{WORD}(?::{WORD})*")

EFFECT_SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "reads": ("private",),
    "net": ("untrusted",),
    "exec": ("untrusted", "private"),
}
"""What the results of a tool with an effect carry, if it declares no sources; effects that are not listed add none."""

EFFECT_SINKS: Final[Mapping[str, tuple[str, ...]]] = {
    "net": ("outside",),
    "writes": ("storage",),
    "deletes": ("storage",),
    "exec": ("code", "outside", "storage"),
}
"""Where a tool with an effect sends its arguments, if it declares no sinks."""

CAPABILITY_EFFECTS: Final[Mapping[str, str]] = {
    "fs:read": "reads",
    "fs:write": "writes",
    "fs:delete": "deletes",
    "env:read": "reads",
    "net": "net",
    "exec": "exec",
    "process": "exec",
    "shell": "exec",
}
"""The effect that a capability implies, by resource and verb or by resource."""


def sources_of(policy: ToolPolicy) -> tuple[str, ...]:
    """Return what the results of a tool carry: what it declares, or else what follows from its effects."""
    if policy.sources is not None:
        return policy.sources
    return _implied(policy, EFFECT_SOURCES, ALL_SOURCES)


def sinks_of(policy: ToolPolicy) -> tuple[str, ...]:
    """Return where the calls of a tool send their arguments: what it declares, or what follows from its effects."""
    if policy.sinks is not None:
        return policy.sinks
    return _implied(policy, EFFECT_SINKS, ALL_SINKS)


def _implied(policy: ToolPolicy, by_effect: Mapping[str, tuple[str, ...]], worst: tuple[str, ...]) -> tuple[str, ...]:
    if not policy.effects:
        return worst
    effects = {*policy.effects, *_effects_of_capabilities(policy.capabilities)}
    if effects == {"idempotent"}:  # a promise about calls, which says nothing about what they do
        return worst
    implied = (label for effect, labels in by_effect.items() if effect in effects for label in labels)
    return tuple(dict.fromkeys(implied))


def _effects_of_capabilities(capabilities: Iterable[str]) -> Iterator[str]:
    for capability in capabilities:
        resource, verbs, *_ = capability.split(":")
        for verb in verbs.split(","):
            effect = CAPABILITY_EFFECTS.get(f"{resource}:{verb}") or CAPABILITY_EFFECTS.get(resource)
            if effect is not None:
                yield effect


def label_contradictions(policy: ToolPolicy) -> Iterator[str]:
    """Yield a sentence for each declared label that contradicts the effects or the capabilities of a tool."""
    if "pure" in policy.effects and (policy.sources or policy.sinks):
        yield "a pure tool reads nothing and sends nothing; remove its sources and sinks"
    if policy.sinks == ():
        yield from _forgotten_sinks(policy)
    if policy.declassifies and policy.sources is None:
        yield "declassifies is declared without sources; declare what its own results carry"


def _forgotten_sinks(policy: ToolPolicy) -> Iterator[str]:
    """Yield a sentence for each capability that an argument decides about, so that it does go somewhere."""
    for need in policy.capabilities:
        effects = _effects_of_capabilities([need]) if "{" in need else ()
        where = [sink for effect in effects for sink in EFFECT_SINKS.get(effect, ())]
        if where:
            sinks = ", ".join(dict.fromkeys(where))
            yield f"sinks is empty, but an argument decides about {need}; declare where arguments go, such as {sinks}"


def label_problems(field: str, labels: Iterable[str], known: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each word that is neither a built-in label nor one of a host, which has a colon."""
    for label in labels:
        if LABEL.fullmatch(label) is None or (label not in known and ":" not in label):
            own = "outside:crm" if known is SINKS else "private:mail"
            hint = f"a label of your own has a colon, such as {own}"
            yield f"{field}: {quote_untrusted(label)!r} is not one of {', '.join(known)}; {hint}"


def covers(pattern: str, label: str) -> bool:
    """Return whether a word of a rule means *label*: ``private`` means ``private:mail`` too, and ``*`` any label."""
    return pattern in ("*", label) or label.startswith(f"{pattern}:")


def is_covered(label: str, patterns: Iterable[str]) -> bool:
    """Return whether one of several words means *label*."""
    return any(covers(each, label) for each in patterns)
