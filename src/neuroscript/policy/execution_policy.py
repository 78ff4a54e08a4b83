"""Execution policies: what a host permits, and the decision about each call.

Decisions are pure: they depend only on the policy and the call, and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, cast

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
from neuroscript.io.text import quote_untrusted, type_name
from neuroscript.names import canonical
from neuroscript.policy.capabilities import Capability, Grant, first_uncovered
from neuroscript.policy.scopes import Covers, is_exact_tool, tool_matcher
from neuroscript.policy.tool_policy import ToolPolicy, as_names, pattern_problems, unique_values

if TYPE_CHECKING:
    from neuroscript.policy.flow_rules import FlowLabels, FlowRule
    from neuroscript.policy.isolation import Isolation, IsolationOf
    from neuroscript.policy.limits import Limits


REFUSAL: Final = instance(CallError)


RETRY: Final = one_of(*RETRIES)


@attrs.frozen
class Decision:
    """Whether a call may run, and why.

    Attributes:
        tool: The canonical name of the tool, or the requested name if the tool is unknown.
        allowed: Whether the call may run.
        rule: What decided: a pattern, a rule or a hook. For an allowed call, the pattern that allows it.
        code: The error code of a refusal, such as ``policy.denied``, or ``""``.
        need: The need of the call that is not permitted, or ``""``.
        text: The message of the refusal, or ``""``.
        retry: Who can make the call succeed.
        needs_approval: Whether the call requires approval first.
        remedy: What the host can change to permit the call, or ``""``. Show it to people, not to a model.
        needs: Every need that is not met, with scopes.
        grants: The narrowest grants that would permit the call.
        flows: What the call would send where, if rules about information flow require its approval.
    """

    tool: str
    allowed: bool
    rule: str = ""
    code: str = ""
    need: str = ""
    text: str = ""
    retry: Retry = "never"
    needs_approval: bool = False
    remedy: str = ""
    needs: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        texts = dict.fromkeys(("tool", "rule", "code", "need", "text", "remedy"), STRING)
        require_fields(
            "decision",
            self,
            allowed=FLAG,
            retry=RETRY,
            needs_approval=FLAG,
            needs=STRINGS,
            grants=STRINGS,
            flows=STRINGS,
            **texts,
        )

    @classmethod
    def of(cls, error: CallError, tool: str = "") -> Decision:
        """Return the decision that corresponds to an error."""
        require("decision", error=(error, REFUSAL), tool=(tool, STRING))
        text = str(error).removeprefix(f"{error.tool}: ")
        decision = cls(error.tool or tool, False, code=error.code, text=text, retry=error.retry, remedy=error.remedy)
        if not isinstance(error, PolicyError):
            return decision
        return attrs.evolve(decision, rule=error.rule, need=error.need, needs=error.needs, grants=error.grants)


def _permits(given: Collection[str | Grant]) -> tuple[Grant, ...]:
    """Declare the accepted types of grants to type checkers."""
    return cast(tuple[Grant, ...], given)


def _rules(given: str | Collection[FlowRule]) -> tuple[FlowRule, ...]:
    """Declare the accepted types of flow rules to type checkers."""
    return cast("tuple[FlowRule, ...]", given)


def _labels(given: Collection[FlowLabels]) -> tuple[FlowLabels, ...]:
    """Declare the accepted types of labels to type checkers."""
    return cast("tuple[FlowLabels, ...]", given)


def _isolation(given: Isolation | Collection[str] | None) -> Isolation | None:
    """Declare the accepted types of isolation to type checkers."""
    return cast("Isolation | None", given)


NEEDLESS: Final = ToolPolicy()


# Parameters and fields

GRANT: Final = Form("a string or a Grant", lambda grant: isinstance(grant, (str, Grant)))


GRANTS: Final = collection(GRANT, "strings or Grants")


HELD_GRANTS: Final = sequence(sequence(instance(Grant), "Grants"), "lists of Grants")


NEEDS: Final = instance(ToolPolicy)


TOOL: Final = Form("a ToolImplementation", lambda tool: isinstance(getattr(tool, "policy", None), ToolPolicy))


VALUES: Final = Form("a list or tuple", lambda values: isinstance(values, (list, tuple)))


class Implementation(Protocol):
    """The part of a tool that a policy looks at."""

    @property
    def name(self) -> str:
        """The canonical name."""

    @property
    def policy(self) -> ToolPolicy:
        """What the tool needs."""

    @property
    def templates(self) -> tuple[Any, ...]:
        """The compiled templates of these needs, filled in from the arguments of a call."""


@attrs.frozen(kw_only=True)
class ExecutionPolicy:
    """What a host permits: which tools may run, and which resources they may use.

    A tool pattern is a glob over canonical names in which ``*`` crosses dots: ``fs.*`` matches a group and all groups
    below it. Case and a leading ``tool.`` are ignored. *deny* takes precedence over *allow*.

    Attributes:
        allow: Patterns of tools that may run. If empty, no tool may run.
        deny: Patterns of tools that may not run.
        grants: What tools may do, as strings or as `Grant`; stored as `Grant`.
        trusted: Whether tools that require trust may run.
        limits: How much tools may use; None means ``Limits()``.
        preapproved: Exact names of tools that require approval but run without a prompt.
        approver: A callable, sync or async, that decides about the other tools that require approval. It takes an
            `ApprovalRequest` and returns an `Approval`. Without one, those calls are refused.
        within: The enclosing policy. A call must be permitted there too, so this policy can only narrow it.
        otherwise: What happens to a tool that no pattern in *allow* matches: it is refused, or each call of it needs an
            approval.
        flow: Rules about what may be sent where, as `FlowRule`; within one policy the first one that matches decides. A
            string is the name of a profile, such as ``"rule-of-two"``.
        labels: What tools read and where they send, as `FlowLabels`, in place of what they declare; the first pattern
            that matches decides.
        trust_textless: Whether results that cannot contain text carry no labels: booleans, integers with bounds, and
            values of a closed list. A model that reads one can still be influenced by it.
        isolate: Which tools run in worker processes, and what these may use, as `Isolation`; patterns of tools alone
            mean ``Isolation(tools=...)``. A tool that any enclosing policy isolates is isolated.

    Raises:
        SpecError: If a field is invalid. The error lists every problem.
    """

    allow: tuple[str, ...] = attrs.field(default=("*",), converter=as_names)
    deny: tuple[str, ...] = attrs.field(default=(), converter=as_names)
    grants: tuple[Grant, ...] = attrs.field(default=(), converter=_permits)
    trusted: bool = False
    limits: Limits | None = attrs.field(default=None, hash=False)
    preapproved: tuple[str, ...] = attrs.field(default=(), converter=as_names)
    approver: Callable[..., Any] | None = None
    within: ExecutionPolicy | None = None
    otherwise: Literal["refuse", "ask"] = "refuse"
    flow: tuple[FlowRule, ...] = attrs.field(default=(), converter=_rules)
    labels: tuple[FlowLabels, ...] = attrs.field(default=(), converter=_labels)
    trust_textless: bool = False
    isolate: Isolation | None = attrs.field(default=None, converter=_isolation)
    _matchers: dict[str, Covers] = attrs.field(init=False, eq=False, repr=False, factory=dict)
    _isolated: dict[Any, IsolationOf | None] = attrs.field(init=False, eq=False, repr=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        faults = [fault for field in ("allow", "deny") for fault in pattern_problems(self, field, "fs.*")]
        faults += (*_grants(self), *_preapproved(self))
        faults.extend(_limit_faults(self.limits))
        faults.extend(field_problems(self, trusted=FLAG, approver=optional(FUNCTION), within=optional(POLICY)))
        if self.flow != () or self.labels != () or self.trust_textless is not False or self.otherwise != "refuse":
            faults.extend(_flow_faults(self))
        if self.isolate is not None:
            faults.extend(_isolation_faults(self))
        if faults:
            raise SpecError("execution policy", faults)
        self._matchers.update((each, tool_matcher(each)) for each in (*self.allow, *self.deny))

    def narrowed(self, **changes: Any) -> ExecutionPolicy:
        """Return a copy with some fields changed, enclosed by this policy, so that it cannot permit more.

        Args:
            changes: Fields by name. Limits default to none; the limits of this policy continue to apply.

        >>> ExecutionPolicy(deny=("fs.*",)).narrowed(deny=()).precheck("fs.read", ToolPolicy()).code
        'policy.denied'
        """
        known = [field.name for field in attrs.fields(ExecutionPolicy) if field.init and field.name != "within"]
        unknown = [name for name in changes if name not in known]
        if unknown:
            names = ", ".join(map(quote_untrusted, unknown))
            raise SpecError("execution policy", [f"unknown field {names}; the fields are {', '.join(known)}"])
        return attrs.evolve(self, within=self, **{"limits": None, **changes})

    @property
    def layers(self) -> tuple[ExecutionPolicy, ...]:
        """This policy and the policies that enclose it, outermost last; each of them must permit a call."""
        return (self,) if self.within is None else (self, *self.within.layers)

    def least(self, limit: str, otherwise: Any = None) -> Any:
        """Return the lowest value of a limit per call, such as ``seconds`` or ``items``, over all layers."""
        if type(limit) is not str:
            require("execution policy", limit=(limit, STRING))
        try:
            given = [getattr(layer.limits, limit) for layer in self.layers if layer.limits is not None]
        except AttributeError:
            raise SpecError("execution policy", [f"{quote_untrusted(limit)} is not a limit"]) from None
        return min((each for each in given if each is not None), default=otherwise)

    @property
    def counts(self) -> bool:
        """Whether any layer has something to count."""
        return any(layer.limits is not None and not layer.limits.is_idle for layer in self.layers)

    @property
    def compares(self) -> bool:
        """Whether any layer compares calls with previous ones."""
        return any(layer.limits is not None and layer.limits.max_identical_calls is not None for layer in self.layers)

    @property
    def has_flow_rules(self) -> bool:
        """Whether any layer has rules about information flow, so that labels are tracked."""
        return any(layer.flow for layer in self.layers)

    @property
    def isolates(self) -> bool:
        """Whether any layer has settings of isolation, so that it may isolate a tool."""
        return any(layer.isolate is not None for layer in self.layers)

    def isolation_of(self, tool: str, origin: str, entry: str = "", old: Collection[str] = ()) -> IsolationOf | None:
        """Return how a tool is isolated, or None if it runs in the process of the host.

        A tool is isolated if any layer isolates it, with the strictest settings of these layers.

        Args:
            tool: Its canonical name.
            origin: The distribution or the file that provides it.
            entry: The name of the entry point that provides it, or ``""``.
            old: Its former names; a tool that was isolated by one of them stays isolated.
        """
        names = {"tool": tool, "origin": origin, "entry": entry}
        if not all(type(name) is str for name in names.values()) or not STRINGS.holds(old):
            require("execution policy", old=(old, STRINGS), **{key: (name, STRING) for key, name in names.items()})
        if not self.isolates:
            return None
        key = tool, origin, entry, tuple(old)
        if key not in self._isolated:
            from neuroscript.policy.isolation import strictest

            layers = [layer.isolate for layer in self.layers if layer.isolate is not None]
            self._isolated[key] = strictest(layers, *key)
        return self._isolated[key]

    def program_isolation(self, tool: str) -> IsolationOf | None:
        """Return how the programs that a tool starts in the host's process are confined, or None if they are not.

        Args:
            tool: Its canonical name.
        """
        if type(tool) is not str:
            require("execution policy", tool=(tool, STRING))
        layers = [layer.isolate for layer in self.layers if layer.isolate is not None]
        if not any(layer.programs for layer in layers):
            return None
        from neuroscript.policy.isolation import strictest_for_programs

        return strictest_for_programs(layers, tool)

    def asks(self, tool: str, needs: ToolPolicy) -> bool:
        """Return whether every call of a tool needs an approval, whatever its arguments are.

        Args:
            tool: Its canonical name.
            needs: Its policy.
        """
        return needs.requires_approval or any(layer._asks_unlisted(tool) for layer in self.layers)

    def _asks_unlisted(self, tool: str) -> bool:
        """Return whether this layer asks about a tool because no pattern in *allow* matches it."""
        return self.otherwise == "ask" and not self.allowing(tool)

    def inside(self, ceiling: ExecutionPolicy) -> ExecutionPolicy:
        """Return a copy with *ceiling* as its outermost layer."""
        require("execution policy", ceiling=(ceiling, POLICY))
        if any(layer is ceiling for layer in self.layers):
            return self
        return attrs.evolve(self, within=ceiling if self.within is None else self.within.inside(ceiling))

    def precheck(self, name: str, needs: ToolPolicy) -> PolicyError | None:
        """Return why the tool *name* may not run at all, or None. Arguments are not considered.

        The order of the checks is: trust, deny, allow, then whether a required approval has an approver.
        """
        if type(name) is not str or type(needs) is not ToolPolicy:
            require("execution policy", name=(name, STRING), needs=(needs, NEEDS))
        tool = canonical(name)
        for asked in (ExecutionPolicy._trust, ExecutionPolicy._denied, ExecutionPolicy._allowed):
            for layer in self.layers:
                refusal = asked(layer, tool, needs)
                if refusal is not None:
                    return refusal
        if self.asks(tool, needs) and self.approvers(tool, needs) is None:
            text = "requires approval, but there is no approver"
            is_unlisted = any(layer._asks_unlisted(tool) for layer in self.layers)
            rule = "otherwise" if is_unlisted else "approval"
            refusal = PolicyError(text, tool=tool, code="policy.approval", need="approval", rule=rule)
            change = f"add {tool!r} to allow" if is_unlisted else f"preapproved=({tool!r},)"
            refusal.remedy = f"{tool}: {text}; pass an approver, or {change}"
            return refusal
        return None

    def denial(self, old: str, tool: str) -> PolicyError | None:
        """Return the refusal of a tool whose former name *old* is denied, or None.

        Args:
            tool: Its current name.
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
        if self.allowing(tool) or self.otherwise == "ask":
            return None
        refused = PolicyError("is not allowed by the host", tool=tool, code="policy.not_allowed", rule="allow")
        refused.remedy = f"{tool}: no pattern in allow matches it; add {tool!r} to allow"
        return refused

    def allowing(self, name: str) -> str:
        """Return the first pattern in *allow* that matches a tool, or ``""``."""
        if type(name) is not str:
            require("execution policy", name=(name, STRING))
        tool = canonical(name)
        return next((pattern for pattern in self.allow if self._matchers[pattern](tool)), "")

    def approvers(self, name: str, needs: ToolPolicy | None = None) -> tuple[Callable[..., Any], ...] | None:
        """Return the approvers of a tool that requires approval, innermost first, or None if there are none.

        A layer that lists the tool in *preapproved* needs no approver, unless *allow* does not match the tool and the
        layer asks about all such tools: the policy of a task has the *preapproved* of the policy that it narrows. A
        layer without an approver defers to the layer that encloses it.

        Args:
            needs: The policy of the tool; None means one that requires approval. For a tool that requires none, only
                the layers ask that ask about all tools outside their *allow*.
        """
        if type(name) is not str or (needs is not None and type(needs) is not ToolPolicy):
            require("execution policy", name=(name, STRING), needs=(needs, optional(NEEDS)))
        tool = canonical(name)
        if needs is not None and not needs.requires_approval:
            return self.approvers_of(layer for layer in self.layers if layer._asks_unlisted(tool))
        asking = [layer for layer in self.layers if tool not in layer.preapproved or layer._asks_unlisted(tool)]
        if any(layer.approver is None and layer.within is None for layer in asking):
            return None
        return distinct(layer.approver for layer in asking if layer.approver is not None)

    def approvers_of(self, asking: Iterable[ExecutionPolicy]) -> tuple[Callable[..., Any], ...] | None:
        """Return the approvers of some layers, innermost first, or None if one has none.

        A layer without an approver has that of the nearest layer around it.
        """
        found: list[Callable[..., Any]] = []
        for layer in asking:
            nearest = next((each.approver for each in layer.layers if each.approver is not None), None)
            if nearest is None:
                return None
            found.append(nearest)
        return distinct(found)

    def uncovered_need(self, needs: Iterable[Capability], above: Iterable[Sequence[Grant]] = ()) -> Capability | None:
        """Return the first single need that a layer or a tool above does not grant, or None.

        Args:
            above: The grants of the tools above in a chain of calls.
        """
        asked = tuple(needs)
        held = chain((layer.grants for layer in self.layers), above)
        return next((lacking for grants in held if (lacking := first_uncovered(asked, grants)) is not None), None)

    def check(
        self,
        tool: Implementation,
        values: Sequence[Any],
        above: Iterable[Sequence[Grant]] = (),
        *,
        hidden: Collection[str] = (),
    ) -> Decision:
        """Return whether a call may run, and why. This changes nothing.

        Args:
            tool: The name, the needs and the capability templates of a tool.
            values: One coerced value for each argument, in order.
            above: The grants of the tools above in a chain of calls, see ``CallFrame.grants``.
            hidden: The names of secret arguments. Scopes that they fill are not shown.

        Limits are not checked, because they depend on previous calls.
        """
        above = as_tuple(above)
        require(
            "execution policy",
            tool=(tool, TOOL),
            values=(values, VALUES),
            above=(above, HELD_GRANTS),
            hidden=(hidden, STRINGS),
        )
        refused = self.precheck(tool.name, tool.policy)
        if refused is not None:
            return Decision.of(refused)
        try:
            needs = tuple(need for template in tool.templates for need in template.fill(values))
        except ArgumentError as error:
            return Decision.of(error, tool.name)
        if self.uncovered_need(needs, above) is not None:
            from neuroscript.policy.refusals import find_missing_needs, refusal

            lacks = find_missing_needs(
                needs, [layer.grants for layer in self.layers], [(tool.name, each) for each in above]
            )
            return Decision.of(refusal(tool.name, lacks, _filled_by(hidden, tool.templates, values)))
        needs_approval = self.asks(tool.name, tool.policy) and bool(self.approvers(tool.name, tool.policy))
        return Decision(tool.name, True, rule=self.allowing(tool.name), needs_approval=needs_approval)

    def unmatched(self, names: Iterable[str], old: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the patterns in *allow* and *deny*, and the names in other fields, that match none of these names.

        Args:
            old: Former names of tools; *deny* and *isolate* also apply to them.

        Patterns of plugins in *isolate* are not considered.
        """
        names, old = as_tuple(names), as_tuple(old)
        require("execution policy", names=(names, STRINGS), old=(old, STRINGS))
        former = {canonical(name) for name in old}
        isolated = () if self.isolate is None else (*self.isolate.tools, *self.isolate.exclude)
        tools = {canonical(name) for name in names}
        limited = () if self.limits is None else self.limits.patterns
        labelled = (each.tools for each in self.labels)
        networked = () if self.isolate is None else self.isolate.network
        others = {each: tool_matcher(each) for each in (*self.preapproved, *limited, *labelled, *isolated, *networked)}
        asked = {**self._matchers, **others}
        matched = {each for each in (*self.deny, *isolated) if any(map(asked[each], former))}
        return tuple(each for each, matches in asked.items() if each not in matched and not any(map(matches, tools)))

    def unused(self, needs: Iterable[str]) -> tuple[Grant, ...]:
        """Return the grants that can cover none of these needs, which are capability templates of tools."""
        from neuroscript.policy.templates import may_cover

        needs = as_tuple(needs)
        require("execution policy", needs=(needs, STRINGS))
        texts = tuple(dict.fromkeys(needs))
        return tuple(grant for grant in self.grants if not any(may_cover(grant, text) for text in texts))


def distinct(approvers: Iterable[Callable[..., Any]]) -> tuple[Callable[..., Any], ...]:
    """Return approvers in order, each once."""
    found: dict[object, Callable[..., Any]] = {}
    for each in approvers:
        found.setdefault(approver_key(each), each)
    return tuple(found.values())


def approver_key(approver: Callable[..., Any]) -> object:
    """Return what identifies an approver while it exists: it may have no hash, and a method is new on each access."""
    return approver if isinstance(approver, MethodType) else id(approver)


POLICY: Final = instance(ExecutionPolicy, "write ExecutionPolicy(...) or load_policy(path)")


def _filled_by(names: Collection[str], templates: Iterable[Any], values: Sequence[Any]) -> Collection[Capability]:
    if not names:
        return ()
    from neuroscript.policy.templates import needs_filled_by

    return needs_filled_by(names, templates, values)


def _denial(tool: str, pattern: str) -> PolicyError:
    refused = PolicyError("is denied by the host", tool=tool, code="policy.denied", rule=pattern)
    refused.remedy = f"{tool}: denied by the pattern {pattern!r} in deny"
    return refused


def _grants(policy: ExecutionPolicy) -> Iterator[str]:
    if not GRANTS.holds(policy.grants):
        yield from GRANTS.problems("grants", policy.grants)
        return
    grants = unique_values(policy.grants)
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
    names = unique_values(policy.preapproved)
    object.__setattr__(policy, "preapproved", tuple(dict.fromkeys(map(canonical, names))))
    for name in names:
        if not is_exact_tool(canonical(name)):
            quoted = quote_untrusted(name)
            yield f"preapproved: {quoted} is not the exact name of a tool; patterns are not supported here"


def _flow_faults(policy: ExecutionPolicy) -> Iterator[str]:
    from neuroscript.policy.flow_rules import FLOW_PROFILES, FlowLabels, FlowRule

    yield from field_problems(policy, otherwise=one_of("refuse", "ask"), trust_textless=FLAG)
    if isinstance(policy.flow, str):
        rules = FLOW_PROFILES.get(policy.flow)
        if rules is None:
            yield f"flow: {quote_untrusted(policy.flow)} is not a profile ({', '.join(FLOW_PROFILES)})"
        else:
            object.__setattr__(policy, "flow", rules)
    kinds: tuple[tuple[str, type, str], ...] = (("flow", FlowRule, "FlowRules"), ("labels", FlowLabels, "FlowLabels"))
    for name, kind, words in kinds:
        given = getattr(policy, name)
        if name == "flow" and isinstance(given, str):
            continue
        faults = [*sequence(instance(kind), words).problems(name, given)]
        yield from faults
        if not faults:
            object.__setattr__(policy, name, tuple(given))


def _limit_faults(limits: object) -> Iterator[str]:
    if limits is None:  # the common case, which avoids an import
        return
    from neuroscript.policy.limits import Limits

    yield from instance(Limits, "write Limits(calls=100)").problems("limits", limits)


def _isolation_faults(policy: ExecutionPolicy) -> Iterator[str]:
    """Convert patterns of tools to an `Isolation`, and yield each problem with *isolate*."""
    from neuroscript.policy.isolation import Isolation

    given: Any = policy.isolate
    if isinstance(given, Isolation):
        return
    if not STRINGS.accepts(given):
        yield f"isolate must be a collection of strings or an Isolation, not {type_name(given)}"
    elif not STRINGS.holds(given):
        yield from STRINGS.problems("isolate", given)
    else:
        try:
            isolation = Isolation(tools=given) if given else None
        except SpecError as error:
            yield from (f"isolate: {problem.removeprefix('tools: ')}" for problem in error.problems)
        else:
            object.__setattr__(policy, "isolate", isolation)
