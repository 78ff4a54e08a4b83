"""What a tool needs of its host, and what a host permits; decisions that depend on nothing else.

Source: contract section 5.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, cast

import attrs

from neuroscript.capability import Capability, Grant, scope_key, uncovered
from neuroscript.display import shown
from neuroscript.errors import PolicyError, SpecError
from neuroscript.names import canonical
from neuroscript.scopes import Covers, covers, key_of

EFFECTS: Final = frozenset(
    {"pure", "idempotent", "reads", "writes", "deletes", "net", "exec", "model", "clock", "random", "prompts"}
)
"""The closed set of words for what a tool does beyond giving its result."""

QUICK: Final = frozenset({"pure", "idempotent", "clock", "random"})
"""Effects for which nothing is waited for."""

PATTERN: Final = re.compile(r"[a-z0-9_.*?]+")
"""What a pattern of tools is made of; with any other character it would match no name."""


def _needs(given: Collection[str | Capability]) -> tuple[str, ...]:
    """Tell type checkers what is taken; it gets its form with the other fields, so that all faults are told at once."""
    return cast(tuple[str, ...], given)


def _permits(given: Collection[str | Grant]) -> tuple[Grant, ...]:
    """The same for grants."""
    return cast(tuple[Grant, ...], given)


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
    needs = _listed(policy.capabilities, str, Capability)
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
    _set(policy, "capabilities", tuple(dict.fromkeys(texts)))


def _effects(policy: ToolPolicy) -> Iterator[str]:
    words = _listed(policy.effects, str)
    if words is None:
        yield "effects must be a tuple of texts"
        return
    _set(policy, "effects", words)
    known = ", ".join(sorted(EFFECTS))
    yield from (f"{shown(word)} is not an effect ({known})" for word in words if word not in EFFECTS)


def _listed(values: object, *kinds: type) -> tuple[Any, ...] | None:
    """Return values of these types once each, a set in the order of its texts, or None where there are others."""
    if not isinstance(values, (tuple, list, set, frozenset)) or not all(isinstance(each, kinds) for each in values):
        return None
    return tuple(dict.fromkeys(values if isinstance(values, (tuple, list)) else sorted(values, key=str)))


def _is_duration(seconds: object) -> bool:
    return type(seconds) in (int, float) and 0 < seconds < float("inf")  # type: ignore[operator]


@attrs.frozen(kw_only=True)
class ExecutionPolicy:
    """What a host permits: which tools may run at all, and what they may do to the world.

    A pattern of tools is a glob over canonical names, in which ``*`` crosses dots: ``fs.*`` is a group and all groups
    below it. Any case and a leading ``tool.`` are taken. What *deny* matches is refused, whatever *allow* says.

    Attributes:
        allow: Patterns of the tools that may run; without one, none may.
        deny: Patterns of the tools that may not.
        grants: What they may do, as text or as `Grant`; they are kept as `Grant`.
        trusted: Whether tools that require trust may run.

    Raises:
        SpecError: With everything that is wrong with it.

    Source: contract section 5; upstream ``policy.go``.
    """

    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = attrs.field(default=(), converter=_permits)
    trusted: bool = False
    _matchers: dict[str, Covers] = attrs.field(init=False, eq=False, repr=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        faults = [*_patterns(self, "allow"), *_patterns(self, "deny"), *_grants(self)]
        if type(self.trusted) is not bool:
            faults.append("trusted must be True or False")
        if faults:
            raise SpecError("execution policy", faults)
        self._matchers.update((each, covers("tool", key_of("tool", each))) for each in (*self.allow, *self.deny))

    def verdict(self, name: str, needs: ToolPolicy) -> PolicyError | None:
        """Return why the tool *name* may not run at all, or None; no argument is looked at.

        Trust is asked first, then what is denied, then what is allowed, then whether each call needs an approval, which
        nobody can give here.

        Source: the order is that of contract section 2; upstream ``CanCall``.
        """
        tool = canonical(name)
        if needs.requires_trust and not self.trusted:
            return PolicyError(
                "needs a host that trusts it", tool=tool, code="policy.trust", need="trust", rule="trust"
            )
        denied = next((pattern for pattern in self.deny if self._matchers[pattern](tool)), None)
        if denied is not None:
            return PolicyError("is denied by the host", tool=tool, code="policy.denied", rule=denied)
        if not any(self._matchers[pattern](tool) for pattern in self.allow):
            return PolicyError("is not allowed by the host", tool=tool, code="policy.not_allowed", rule="allow")
        if not needs.requires_approval:
            return None
        text = "needs an approval, and nobody here can give it"
        return PolicyError(text, tool=tool, code="policy.approval", need="approval", rule="approval")

    def uncovered(self, needs: Iterable[Capability]) -> Capability | None:
        """Return the first single need that no grant covers, or None."""
        return uncovered(needs, self.grants)

    def unmatched(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the patterns of *allow* and *deny* that match none of these names."""
        tools = [canonical(name) for name in names]
        return tuple(pattern for pattern, matches in self._matchers.items() if not any(map(matches, tools)))


def refused(tool: str, need: Capability) -> PolicyError:
    """Return the refusal of a tool for a single need that no grant covers.

    It names the resource and the verb. The scope may be a value of the call, so it is shown of a path alone, and only
    if that stays below the sandbox. A scope that no grant can cover is the caller's to mend.

    Source: contract section 6.
    """
    text = f"{need.resource}:{need.verbs[0]}"
    if scope_key(need) is None:
        said = f"needs {text} of something that no grant can mean, such as a path that leaves the sandbox"
        return PolicyError(said, tool=tool, code="policy.capability", need=text, rule="grants", retry="model")
    if need.resource == "fs" and need.scopes:
        text = f"{text}:{shown(need.scopes[0])}"
    return PolicyError(f"needs {text}", tool=tool, code="policy.capability", need=text, rule="grants")


def _patterns(policy: ExecutionPolicy, name: str) -> Iterator[str]:
    patterns = _listed(getattr(policy, name), str)
    if patterns is None:
        yield f"{name} must be a tuple of texts"
        return
    _set(policy, name, tuple(dict.fromkeys(map(canonical, patterns))))
    for pattern in patterns:
        if PATTERN.fullmatch(canonical(pattern)) is None:
            yield f"{name}: {shown(pattern)} matches no tool; write a name, or a pattern such as fs.*"


def _grants(policy: ExecutionPolicy) -> Iterator[str]:
    grants = _listed(policy.grants, str, Grant)
    if grants is None:
        yield "grants must be a tuple of texts or Grants"
        return
    parsed: list[Grant] = []
    for grant in grants:
        try:
            parsed.append(Grant.parse(grant) if isinstance(grant, str) else grant)
        except SpecError as error:
            yield from error.problems
    _set(policy, "grants", tuple(parsed))


def _set(thing: object, name: str, value: object) -> None:
    object.__setattr__(thing, name, value)
