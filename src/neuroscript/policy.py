"""What a tool needs of its host, and what a host that says nothing permits.

Source: contract section 5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import attrs

from neuroscript.display import shown
from neuroscript.errors import PolicyError, SpecError

EFFECTS: Final = frozenset(
    {"pure", "idempotent", "reads", "writes", "deletes", "net", "exec", "model", "clock", "random", "prompts"}
)
"""The closed set of words for what a tool does beyond giving its result."""

QUICK: Final = frozenset({"pure", "idempotent", "clock", "random"})
"""Effects for which nothing is waited for."""

CAPABILITY: Final = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_]*(?:,[a-z][a-z0-9_]*)*(?::.+)?")
"""``resource:verb[,verb][:scope[,scope]]``."""


@attrs.frozen
class ToolPolicy:
    """What a tool needs.

    Attributes:
        requires_trust: Whether it runs only for a host that says ``trusted=True``.
        capabilities: Needs as text, ``resource:verb[,verb][:scope[,scope]]``.
        effects: Words of `EFFECTS`.
        requires_approval: Whether each call is to be approved.
        timeout: Seconds after which its caller is freed.
        blocking: Whether ``acall`` runs it on a thread; None means "if it has effects that wait for something".

    Raises:
        SpecError: With everything that is wrong with it.
    """

    requires_trust: bool = attrs.field(default=False, kw_only=True)
    capabilities: tuple[str, ...] = attrs.field(default=(), kw_only=True)
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


def _settled(policy: ToolPolicy) -> Iterator[str]:
    for name in ("requires_trust", "requires_approval"):
        if type(getattr(policy, name)) is not bool:
            yield f"{name} must be True or False"
    if policy.blocking is not None and type(policy.blocking) is not bool:
        yield "blocking must be True, False or None"
    yield from _words(policy, "capabilities", lambda text: CAPABILITY.fullmatch(text) is not None, "a capability")
    yield from _words(policy, "effects", EFFECTS.__contains__, f"an effect ({', '.join(sorted(EFFECTS))})")
    if "pure" in policy.effects and not {"pure", "idempotent"}.issuperset(policy.effects):
        yield "a pure tool has no other effect but idempotent"
    if policy.timeout is not None and not _is_duration(policy.timeout):
        yield "timeout must be a finite number of seconds above 0"


def _words(policy: ToolPolicy, name: str, fits: Any, what: str) -> Iterator[str]:
    words = getattr(policy, name)
    if not isinstance(words, (tuple, list, set, frozenset)) or not all(isinstance(word, str) for word in words):
        yield f"{name} must be a tuple of texts"
        return
    ordered = tuple(dict.fromkeys(words if isinstance(words, (tuple, list)) else sorted(words)))
    object.__setattr__(policy, name, ordered)
    yield from (f"{shown(word)} is not {what}" for word in ordered if not fits(word))


def _is_duration(seconds: object) -> bool:
    return type(seconds) in (int, float) and 0 < seconds < float("inf")  # type: ignore[operator]


def refusal(tool: str, policy: ToolPolicy) -> PolicyError | None:
    """Return why a host that says nothing refuses *tool*, or None: it permits what needs nothing.

    Source: contract section 5, first point; the order is that of section 2.
    """
    if policy.requires_trust:
        return PolicyError("needs a host that trusts it", tool=tool, code="policy.trust", need="trust", rule="default")
    if policy.capabilities:
        need = policy.capabilities[0]
        return PolicyError(f"needs {need}", tool=tool, code="policy.capability", need=need, rule="default")
    if policy.requires_approval:
        text = "needs an approval, and nobody here can give it"
        return PolicyError(text, tool=tool, code="policy.approval", need="approval", rule="default")
    return None
