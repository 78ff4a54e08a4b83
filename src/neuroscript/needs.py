"""What a tool needs of its host.

Source: contract section 5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final, cast

import attrs

from neuroscript.capability import Capability
from neuroscript.display import shown
from neuroscript.errors import SpecError

EFFECTS: Final = frozenset(
    {"pure", "idempotent", "reads", "writes", "deletes", "net", "exec", "model", "clock", "random", "prompts"}
)
"""The closed set of words for what a tool does beyond giving its result."""

LASTING: Final = frozenset({"writes", "deletes", "exec", "net"})
"""Effects that nobody can take back."""

QUICK: Final = frozenset({"pure", "idempotent", "clock", "random"})
"""Effects for which nothing is waited for."""

SEES: Final = frozenset({"pure", "reads", "net", "clock", "random"})
"""Effects of which a tool that only looks has at least one."""

ACTS: Final = frozenset({"writes", "deletes", "exec", "prompts", "model"})
"""Effects of which it has none."""


def _needs(given: Collection[str | Capability]) -> tuple[str, ...]:
    """Tell type checkers what is taken; it gets its form with the other fields, so that all faults are told at once."""
    return cast(tuple[str, ...], given)


@attrs.frozen
class ToolPolicy:
    """What a tool needs.

    Attributes:
        requires_trust: Whether it runs only for a host that says ``trusted=True``.
        capabilities: Needs as text, ``resource:verb[,verb][:scope[,scope]]``, or as `Capability`; a scope may name
            arguments in braces. They are kept as text.
        effects: Words of `EFFECTS`.
        requires_approval: Whether each call is to be approved.
        timeout: Seconds after which its caller is freed.
        blocking: Whether ``acall`` runs it on a thread; None means "if it has effects that wait for something".

    Raises:
        SpecError: With everything that is wrong with it.
    """

    requires_trust: bool = attrs.field(default=False, kw_only=True)
    capabilities: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=_needs)
    effects: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    requires_approval: bool = attrs.field(default=False, kw_only=True)
    timeout: float | None = attrs.field(default=None, kw_only=True)
    blocking: bool | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        faults = list(_settled(self))
        if faults:
            raise SpecError("policy", faults)

    @property
    def waits(self) -> bool:
        """Whether ``acall`` has to run the tool on a thread, so that the event loop goes on."""
        return not QUICK.issuperset(self.effects) if self.blocking is None else self.blocking

    @property
    def is_idempotent(self) -> bool:
        """Whether a call that is made twice has the effect of one; what declares no effects is not known to be so."""
        return not {"idempotent", "pure"}.isdisjoint(self.effects)

    @property
    def only_looks(self) -> bool:
        """Whether the tool changes nothing and asks nobody; what declares no effects is not known to only look."""
        return not SEES.isdisjoint(self.effects) and ACTS.isdisjoint(self.effects) and not self.requires_approval


def _settled(policy: ToolPolicy) -> Iterator[str]:
    for name in ("requires_trust", "requires_approval"):
        if type(getattr(policy, name)) is not bool:
            yield f"{name} must be True or False"
    if policy.blocking is not None and type(policy.blocking) is not bool:
        yield "blocking must be True, False or None"
    yield from _capabilities(policy)
    yield from _effects(policy)
    if "pure" in policy.effects and not {"pure", "idempotent"}.issuperset(policy.effects):
        yield "a pure tool has no other effect but idempotent"
    if policy.timeout is not None and not _is_duration(policy.timeout):
        yield "timeout must be a finite number of seconds above 0"


def _capabilities(policy: ToolPolicy) -> Iterator[str]:
    needs = listed(policy.capabilities, str, Capability)
    if needs is None:
        yield "capabilities must be a tuple of texts"
        return
    if needs:  # most tools need nothing, and then nothing is loaded for it
        from neuroscript.templates import normal
    texts: list[str] = []
    for need in needs:
        try:
            texts.append(normal(str(need)))
        except SpecError as error:
            yield from error.problems
    object.__setattr__(policy, "capabilities", tuple(dict.fromkeys(texts)))


def _effects(policy: ToolPolicy) -> Iterator[str]:
    words = listed(policy.effects, str)
    if words is None:
        yield "effects must be a tuple of texts"
        return
    object.__setattr__(policy, "effects", words)
    known = ", ".join(sorted(EFFECTS))
    yield from (f"{shown(word)} is not an effect ({known})" for word in words if word not in EFFECTS)


def _is_duration(seconds: object) -> bool:
    return type(seconds) in (int, float) and 0 < seconds < float("inf")  # type: ignore[operator]


def listed(values: object, *kinds: type) -> tuple[Any, ...] | None:
    """Return values of these types once each, a set in the order of its texts, or None where there are others."""
    if not isinstance(values, (tuple, list, set, frozenset)) or not all(isinstance(each, kinds) for each in values):
        return None
    return tuple(dict.fromkeys(values if isinstance(values, (tuple, list)) else sorted(values, key=str)))
