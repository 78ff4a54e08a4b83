"""The call pipeline of a tool under a policy with flow rules: it tracks labels and asks the rules.

A call begins with the labels of its arguments: those that its caller states, those of the call that it is nested in,
those of the files that it needs, and those of the texts that occur in it. It adds what it reads through its Runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from neuroscript.calls.gate import CallStart, Gate
from neuroscript.calls.observers import Observers
from neuroscript.calls.pipeline import CallPipeline
from neuroscript.calls.steps import END, Caller, CallFrame, Steps, StreamItem
from neuroscript.coercion.types import ArgType
from neuroscript.errors import CallError, PolicyError
from neuroscript.flow.labels import NO_LABELS, Labels, Source, labels_from, union
from neuroscript.flow.state import CallLabels, CheckedValues, SessionFlow
from neuroscript.policy.capabilities import Capability, scope_key, split_need
from neuroscript.policy.execution_policy import ExecutionPolicy, distinct
from neuroscript.policy.flow_rules import Flow, ToolFlow, find_flows, flow_of, has_rules
from neuroscript.policy.labels import is_covered
from neuroscript.policy.refusals import check_failed_error
from neuroscript.policy.scopes import SURROGATE
from neuroscript.runtime.records import CallRecord, Kind, labelled_record
from neuroscript.spec.binding import Repair
from neuroscript.spec.tool_spec import ToolSpec
from neuroscript.tools.tool import ToolImplementation

if TYPE_CHECKING:
    from neuroscript.approval.request import Approver
    from neuroscript.calls.streams import StreamAccount

NO_APPROVER: Final = "which needs an approval, but there is no approver"
NOT_WHILE_IT_RUNS: Final = "which needs an approval, and none can be given while the tool runs"

MAX_NAMED_SOURCES: Final = 3
"""Sources that the sentence about a flow names; the others are counted."""


class FlowTracker:
    """The labels of one tool under one policy, and what the rules of the policy say about its calls.

    Attributes:
        sources: What its results carry.
        sinks: Where its calls send their arguments.
        by_session: Whether a rule assumes that each call carries everything that the session has read.
    """

    def __init__(self, tool: ToolImplementation, policy: ExecutionPolicy) -> None:
        self._tool = tool.name
        self._policy = policy
        self._layers = policy.layers
        self.flow: ToolFlow = flow_of(policy, tool.name, tool.policy)
        self.sources, self.sinks = self.flow.sources, self.flow.sinks
        self.by_session, self.by_text = has_rules(policy, "session"), has_rules(policy, "values")
        self._runs_programs = "exec" in tool.policy.effects
        self._is_free = is_textless(tool.spec) and all(layer.trust_textless for layer in self._layers if layer.flow)

    # Before the function

    def carried(self, frame: CallFrame, values: Sequence[Any], given: Labels) -> Labels:
        """Return what the arguments of a call carry.

        Args:
            given: The labels that the caller states.
        """
        flow = state_of(frame)
        found = given
        if self._runs_programs:  # which read files without the Runtime
            found = union(found, of_files(flow, needed_paths(frame.needs, "read")))
        above = None if frame.parent is None else flow.opened.get(frame.parent)
        if above is not None:
            return union(found, above.all)
        if self.by_text:
            found = union(found, flow.uncompared)
            if not flow.texts.is_empty:
                found = union(found, flow.texts.search(values))
        return found

    def expected(self, frame: CallFrame, labels: Labels) -> Labels:
        """Return what a call will carry: these labels, and those of the files that its arguments name for reading.

        So an approver can be asked before the tool reads them.
        """
        if not (self.sinks and frame.needs):
            return labels
        return union(labels, of_files(state_of(frame), needed_paths(frame.needs, "read", patterns=False)))

    def find(self, flow: SessionFlow, labels: Labels) -> tuple[Flow, ...]:
        """Return what refuses a call with these labels or requires its approval, the strictest first."""
        if not self.sinks:
            return ()
        of_session = union(labels, flow.read) if self.by_session else labels
        return find_flows(self._layers, self.sinks, labels, of_session)

    def find_new(self, flow: SessionFlow, call: CallLabels, labels: Labels) -> tuple[Flow, ...]:
        """Return the same for labels that a call reads while it runs, without what an approver has let pass."""
        passed = call.endorsed
        new = {name for name, sources in labels.items() if not set(passed.get(name, ())).issuperset(sources)}
        return tuple(each for each in self.find(flow, call.read) if not new.isdisjoint(each.labels))

    def approvers(self, found: Sequence[Flow]) -> tuple[Callable[..., Any], ...] | None:
        """Return who must approve a call because of what was found, or None if a policy has no approver."""
        asking = sorted({flow.layer for flow in found if flow.then == "ask"})
        return self._policy.approvers_of(self._layers[index] for index in asking)

    def sentences(self, flow: SessionFlow, found: Sequence[Flow], labels: Labels) -> tuple[str, ...]:
        """Return what a call would send where, one sentence for each rule."""
        return tuple(dict.fromkeys(f"sends {_what(each, labels, flow)} to {each.sink}" for each in found))

    def refusal_of(self, flow: SessionFlow, found: Sequence[Flow], labels: Labels) -> PolicyError | None:
        """Return the refusal of a call, or None if approvers can decide."""
        if found[0].then == "refuse":
            return self.refusal(flow, found, labels)
        return self.refusal(flow, found, labels, NO_APPROVER) if self.approvers(found) is None else None

    def refusal(self, flow: SessionFlow, found: Sequence[Flow], labels: Labels, why: str = "") -> PolicyError:
        """Return the refusal of a call.

        Args:
            why: Why an approval is not possible, if a rule requires one.
        """
        first = found[0]
        would = f"would send {_what(first, labels, flow)} to {first.sink}"
        text = f"{would}, {why}" if why else f"{would}, which the host does not allow"
        error = PolicyError(text, tool=self._tool, code="policy.flow", need=f"flow:{first.sink}", rule=str(first.rule))
        change = "pass an approver, or put" if first.then == "ask" else "put"
        allowing = f"a rule before it with {' and a rule with '.join(_allowing(found))}"
        error.remedy = f"{self._tool}: {would} (rule: {first.rule}); to permit it, {change} {allowing}"
        return error

    # After the function

    def own(self, call: int) -> Labels:
        """Return what the tool itself reads in a call of this number."""
        return labels_from(self.sources, Source(self._tool, call)) if self.sources else NO_LABELS

    def passed(self, labels: Labels) -> Labels:
        """Return what a result carries if its call has these labels."""
        free = tuple(labels) if self._is_free else self.flow.declassifies
        return {name: each for name, each in labels.items() if not is_covered(name, free)} if free else labels

    def end(self, frame: CallFrame, call: CallLabels, result: Any, error: BaseException | None) -> None:
        """Hand the labels of a call that has ended to whoever reads its result or its error."""
        flow = state_of(frame)
        labels = call.all
        if error is None and labels:
            labels = self.passed(labels)
        call.result = labels
        self.label_files(frame, call)
        above = None if frame.parent is None else flow.opened.get(frame.parent)
        if above is not None:
            flow.add(above, labels)
        elif labels and not call.is_exact:
            flow.saw(result if error is None else _text_of(error), labels, by_text=self.by_text)

    def label_files(self, frame: CallFrame, call: CallLabels) -> None:
        """Label the files that a program writes without the Runtime."""
        if self._runs_programs:
            for path in needed_paths(frame.needs, "write"):
                state_of(frame).files.add(path, call.all)


def state_of(frame: CallFrame) -> SessionFlow:
    """Return what the session of a call knows about information flow."""
    return flow_of_session(frame.session)


def flow_of_session(session: Caller) -> SessionFlow:
    """Return what a session under flow rules knows about information flow."""
    flow = session.memory.flow
    assert flow is not None  # a session whose policy has flow rules has it
    return flow


def of_files(flow: SessionFlow, paths: Iterable[str]) -> Labels:
    """Return the labels of files."""
    found = NO_LABELS
    for path in paths:
        found = union(found, flow.files.of(path))
    return found


def needed_paths(needs: tuple[Capability, ...], verb: str, *, patterns: bool = True) -> Iterator[str]:
    """Yield the paths of files that a call needs for an operation.

    Args:
        patterns: Whether a pattern stands for the directory above it; otherwise it is left out.
    """
    for each in chain.from_iterable(map(split_need, needs)):
        if each.resource == "fs" and each.verbs[0] == verb:
            key = scope_key(each)
            if key is not None:
                whole = SURROGATE.split(key, maxsplit=1)[0]
                if whole == key or patterns:
                    yield (key if whole == key else whole.rpartition("/")[0]).rstrip("/") or "."


def is_textless(spec: ToolSpec) -> bool:
    """Return whether the result of a tool cannot contain text of others: a boolean, a bounded integer, or a choice."""
    if spec.stream:
        return False
    rule = spec.returns
    if spec.return_type is ArgType.BOOL:
        return True
    if rule is None:
        return False
    return bool(rule.choices) or (
        spec.return_type is ArgType.INT and rule.lowest is not None and rule.highest is not None
    )


def _what(found: Flow, labels: Labels, flow: SessionFlow) -> str:
    """Return the labels of a flow and the calls that they come from: ``untrusted data from web.get (call 3)``."""
    known = labels if found.rule.by == "values" else union(labels, flow.read)
    sources = tuple(dict.fromkeys(source for name in found.labels for source in known.get(name, ())))
    named = [f"{each.tool} (call {each.call})" if each.call else each.tool for each in sources[:MAX_NAMED_SOURCES]]
    more = len(sources) - MAX_NAMED_SOURCES
    origin = f" from {_listed([*named, *([f'{more} more'] if more > 0 else [])])}" if named else ""
    return f"{' and '.join(found.labels)} data{origin}"


def _shown(found: Sequence[Flow], flow: SessionFlow) -> Labels:
    """Return what the sentences about some flows name of everything that the session has read."""
    names = (name for each in found if each.rule.by == "session" for name in each.labels)
    return {name: flow.read[name] for name in names if name in flow.read}


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _allowing(found: Sequence[Flow]) -> Iterator[str]:
    """Yield the keys of the rules that allow what was found, as far as it is as strict as the first.

    A rule has the same `by` as the one that it precedes: by values, it would not match a call without labelled text.
    """
    sinks: dict[tuple[str, str], list[str]] = {}
    for each in found:
        if each.then == found[0].then:
            labels = _quoted(dict.fromkeys(map("+".join, each.rule.matched(each.labels, each.sink))))
            by = "" if each.rule.by == "values" else f', by = "{each.rule.by}"'
            sinks.setdefault((labels, by), []).append(each.sink)
    for (labels, by), to in sinks.items():
        yield f'from = [{labels}], to = [{_quoted(dict.fromkeys(to))}], then = "allow"{by}'


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _text_of(error: BaseException) -> str:
    return str(error) if isinstance(error, CallError) else ""


class FlowGate(Gate):
    """The checks and observers of one tool under a policy with flow rules, which also keep the labels of its calls.

    Attributes:
        tracker: The labels of the tool.
    """

    tracks_flow: ClassVar[bool] = True

    def __init__(self, tool: ToolImplementation, origin: str, policy: ExecutionPolicy, watch: Observers) -> None:
        super().__init__(tool, origin, policy, watch)
        self.tracker = FlowTracker(tool, policy)

    def leave(self, frame: CallFrame, error: BaseException | None = None, result: Any = None) -> None:
        """Hand on the labels of the call, release what it reserves, and report its outcome."""
        opened = state_of(frame).opened
        try:
            if frame in opened:
                self.tracker.end(frame, opened[frame], None if result is END else result, error)
            super().leave(frame, error, result)
        finally:
            opened.pop(frame, None)

    def settle(self, frame: CallFrame, error: BaseException | None, result: Any = None) -> tuple[str, ...]:
        """Hand on the labels of a compiled call that has used its Runtime, and return their names."""
        call = state_of(frame).opened.pop(frame)
        self.tracker.end(frame, call, result, error)
        return call.names

    def refused(
        self,
        frame: CallFrame,
        error: CallError,
        values: tuple[Any, ...] | None = None,
        made: tuple[Repair, ...] = (),
    ) -> CallError:
        """Report that a call was refused, with the labels of its arguments if it was checked."""
        if not isinstance(values, CheckedValues):
            return super().refused(frame, error, values, made)
        opened = state_of(frame).opened
        own = frame if frame.call else frame.numbered(next(self._watch.numbers))
        opened[own] = values.call
        try:
            return super().refused(own, error, values, made)
        finally:
            opened.pop(own, None)

    def _begin(
        self, frame: CallFrame, values: tuple[Any, ...], time: float, digest: bytes, made: tuple[Repair, ...]
    ) -> None:
        flow = state_of(frame)
        call = flow.opened[frame] = values.call if isinstance(values, CheckedValues) else CallLabels()
        call.own, call.tracker = self.tracker.own(frame.call), self.tracker
        self.tracker.label_files(frame, call)  # another call can read them while the program runs
        if call.own and not call.read and frame.parent is None and self.tracker.by_text:
            flow.texts.said(list(values))  # what the result repeats of them was not an outsider's word
        try:
            super()._begin(frame, values, time, digest, made)
        except BaseException:
            flow.opened.pop(frame, None)
            raise

    def _record(
        self, kind: Kind, frame: CallFrame, began: CallStart, code: str, rule: str, seconds: float
    ) -> CallRecord:
        record = super()._record(kind, frame, began, code, rule, seconds)
        call = state_of(frame).opened.get(frame)
        if call is None:
            return record
        return labelled_record(record, call.names)


@attrs.frozen(eq=False, repr=False)
class FlowPipeline(CallPipeline):
    """A call pipeline that tracks labels.

    Attributes:
        tracker: The labels of the tool.
    """

    tracks_flow: ClassVar[bool] = True
    tracker: FlowTracker = attrs.field(init=False)
    may_ask: bool = attrs.field(init=False)

    @tracker.default
    def _find_tracker(self) -> FlowTracker:
        assert isinstance(self.gate, FlowGate)
        return self.gate.tracker

    @may_ask.default
    def _find_whether_it_may_ask(self) -> bool:
        return bool(self.approvers or self.tracker.sinks)

    @property
    def is_direct(self) -> bool:
        """Whether the pipeline can be compiled, for calls without labels: the tool reads nothing and sends nothing."""
        return super().is_direct and not (self.tracker.sources or self.tool.templates)

    def steps(self, values: tuple[Any, ...], frame: CallFrame, made: tuple[Repair, ...] = ()) -> Steps:
        """Run one call as `CallPipeline.steps` does, with the labels that its caller has stated for it."""
        call = state_of(frame).prepared.pop(frame, None) or CallLabels()
        return self._tracked(values, self._fit(values, frame), made, call)

    def _tracked(self, values: tuple[Any, ...], frame: CallFrame, made: tuple[Repair, ...], call: CallLabels) -> Steps:
        call.read = self._carried(frame, values, call)
        if self.tracker.by_session:
            call.session = state_of(frame).read
        return (yield from self._steps(CheckedValues.of(values, call), frame, made))

    def asked(self, values: tuple[Any, ...], frame: CallFrame) -> tuple[tuple[Approver, ...], tuple[str, ...]]:
        """Return who must approve a call, and what it would send where.

        Raises:
            PolicyError: A rule refuses the call, or requires an approval, but there is no approver.
        """
        flow, tracker = state_of(frame), self.tracker
        call = _call_of(values)
        labels = tracker.expected(frame, call.read)
        found = tracker.find(flow, labels)
        call.endorsed = NO_LABELS  # an approver may have replaced the arguments that carried them
        if not found:
            return self.approvers, ()
        refusal = tracker.refusal_of(flow, found, labels)
        if refusal is not None:
            raise self.refused(frame, refusal, values)
        call.endorsed = union(labels, _shown(found, flow))
        approvers = tracker.approvers(found) or ()
        return distinct((*self.approvers, *approvers)), tracker.sentences(flow, found, labels)

    def flows(self, frame: CallFrame, values: tuple[Any, ...]) -> tuple[PolicyError | None, tuple[str, ...]]:
        """Return why a rule refuses a call, and what it would send where if a rule asks."""
        flow, tracker = state_of(frame), self.tracker
        labels = tracker.expected(frame, tracker.carried(frame, values, NO_LABELS))
        found = tracker.find(flow, labels)
        refusal = tracker.refusal_of(flow, found, labels) if found else None
        return refusal, () if refusal is not None else tracker.sentences(flow, found, labels)

    def rebind(self, arguments: object, frame: CallFrame, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], CallFrame]:
        """Return values and frame of the same call with other arguments, which pass every check again."""
        call = _call_of(values)
        bound, fit = super().rebind(arguments, frame, values)
        call.read = self._carried(fit, bound, call)
        return CheckedValues.of(bound, call), fit

    def _carried(self, frame: CallFrame, values: tuple[Any, ...], call: CallLabels) -> Labels:
        """Return what the arguments of a call carry; a fault in here refuses it."""
        try:
            return self.tracker.carried(frame, values, call.given)
        except Exception as error:
            raise self.refused(frame, check_failed_error(self.tool.name, "flow", error), values) from error

    def _item(self, item: object, given: StreamAccount, frame: CallFrame) -> StreamItem:
        made = super()._item(item, given, frame)
        flow = state_of(frame)
        call = flow.opened.get(frame)
        if frame.parent is None and call is not None and not call.is_exact:
            flow.saw(made.value, call.all, by_text=self.tracker.by_text)
        return made


def _call_of(values: tuple[Any, ...]) -> CallLabels:
    assert isinstance(values, CheckedValues)  # `FlowPipeline` makes them for each call
    return values.call
