"""What a host permits: decisions that depend on nothing else, and change nothing.

Source: contract section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, Protocol, cast

import attrs

from neuroscript.capability import Capability, Grant, scope_key, uncovered
from neuroscript.decision import Decision
from neuroscript.display import shown
from neuroscript.errors import ArgumentError, PolicyError, SpecError
from neuroscript.names import canonical
from neuroscript.needs import ToolPolicy, listed
from neuroscript.scopes import Covers, is_exact_tool, is_tool_pattern, tool_matcher
from neuroscript.walk import type_name


def _permits(given: Collection[str | Grant]) -> tuple[Grant, ...]:
    """The same for grants."""
    return cast(tuple[Grant, ...], given)


NEEDLESS: Final = ToolPolicy()


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
    limits: Any = attrs.field(default=None, hash=False)
    preapproved: tuple[str, ...] = ()
    approver: Callable[..., Any] | None = None
    within: ExecutionPolicy | None = None
    _matchers: dict[str, Covers] = attrs.field(init=False, eq=False, repr=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        faults = [*_patterns(self, "allow"), *_patterns(self, "deny"), *_grants(self), *_preapproved(self)]
        faults.extend(_limit_faults(self.limits))
        if type(self.trusted) is not bool:
            faults.append("trusted must be True or False")
        if self.approver is not None and not callable(self.approver):
            faults.append("approver can not be called")
        if self.within is not None and not isinstance(self.within, ExecutionPolicy):
            faults.append("within must be an ExecutionPolicy")
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
        return attrs.evolve(self, within=self, **{"limits": None, **changes})

    @property
    def layers(self) -> tuple[ExecutionPolicy, ...]:
        """This policy and those that it is within, the outermost last; each of them has to permit a call."""
        return (self,) if self.within is None else (self, *self.within.layers)

    def least(self, limit: str, otherwise: Any = None) -> Any:
        """Return the lowest of a limit of one call, such as ``seconds`` or ``items``, by all layers."""
        given = (getattr(layer.limits, limit) for layer in self.layers if layer.limits is not None)
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
        if any(layer is ceiling for layer in self.layers):
            return self
        return attrs.evolve(self, within=ceiling if self.within is None else self.within.inside(ceiling))

    def verdict(self, name: str, needs: ToolPolicy) -> PolicyError | None:
        """Return why the tool *name* may not run at all, or None; no argument is looked at.

        Trust is asked first, then what is denied, then what is allowed, then whether each call needs an approval that
        nobody can give here.

        Source: the order is that of contract section 2; upstream ``CanCall``.
        """
        tool = canonical(name)
        for asked in (ExecutionPolicy._trust, ExecutionPolicy._denied, ExecutionPolicy._allowed):
            for layer in self.layers:
                refusal = asked(layer, tool, needs)
                if refusal is not None:
                    return refusal
        if needs.requires_approval and self.approvers(tool) is None:
            text = "needs an approval, and nobody here can give it"
            return PolicyError(text, tool=tool, code="policy.approval", need="approval", rule="approval")
        return None

    def denial(self, old: str, tool: str) -> PolicyError | None:
        """Return why a tool may not run that had the name *old* before, if that is denied, or None.

        Args:
            tool: What it is called now.
        """
        for layer in self.layers:
            refusal = layer._denied(canonical(old), NEEDLESS)
            if refusal is not None:
                return PolicyError("is denied by the host", tool=tool, code=refusal.code, rule=refusal.rule)
        return None

    def _trust(self, tool: str, needs: ToolPolicy) -> PolicyError | None:
        if self.trusted or not needs.requires_trust:
            return None
        return PolicyError("needs a host that trusts it", tool=tool, code="policy.trust", need="trust", rule="trust")

    def _denied(self, tool: str, needs: ToolPolicy) -> PolicyError | None:
        denied = next((pattern for pattern in self.deny if self._matchers[pattern](tool)), None)
        if denied is None:
            return None
        return PolicyError("is denied by the host", tool=tool, code="policy.denied", rule=denied)

    def _allowed(self, tool: str, needs: ToolPolicy) -> PolicyError | None:
        if self.allowing(tool):
            return None
        return PolicyError("is not allowed by the host", tool=tool, code="policy.not_allowed", rule="allow")

    def allowing(self, name: str) -> str:
        """Return the first pattern of *allow* that matches a tool, or ``""``."""
        tool = canonical(name)
        return next((pattern for pattern in self.allow if self._matchers[pattern](tool)), "")

    def approvers(self, name: str) -> tuple[Callable[..., Any], ...] | None:
        """Return who has to approve each call of a tool that requires it, the innermost first; None where nobody can.

        A layer that lists the tool in *preapproved* asks nobody; one that is within another and has no approver leaves
        it to that one.
        """
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

    def check(self, tool: Implementation, values: Sequence[Any], above: Iterable[Sequence[Grant]] = ()) -> Decision:
        """Return whether a call may run, and what decides it; nothing is changed by asking.

        Args:
            tool: Its name, what it needs, and the templates of that.
            values: One coerced value for each argument, in order.
            above: What the tools above in a chain of calls hold, see `CallFrame.held`.

        Limits are not asked, for they depend on what was called before.
        """
        refusal = self.verdict(tool.name, tool.policy)
        if refusal is not None:
            return Decision.of(refusal)
        try:
            needs = tuple(need for template in tool.templates for need in template.fill(values))
        except ArgumentError as error:
            return Decision.of(error, tool.name)
        lacking = self.uncovered(needs, above)
        if lacking is not None:
            return Decision.of(refused(tool.name, lacking))
        asks = tool.policy.requires_approval and bool(self.approvers(tool.name))
        return Decision(tool.name, True, rule=self.allowing(tool.name), asks=asks)

    def unmatched(self, names: Iterable[str], old: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the patterns of *allow* and *deny*, and the names elsewhere, that match none of these names.

        Args:
            old: Names that tools had before; *deny* holds for them too.
        """
        former = {canonical(name) for name in old}
        denied = {each for each in self.deny if any(map(self._matchers[each], former))}
        tools = {canonical(name) for name in names}
        limited = () if self.limits is None else self.limits.patterns
        others = {each: tool_matcher(each) for each in (*self.preapproved, *limited)}
        asked = {**self._matchers, **others}.items()
        return tuple(each for each, matches in asked if each not in denied and not any(map(matches, tools)))

    def unused(self, needs: Iterable[str]) -> tuple[Grant, ...]:
        """Return the grants that can cover none of these needs, which are templates as tools write them."""
        from neuroscript.templates import may_cover

        texts = tuple(dict.fromkeys(needs))
        return tuple(grant for grant in self.grants if not any(may_cover(grant, text) for text in texts))


def refused(tool: str, need: Capability) -> PolicyError:
    """Return the refusal of a tool for a single need that no grant covers.

    A scope that no grant can cover is the caller's to mend.

    Source: contract section 6.
    """
    text = told(need)
    if scope_key(need) is None:
        said = f"needs {text} of something that no grant can mean, such as a path that leaves the sandbox"
        return PolicyError(said, tool=tool, code="policy.capability", need=text, rule="grants", retry="model")
    return PolicyError(f"needs {text}", tool=tool, code="policy.capability", need=text, rule="grants")


def told(need: Capability) -> str:
    """Return a single need as errors and records tell it: the resource and the verb.

    The scope may be a value of the call, so it is shown of a path alone, and only if that stays below the sandbox.
    """
    text = f"{need.resource}:{need.verbs[0]}"
    if need.resource == "fs" and need.scopes and scope_key(need) is not None:
        return f"{text}:{shown(need.scopes[0])}"
    return text


def fault(tool: str, gate: str, error: BaseException) -> PolicyError:
    """Return the refusal of a call for a gate that failed."""
    text = f"can not run, for what decides about it failed ({gate}, {type_name(error)})"
    return PolicyError(text, tool=tool, code="policy.fault", rule=gate)


def _patterns(policy: ExecutionPolicy, name: str) -> Iterator[str]:
    patterns = listed(getattr(policy, name), str)
    if patterns is None:
        yield f"{name} must be a tuple of texts"
        return
    object.__setattr__(policy, name, tuple(dict.fromkeys(map(canonical, patterns))))
    for pattern in patterns:
        if not is_tool_pattern(canonical(pattern)):
            yield f"{name}: {shown(pattern)} matches no tool; write a name, or a pattern such as fs.*"


def _grants(policy: ExecutionPolicy) -> Iterator[str]:
    grants = listed(policy.grants, str, Grant)
    if grants is None:
        yield "grants must be a tuple of texts or Grants"
        return
    parsed: list[Grant] = []
    for grant in grants:
        try:
            parsed.append(Grant.parse(grant) if isinstance(grant, str) else grant)
        except SpecError as error:
            yield from error.problems
    object.__setattr__(policy, "grants", tuple(parsed))


def _preapproved(policy: ExecutionPolicy) -> Iterator[str]:
    names = listed(policy.preapproved, str)
    if names is None:
        yield "preapproved must be a tuple of texts"
        return
    object.__setattr__(policy, "preapproved", tuple(dict.fromkeys(map(canonical, names))))
    for name in names:
        if not is_exact_tool(canonical(name)):
            yield f"preapproved: {shown(name)} is not the exact name of a tool; no pattern counts here"


def _limit_faults(limits: object) -> Iterator[str]:
    if limits is None:  # as most are, and then nothing is loaded for it
        return
    from neuroscript.limits import Limits

    if not isinstance(limits, Limits):
        yield "limits must be Limits"
