"""What a tool needs of its host.

Source: contract section 5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final, cast

import attrs

from neuroscript.coercion.parameters import FLAG, SECONDS, STRINGS, Form, collection, field_problems, optional
from neuroscript.errors import SpecError
from neuroscript.io.text import shown
from neuroscript.policy.capabilities import Capability

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
    yield from field_problems(
        policy, requires_trust=FLAG, requires_approval=FLAG, blocking=optional(FLAG), timeout=optional(SECONDS)
    )
    yield from _capabilities(policy)
    yield from _effects(policy)


def _capabilities(policy: ToolPolicy) -> Iterator[str]:
    if not NEEDS.holds(policy.capabilities):
        yield from NEEDS.problems("capabilities", policy.capabilities)
        return
    needs = listed(policy.capabilities)
    if needs:  # most tools need nothing, and then nothing is loaded for it
        from neuroscript.policy.templates import normal
    texts: list[str] = []
    for need in needs:
        try:
            texts.append(normal(str(need)))
        except SpecError as error:
            yield from error.problems
    object.__setattr__(policy, "capabilities", tuple(dict.fromkeys(texts)))


def _effects(policy: ToolPolicy) -> Iterator[str]:
    if not STRINGS.holds(policy.effects):
        yield from STRINGS.problems("effects", policy.effects)
        return
    words = listed(policy.effects)
    object.__setattr__(policy, "effects", words)
    known = ", ".join(sorted(EFFECTS))
    yield from (f"{shown(word)} is not an effect ({known})" for word in words if word not in EFFECTS)
    if "pure" in words and not {"pure", "idempotent"}.issuperset(words):
        yield "a pure tool has no other effect but idempotent"


def listed(values: Collection[Any]) -> tuple[Any, ...]:
    """Return values once each, those of a set in the order of their texts."""
    return tuple(dict.fromkeys(sorted(values, key=str) if isinstance(values, (set, frozenset)) else values))


NEEDS: Final = collection(
    Form("a string or a Capability", lambda need: isinstance(need, (str, Capability))), "strings or Capabilities"
)
