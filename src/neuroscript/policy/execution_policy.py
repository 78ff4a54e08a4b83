"""Whether a call may run, and what decided it.

Source: contract section 5; upstream's makers ask for such a preflight (upstream.md part 11).

What a host permits: decisions that depend on nothing else, and change nothing.

Source: contract section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import attrs

from neuroscript.coercion.parameters import (
    FLAG,
    FUNCTION,
    STRING,
    STRINGS,
    Form,
    as_tuple,
    collection,
    field_problems,
    instance,
    one_of,
    optional,
    require,
    require_fields,
    sequence,
)
from neuroscript.errors import RETRIES, ArgumentError, CallError, PolicyError, Retry, SpecError
from neuroscript.io.text import shown
from neuroscript.names import canonical
from neuroscript.policy.capabilities import Capability, Grant, uncovered
from neuroscript.policy.scopes import Covers, is_exact_tool, is_tool_pattern, tool_matcher
from neuroscript.policy.tool_policy import ToolPolicy, listed

if TYPE_CHECKING:
    from neuroscript.policy.limits import Limits


REFUSAL: Final = instance(CallError)


RETRY: Final = one_of(*RETRIES)


@attrs.frozen
class Decision:
    """Whether a call may run, and what decided it.

    Attributes:
        tool: The canonical name of the tool, or the name that was asked for where there is none.
        allowed: Whether it may run.
        rule: The pattern, the word or the hook that decided; of a call that may run, the pattern that allows it.
        code: Of the refusal, for example ``policy.denied``, or ``""``.
        need: What the call needs and was not permitted, or ``""``.
        text: The refusal in words, or ``""``.
        retry: Who can make the call succeed.
        asks: Whether somebody has to approve it first.
        remedy: What the host can change so that the call may run, or ``""``; for people, not for a model.
        needs: Everything that it lacks, with scopes.
        grants: The narrowest grants that would permit it, where it lacks some.
    """

    tool: str
    allowed: bool
    rule: str = ""
    code: str = ""
    need: str = ""
    text: str = ""
    retry: Retry = "never"
    asks: bool = False
    remedy: str = ""
    needs: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        texts = dict.fromkeys(("tool", "rule", "code", "need", "text", "remedy"), STRING)
        require_fields("decision", self, allowed=FLAG, retry=RETRY, asks=FLAG, needs=STRINGS, grants=STRINGS, **texts)

    @classmethod
    def of(cls, error: CallError, tool: str = "") -> Decision:
        """Return the refusal that an error is."""
        require("decision", error=(error, REFUSAL), tool=(tool, STRING))
        text = str(error).removeprefix(f"{error.tool}: ")
        decision = cls(error.tool or tool, False, code=error.code, text=text, retry=error.retry, remedy=error.remedy)
        if not isinstance(error, PolicyError):
            return decision
        return attrs.evolve(decision, rule=error.rule, need=error.need, needs=error.needs, grants=error.grants)


def _permits(given: Collection[str | Grant]) -> tuple[Grant, ...]:
    """The same for grants."""
    return cast(tuple[Grant, ...], given)


NEEDLESS: Final = ToolPolicy()


# What parameters and fields have to be

GRANT: Final = Form("a string or a Grant", lambda grant: isinstance(grant, (str, Grant)))


GRANTS: Final = collection(GRANT, "strings or Grants")


HELD: Final = sequence(sequence(instance(Grant), "Grants"), "lists of Grants")


NEEDS: Final = instance(ToolPolicy)


TOOL: Final = Form("a ToolImplementation", lambda tool: isinstance(getattr(tool, "policy", None), ToolPolicy))


VALUES: Final = Form("a list or tuple", lambda values: isinstance(values, (list, tuple)))


class Implementation(Protocol):
    """A tool as far as a policy looks at it."""

    @property
    def name(self) -> str:
        """The canonical name."""

    @property
    def policy(self) -> ToolPolicy:
        """What it needs."""

    @property
    def templates(self) -> tuple[Any, ...]:
        """The same, as what fills it from the arguments of a call."""


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
        limits: How much they may do; None is ``Limits()``.
        preapproved: Exact names of tools that require an approval and need not be asked about.
        approver: Who is asked about the others: a callable, sync or async, that takes an `ApprovalRequest` and returns
            an `Approval`. Without one they are refused.
        within: What this can only narrow: a call has to be permitted there too.

    Raises:
        SpecError: With everything that is wrong with it.

    Source: contract section 5; upstream ``policy.go``.
    """

    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = attrs.field(default=(), converter=_permits)
    trusted: bool = False
    limits: Limits | None = attrs.field(default=None, hash=False)
    preapproved: tuple[str, ...] = ()
    approver: Callable[..., Any] | None = None
    within: ExecutionPolicy | None = None
    _matchers: dict[str, Covers] = attrs.field(init=False, eq=False, repr=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        faults = [*_patterns(self, "allow"), *_patterns(self, "deny"), *_grants(self), *_preapproved(self)]
        faults.extend(_limit_faults(self.limits))
        faults.extend(field_problems(self, trusted=FLAG, approver=optional(FUNCTION), within=optional(POLICY)))
        if faults:
            raise SpecError("execution policy", faults)
        self._matchers.update((each, tool_matcher(each)) for each in (*self.allow, *self.deny))

    def narrowed(self, **changes: Any) -> ExecutionPolicy:
        """Return the same policy with some fields changed, within this one: it can permit no more.

        Args:
            changes: Fields by name. Limits that are not given are none of its own; those of this one hold on.

        >>> ExecutionPolicy(deny=("fs.*",)).narrowed(deny=()).verdict("fs.read", ToolPolicy()).code
        'policy.denied'
        """
        known = [field.name for field in attrs.fields(ExecutionPolicy) if field.init and field.name != "within"]
        unknown = [name for name in changes if name not in known]
        if unknown:
            names = ", ".join(map(shown, unknown))
            raise SpecError("execution policy", [f"it has no field {names}; the fields are {', '.join(known)}"])
        return attrs.evolve(self, within=self, **{"limits": None, **changes})

    @property
    def layers(self) -> tuple[ExecutionPolicy, ...]:
        """This policy and those that it is within, the outermost last; each of them has to permit a call."""
        return (self,) if self.within is None else (self, *self.within.layers)

    def least(self, limit: str, otherwise: Any = None) -> Any:
        """Return the lowest of a limit of one call, such as ``seconds`` or ``items``, by all layers."""
        if type(limit) is not str:
            require("execution policy", limit=(limit, STRING))
        try:
            given = [getattr(layer.limits, limit) for layer in self.layers if layer.limits is not None]
        except AttributeError:
            raise SpecError("execution policy", [f"{shown(limit)} is not a limit"]) from None
        return min((each for each in given if each is not None), default=otherwise)

    @property
    def counts(self) -> bool:
        """Whether something has to be counted, by any layer."""
        return any(layer.limits is not None and not layer.limits.is_idle for layer in self.layers)

    @property
    def compares(self) -> bool:
        """Whether calls are compared with those before them, by any layer."""
        return any(layer.limits is not None and layer.limits.repeats is not None for layer in self.layers)

    def inside(self, ceiling: ExecutionPolicy) -> ExecutionPolicy:
        """Return the same policy with *ceiling* as its outermost layer."""
        require("execution policy", ceiling=(ceiling, POLICY))
        if any(layer is ceiling for layer in self.layers):
            return self
        return attrs.evolve(self, within=ceiling if self.within is None else self.within.inside(ceiling))

    def verdict(self, name: str, needs: ToolPolicy) -> PolicyError | None:
        """Return why the tool *name* may not run at all, or None; no argument is looked at.

        Trust is asked first, then what is denied, then what is allowed, then whether each call needs an approval that
        nobody can give here.

        Source: the order is that of contract section 2; upstream ``CanCall``.
        """
        if type(name) is not str or type(needs) is not ToolPolicy:
            require("execution policy", name=(name, STRING), needs=(needs, NEEDS))
        tool = canonical(name)
        for asked in (ExecutionPolicy._trust, ExecutionPolicy._denied, ExecutionPolicy._allowed):
            for layer in self.layers:
                refusal = asked(layer, tool, needs)
                if refusal is not None:
                    return refusal
        if needs.requires_approval and self.approvers(tool) is None:
            text = "needs an approval, and nobody here can give it"
            refusal = PolicyError(text, tool=tool, code="policy.approval", need="approval", rule="approval")
            refusal.remedy = f"{tool}: {text}; pass an approver, or preapproved=({tool!r},)"
            return refusal
        return None

    def denial(self, old: str, tool: str) -> PolicyError | None:
        """Return why a tool may not run that had the name *old* before, if that is denied, or None.

        Args:
            tool: What it is called now.
        """
        require("execution policy", old=(old, STRING), tool=(tool, STRING))
        for layer in self.layers:
            refusal = layer._denied(canonical(old), NEEDLESS)
            if refusal is not None:
                return _denial(tool, refusal.rule)
        return None

    def _trust(self, tool: str, needs: ToolPolicy) -> PolicyError | None:
        if self.trusted or not needs.requires_trust:
            return None
        text = "requires a trusted host"
        refused = PolicyError(text, tool=tool, code="policy.trust", need="trust", rule="trust")
        refused.remedy = f"{tool}: {text}; pass trusted=True"
        return refused

    def _denied(self, tool: str, needs: ToolPolicy) -> PolicyError | None:
        denied = next((pattern for pattern in self.deny if self._matchers[pattern](tool)), None)
        if denied is None:
            return None
        return _denial(tool, denied)

    def _allowed(self, tool: str, needs: ToolPolicy) -> PolicyError | None:
        if self.allowing(tool):
            return None
        refused = PolicyError("is not allowed by the host", tool=tool, code="policy.not_allowed", rule="allow")
        refused.remedy = f"{tool}: no pattern of allow matches it; add {tool!r} to allow"
        return refused

    def allowing(self, name: str) -> str:
        """Return the first pattern of *allow* that matches a tool, or ``""``."""
        if type(name) is not str:
            require("execution policy", name=(name, STRING))
        tool = canonical(name)
        return next((pattern for pattern in self.allow if self._matchers[pattern](tool)), "")

    def approvers(self, name: str) -> tuple[Callable[..., Any], ...] | None:
        """Return who has to approve each call of a tool that requires it, the innermost first; None where nobody can.

        A layer that lists the tool in *preapproved* asks nobody; one that is within another and has no approver leaves
        it to that one.
        """
        if type(name) is not str:
            require("execution policy", name=(name, STRING))
        asking = [layer for layer in self.layers if canonical(name) not in layer.preapproved]
        if any(layer.approver is None and layer.within is None for layer in asking):
            return None
        return tuple(dict.fromkeys(layer.approver for layer in asking if layer.approver is not None))

    def uncovered(self, needs: Iterable[Capability], above: Iterable[Sequence[Grant]] = ()) -> Capability | None:
        """Return the first single need that not every layer and every tool above grants, or None.

        Args:
            above: What the tools above in a chain of calls hold.
        """
        asked = tuple(needs)
        held = chain((layer.grants for layer in self.layers), above)
        return next((lacking for grants in held if (lacking := uncovered(asked, grants)) is not None), None)

    def check(
        self,
        tool: Implementation,
        values: Sequence[Any],
        above: Iterable[Sequence[Grant]] = (),
        *,
        hidden: Collection[str] = (),
    ) -> Decision:
        """Return whether a call may run, and what decides it; nothing is changed by asking.

        Args:
            tool: Its name, what it needs, and the templates of that.
            values: One coerced value for each argument, in order.
            above: What the tools above in a chain of calls hold, see `CallFrame.held`.
            hidden: The names of secret arguments; scopes that they fill are not shown.

        Limits are not asked, for they depend on what was called before.
        """
        above = as_tuple(above)
        require(
            "execution policy",
            tool=(tool, TOOL),
            values=(values, VALUES),
            above=(above, HELD),
            hidden=(hidden, STRINGS),
        )
        refused = self.verdict(tool.name, tool.policy)
        if refused is not None:
            return Decision.of(refused)
        try:
            needs = tuple(need for template in tool.templates for need in template.fill(values))
        except ArgumentError as error:
            return Decision.of(error, tool.name)
        if self.uncovered(needs, above) is not None:
            from neuroscript.policy.refusals import missing, refusal

            lacks = missing(needs, [layer.grants for layer in self.layers], [(tool.name, each) for each in above])
            return Decision.of(refusal(tool.name, lacks, _filled_by(hidden, tool.templates, values)))
        asks = tool.policy.requires_approval and bool(self.approvers(tool.name))
        return Decision(tool.name, True, rule=self.allowing(tool.name), asks=asks)

    def unmatched(self, names: Iterable[str], old: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the patterns of *allow* and *deny*, and the names elsewhere, that match none of these names.

        Args:
            old: Names that tools had before; *deny* holds for them too.
        """
        names, old = as_tuple(names), as_tuple(old)
        require("execution policy", names=(names, STRINGS), old=(old, STRINGS))
        former = {canonical(name) for name in old}
        denied = {each for each in self.deny if any(map(self._matchers[each], former))}
        tools = {canonical(name) for name in names}
        limited = () if self.limits is None else self.limits.patterns
        others = {each: tool_matcher(each) for each in (*self.preapproved, *limited)}
        asked = {**self._matchers, **others}.items()
        return tuple(each for each, matches in asked if each not in denied and not any(map(matches, tools)))

    def unused(self, needs: Iterable[str]) -> tuple[Grant, ...]:
        """Return the grants that can cover none of these needs, which are templates as tools write them."""
        from neuroscript.policy.templates import may_cover

        needs = as_tuple(needs)
        require("execution policy", needs=(needs, STRINGS))
        texts = tuple(dict.fromkeys(needs))
        return tuple(grant for grant in self.grants if not any(may_cover(grant, text) for text in texts))


POLICY: Final = instance(ExecutionPolicy, "write ExecutionPolicy(...) or load_policy(path)")


def _filled_by(names: Collection[str], templates: Iterable[Any], values: Sequence[Any]) -> Collection[Capability]:
    if not names:
        return ()
    from neuroscript.policy.templates import filled_by

    return filled_by(names, templates, values)


def _denial(tool: str, pattern: str) -> PolicyError:
    refused = PolicyError("is denied by the host", tool=tool, code="policy.denied", rule=pattern)
    refused.remedy = f"{tool}: denied by the pattern {pattern!r} of deny"
    return refused


def _patterns(policy: ExecutionPolicy, name: str) -> Iterator[str]:
    given = getattr(policy, name)
    if not STRINGS.holds(given):
        yield from STRINGS.problems(name, given)
        return
    patterns = listed(given)
    object.__setattr__(policy, name, tuple(dict.fromkeys(map(canonical, patterns))))
    for pattern in patterns:
        if not is_tool_pattern(canonical(pattern)):
            yield f"{name}: {shown(pattern)} is not a valid pattern; use a name, or a pattern such as fs.*"


def _grants(policy: ExecutionPolicy) -> Iterator[str]:
    if not GRANTS.holds(policy.grants):
        yield from GRANTS.problems("grants", policy.grants)
        return
    grants = listed(policy.grants)
    parsed: list[Grant] = []
    for grant in grants:
        try:
            parsed.append(Grant.parse(grant) if isinstance(grant, str) else grant)
        except SpecError as error:
            yield from error.problems
    object.__setattr__(policy, "grants", tuple(parsed))


def _preapproved(policy: ExecutionPolicy) -> Iterator[str]:
    if not STRINGS.holds(policy.preapproved):
        yield from STRINGS.problems("preapproved", policy.preapproved)
        return
    names = listed(policy.preapproved)
    object.__setattr__(policy, "preapproved", tuple(dict.fromkeys(map(canonical, names))))
    for name in names:
        if not is_exact_tool(canonical(name)):
            yield f"preapproved: {shown(name)} is not the exact name of a tool; no pattern counts here"


def _limit_faults(limits: object) -> Iterator[str]:
    if limits is None:  # as most are, and then nothing is loaded for it
        return
    from neuroscript.policy.limits import Limits

    yield from instance(Limits, "write Limits(calls=100)").problems("limits", limits)
