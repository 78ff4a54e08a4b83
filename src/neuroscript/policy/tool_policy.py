"""The policy that a tool declares: its effects, and what it needs from the host."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final, cast

import attrs

from neuroscript.coercion.parameters import FLAG, SECONDS, STRINGS, Form, collection, field_problems, optional
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.names import canonical
from neuroscript.policy.capabilities import Capability
from neuroscript.policy.scopes import is_tool_pattern

EFFECTS: Final = frozenset(
    {"pure", "idempotent", "reads", "writes", "deletes", "net", "exec", "model", "clock", "random", "prompts"}
)
"""The closed set of side effects that a tool can declare."""

LASTING_EFFECTS: Final = frozenset({"writes", "deletes", "exec", "net"})
"""Effects that cannot be undone."""

NONBLOCKING_EFFECTS: Final = frozenset({"pure", "idempotent", "clock", "random"})
"""Effects that do not block."""

READ_EFFECTS: Final = frozenset({"pure", "reads", "net", "clock", "random"})
"""A read-only tool declares at least one of these effects."""

WRITE_EFFECTS: Final = frozenset({"writes", "deletes", "exec", "prompts", "model"})
"""A read-only tool declares none of these effects."""


def _needs(given: Collection[str | Capability]) -> tuple[str, ...]:
    """Declare the accepted types to type checkers; conversion happens with the other fields, to report all problems."""
    return cast(tuple[str, ...], given)


def as_names(given: Collection[str]) -> tuple[str, ...]:
    """Declare the accepted types of names and patterns to type checkers, like `_needs`."""
    return cast(tuple[str, ...], given)


def as_optional_names(given: Collection[str] | None) -> tuple[str, ...] | None:
    """Declare the accepted types of names that may be undeclared, like `_needs`."""
    return cast("tuple[str, ...] | None", given)


@attrs.frozen
class ToolPolicy:
    """What a tool needs from the host.

    Attributes:
        requires_trust: Whether it runs only on a trusted host (``trusted=True``).
        capabilities: Needs as strings, ``resource:verb[,verb][:scope[,scope]]``, or as `Capability`. A scope may name
            arguments in braces. They are stored as strings.
        effects: Members of `EFFECTS`.
        requires_approval: Whether every call requires approval.
        timeout: Seconds after which the caller stops waiting.
        blocking: Whether ``acall`` runs it on a thread. None means: if one of its effects may block.
        sources: What its results carry: ``untrusted`` if someone outside the user's organization can write part of
            them, ``private`` if not everyone may read them, or labels of your own, such as ``private:mail``. None
            means: what its effects imply, or everything if it declares none.
        sinks: Where its calls send their arguments: ``outside``, ``public``, ``money``, ``people``, ``code``,
            ``storage``, or sinks of your own, such as ``outside:crm``. None means the same as for *sources*.
        declassifies: The labels that its results no longer carry, because it removes or checks what they stand for.
            Only a trusted host believes it.
        raw_files: Whether it opens files of the sandbox by path itself, for example with ``sqlite3`` or pandas. If it
            is isolated, its worker may open the files that its ``fs`` needs name. The worker of any other tool can open
            no file of the sandbox, and ``rt.fs`` is the only way.

    Raises:
        SpecError: If a field is invalid. The error lists every problem.
    """

    requires_trust: bool = attrs.field(default=False, kw_only=True)
    capabilities: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=_needs)
    effects: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=as_names)
    requires_approval: bool = attrs.field(default=False, kw_only=True)
    timeout: float | None = attrs.field(default=None, kw_only=True)
    blocking: bool | None = attrs.field(default=None, kw_only=True)
    sources: tuple[str, ...] | None = attrs.field(default=None, kw_only=True, converter=as_optional_names)
    sinks: tuple[str, ...] | None = attrs.field(default=None, kw_only=True, converter=as_optional_names)
    declassifies: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=as_names)
    raw_files: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        faults = list(_settled(self))
        if faults:
            raise SpecError("policy", faults)

    @property
    def waits(self) -> bool:
        """Whether ``acall`` runs the tool on a thread, to avoid blocking the event loop."""
        return not NONBLOCKING_EFFECTS.issuperset(self.effects) if self.blocking is None else self.blocking

    @property
    def is_idempotent(self) -> bool:
        """Whether calling the tool twice has the effect of calling it once; False if it declares no effects."""
        return not {"idempotent", "pure"}.isdisjoint(self.effects)

    @property
    def is_read_only(self) -> bool:
        """Whether the tool changes nothing and prompts no user; False if it declares no effects."""
        return (
            not READ_EFFECTS.isdisjoint(self.effects)
            and WRITE_EFFECTS.isdisjoint(self.effects)
            and not self.requires_approval
        )


def _settled(policy: ToolPolicy) -> Iterator[str]:
    yield from field_problems(
        policy,
        requires_trust=FLAG,
        requires_approval=FLAG,
        blocking=optional(FLAG),
        timeout=optional(SECONDS),
        raw_files=FLAG,
    )
    yield from _capabilities(policy)
    yield from _effects(policy)
    if policy.sources is not None or policy.sinks is not None or policy.declassifies != ():
        yield from label_field_problems(policy)


def label_field_problems(thing: Any) -> Iterator[str]:
    """Normalise the fields ``sources``, ``sinks`` and ``declassifies``, and yield each problem with them."""
    from neuroscript.policy.labels import SINKS, SOURCES, label_problems

    for name, known in (("sources", SOURCES), ("sinks", SINKS), ("declassifies", SOURCES)):
        given = getattr(thing, name)
        if given is None and name != "declassifies":
            continue
        if not STRINGS.holds(given):
            yield from STRINGS.problems(name, given)
            continue
        words = unique_values(given)
        object.__setattr__(thing, name, words)
        yield from label_problems(name, words, known)


def _capabilities(policy: ToolPolicy) -> Iterator[str]:
    if not NEEDS.holds(policy.capabilities):
        yield from NEEDS.problems("capabilities", policy.capabilities)
        return
    needs = unique_values(policy.capabilities)
    if needs:  # most tools need nothing, which avoids an import
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
    words = unique_values(policy.effects)
    object.__setattr__(policy, "effects", words)
    known = ", ".join(sorted(EFFECTS))
    yield from (f"{quote_untrusted(word)} is not an effect ({known})" for word in words if word not in EFFECTS)
    if "pure" in words and not {"pure", "idempotent"}.issuperset(words):
        yield "a pure tool can have no other effect except idempotent"


def pattern_problems(owner: object, field: str, example: str) -> Iterator[str]:
    """Store the patterns of tools in a field as a tuple of canonical ones, and yield each problem with them.

    Args:
        owner: An instance of a frozen class.
        example: A valid pattern, for the message.
    """
    given = getattr(owner, field)
    if not STRINGS.holds(given):
        yield from STRINGS.problems(field, given)
        return
    patterns = unique_values(given)
    object.__setattr__(owner, field, tuple(dict.fromkeys(map(canonical, patterns))))
    for pattern in patterns:
        if not is_tool_pattern(canonical(pattern)):
            quoted = quote_untrusted(pattern)
            yield f"{field}: {quoted} is not a valid pattern; use a name, or a pattern such as {example}"


def unique_values(values: Collection[Any]) -> tuple[Any, ...]:
    """Return unique values, those of a set sorted by their string form."""
    return tuple(dict.fromkeys(sorted(values, key=str) if isinstance(values, (set, frozenset)) else values))


NEEDS: Final = collection(
    Form("a string or a Capability", lambda need: isinstance(need, (str, Capability))), "strings or Capabilities"
)
