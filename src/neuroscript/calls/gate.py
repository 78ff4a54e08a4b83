"""The checks and observers around every call of one tool: hooks, limits, audit logs and recordings.

Hooks may refuse a call, limits reserve what it takes, and observers receive its records. A gate exists only where one
of them is configured, so other calls pay nothing. Any failure in here refuses the call.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from functools import cached_property
from time import perf_counter
from types import MappingProxyType
from typing import Any, ClassVar, Final

import attrs

from neuroscript.calls.observers import Observers
from neuroscript.calls.steps import END, CallFrame
from neuroscript.calls.streams import RecordedItems
from neuroscript.coercion.values import copy_exact
from neuroscript.errors import CallError, LimitError, NeuroScriptError, PolicyError, is_interrupt
from neuroscript.policy.capabilities import normal
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.policy.ledger import Begun
from neuroscript.policy.refusals import check_failed_error, need_text
from neuroscript.policy.tool_policy import LASTING_EFFECTS
from neuroscript.runtime.records import CallRecord, Kind, PendingCall, ToolFacts
from neuroscript.spec.binding import Repair
from neuroscript.tools.fingerprints import ArgumentDigests, fingerprint, policy_digest
from neuroscript.tools.tool import ToolImplementation

SIZED_TYPES: Final = frozenset({str, bytes, list, dict, array})
"""The types of values whose length a record shows."""

MAX_RECORDED_BYTES: Final = 16 * 1024 * 1024
"""Bytes of stream items that are stored for a recording; one line of it may be as long."""

NOTHING_SPENT: Final[Mapping[str, Any]] = MappingProxyType({})
"""The limits used by a call that used none."""


@attrs.frozen(eq=False, repr=False)
class CallStart:
    """The start of a call, as its records show it.

    Attributes:
        time: Seconds since 1970-01-01 UTC, by the host's clock.
        types: The type of each value.
        sizes: The length of each value that has one, else 0.
        digest: The digest of all values.
        repairs: What was converted.
        started: When the call started, by `perf_counter`.
        values: A copy of the exact values, if the content of calls is recorded.
        items: Stores the items of a stream, if the content of calls is recorded.
    """

    time: float
    types: tuple[type, ...]
    sizes: tuple[int, ...]
    digest: bytes
    repairs: tuple[Repair, ...]
    started: float
    values: tuple[Any, ...] | None = None
    items: RecordedItems | None = None


class Gate:
    """The checks and observers of one tool under one policy.

    Args:
        origin: The distribution of the tool with its version, or ``host``.

    Attributes:
        tool: The tool.
        decides: Whether hooks may refuse a call.
        counts: Whether limits are counted.
        tells: Whether each call has observers.
        keeps: Whether the digest of arguments is needed.
        observes_starts: Whether the start of a call has observers.
        tracks_flow: Whether it keeps the labels of calls, see `FlowGate`.
        is_plain: Whether the content of calls is not recorded, so that the compiled function can do all the work.
    """

    tracks_flow: ClassVar[bool] = False

    def __init__(self, tool: ToolImplementation, origin: str, policy: ExecutionPolicy, watch: Observers) -> None:
        self.tool = tool
        self._origin = origin
        self._policy = policy
        self._watch = watch
        self._required = watch.required == "all" or (
            watch.required == "effects" and not LASTING_EFFECTS.isdisjoint(tool.policy.effects)
        )
        self.decides = watch.decides
        self.counts = policy.counts
        self.has_observers = watch.is_on
        self.needs_digest = bool(watch.sinks) or policy.compares
        self.observes_starts = watch.observes_starts
        self.is_plain = watch.recording is None

    @cached_property
    def facts(self) -> ToolFacts:
        """The data that all records of the tool share; the fingerprint is computed only if records are written."""
        tool = self.tool
        distribution, _, version = self._origin.rpartition(" ")
        return ToolFacts(
            tool.name,
            fingerprint(tool) if self.has_observers else "",
            distribution or version,
            version if distribution else "",
            self._policy.allowing(tool.name),
            any(arg.holds_secret for arg in tool.spec.args),
            tool.policy.effects,
            tuple(tool.injected),
        )

    @cached_property
    def policy_digest(self) -> str:
        """The digest of what the host permits."""
        return policy_digest(self._policy)

    # Before the function

    def decide(self, frame: CallFrame, values: tuple[Any, ...]) -> None:
        """Ask the hooks that may refuse a call.

        Raises:
            PolicyError: A hook refuses it, or fails.
        """
        refusal = self.refusal(frame, values)
        if refusal is not None:  # its text is the hook's own and may contain a secret
            raise frame.session._refused(frame, refusal, values)

    def refusal(self, frame: CallFrame, values: tuple[Any, ...]) -> PolicyError | None:
        """Return why a hook refuses a call, or None; hooks see a copy of the values that the function would receive."""
        call = PendingCall(
            self.tool.name,
            copy_exact(self.tool.spec.by_name(values)),
            tuple(map(normal, frame.needs)),
            self.tool.policy,
            frame.session.id,
            frame.depth,
            tuple(above.tool for above in frame.chain())[1:],
        )
        return self._watch.refusal(call)

    def enter(self, frame: CallFrame, values: tuple[Any, ...], made: tuple[Repair, ...] = ()) -> CallFrame:
        """Reserve what the call takes, report that it starts, and return a frame for this call alone.

        Raises:
            LimitError: A limit is used up.
            PolicyError: The audit log cannot store its record, or a check fails.
        """
        ledger, begun = frame.session.ledger, None
        entered = frame.numbered(next(self._watch.numbers))
        digest = self._watch.digests.of(values) if self.needs_digest else b""
        time = self.moment(entered, values) if self.has_observers else 0.0
        if ledger is not None:
            try:
                begun = ledger.begin(frame.tool, frame.depth == 1, digest)
            except BaseException as error:
                raise self.refusal_before_start(entered, error, values, made) from None
        try:
            self._begin(entered, values, time, digest, made)
        except BaseException as error:
            if ledger is not None:
                ledger.refund(frame.tool, frame.depth == 1, begun)
            raise self.refusal_before_start(entered, error, values, made, "audit") from None
        return entered

    def _begin(
        self, frame: CallFrame, values: tuple[Any, ...], time: float, digest: bytes, made: tuple[Repair, ...]
    ) -> None:
        if self.has_observers:
            kept = items = None
            if self._watch.recording is not None:
                kept, items = tuple(map(copy_exact, values)), RecordedItems(MAX_RECORDED_BYTES)
            told = self.repaired(made)
            began = CallStart(time, *self.types_and_sizes(values), digest, told, perf_counter(), kept, items)
            frame.beginning = began
            if self.observes_starts:
                self._watch.begin(self._record("intent", frame, began, "", self.facts.rule, 0.0), self._required)

    def begin(self, frame: CallFrame, record: CallRecord, begun: Begun | None, values: tuple[Any, ...]) -> None:
        """Report that a compiled call starts, or release what was reserved for it."""
        try:
            self._watch.begin(record, self._required)
        except BaseException as error:
            if frame.session.ledger is not None:
                frame.session.ledger.refund(frame.tool, frame.depth == 1, begun)
            raise self.refusal_before_start(
                frame.numbered(record.call), error, values, record.repairs, "audit"
            ) from None

    def refusal_before_start(
        self,
        frame: CallFrame,
        error: BaseException,
        values: tuple[Any, ...],
        made: tuple[Repair, ...] = (),
        gate: str = "limits",
    ) -> BaseException:
        """Return the error for the caller of a call that a check refuses, or refuses by failing."""
        if is_interrupt(error):
            return error
        if isinstance(error, (PolicyError, LimitError)):
            return self.refused(frame, error, values, made)
        return self.refused(frame, check_failed_error(self.tool.name, gate, error), values, made)

    # After the function

    def leave(self, frame: CallFrame, error: BaseException | None = None, result: Any = None) -> None:
        """Release what only a running call reserves, and report its outcome."""
        ledger = frame.session.ledger
        if ledger is not None:
            ledger.end(frame.depth == 1)
        began = frame.beginning
        if began is not None:
            seconds = perf_counter() - began.started
            self._watch.end(self._record("outcome", frame, began, self._watch.outcome(error), self.facts.rule, seconds))
            if began.items is not None and began.values is not None:
                is_stream = self.tool.spec.stream and (result is END or error is not None)
                result = began.items.items if is_stream else result
                is_cut = began.items.is_cut
                self._watch.record(self.tool, self.facts.fingerprint, began.values, error, result, is_cut)

    def settle(self, frame: CallFrame, error: BaseException | None, result: Any = None) -> tuple[str, ...]:
        """Hand on the labels of a compiled call that has used its Runtime, and return their names."""
        return ()

    def failed(self, frame: CallFrame, error: BaseException, own: CallFrame | None, call: int, *beginning: Any) -> None:
        """Report that a compiled call failed.

        Args:
            own: The frame of the call alone, if it ever had one.
            call: Its number.
            beginning: The fields of its `CallStart`.
        """
        if own is None or not own.call:
            own = frame.numbered(call)
        began = own.beginning = CallStart(*beginning)
        seconds = perf_counter() - began.started
        self._watch.end(self._record("outcome", own, began, self._watch.outcome(error), self.facts.rule, seconds))

    def refused(
        self, frame: CallFrame, error: CallError, values: tuple[Any, ...] | None = None, made: tuple[Repair, ...] = ()
    ) -> CallError:
        """Report that a call was refused, and return the error for its caller.

        Args:
            values: The exact values, if the arguments were valid.
        """
        error.tool = error.tool or self.tool.name
        if error.code == "policy.check_failed":
            self._log_fault(frame, error)
        watch = self._watch
        by_host = isinstance(error, (PolicyError, LimitError))
        if by_host or self.has_observers:
            if not frame.call:
                frame = frame.numbered(next(watch.numbers))
            types, sizes = self.types_and_sizes(values or ())
            digest = b"" if values is None else watch.digests.of(values)
            began = frame.beginning = CallStart(watch.now() or 0.0, types, sizes, digest, self.repaired(made), 0.0)
            code = watch.outcome(error)
            rule = watch.text(error.rule) if isinstance(error, PolicyError) else code
            record = self._record("refused", frame, began, code, rule, 0.0)
            if isinstance(error, PolicyError) and error.needs:
                record = record._replace(needs=tuple(map(watch.text, error.needs)))
            watch.refuse(record, remembered=by_host)
        if by_host:
            frame.session._log_refusal(error)
        return error

    def _log_fault(self, frame: CallFrame, error: CallError) -> None:
        """Log the traceback of a check that failed: a fault of the host's own code."""
        cause = error.__cause__
        if cause is not None and cause.__traceback__ is not None and not isinstance(cause, NeuroScriptError):
            error.is_logged = True
            frame.session._log_failure(f"a check of {self.tool.name}", cause)

    # Used by compiled functions

    @property
    def clock(self) -> Callable[[], float]:
        """The host's clock."""
        return self._watch.clock

    @property
    def run(self) -> str:
        """The id of the engine."""
        return self._watch.run

    @property
    def next_number(self) -> Callable[[], int]:
        """Returns the number of the next call."""
        return self._watch.numbers.__next__

    @property
    def digests(self) -> ArgumentDigests:
        """Computes the digests of exact values."""
        return self._watch.digests

    @property
    def listeners(self) -> tuple[tuple[Callable[[CallRecord], object], Callable[[BaseException], None]], ...]:
        """Each observer of calls that have ended, with what is called if it raises an exception."""
        return self._watch.listeners

    def moment(self, frame: CallFrame, values: tuple[Any, ...]) -> float:
        """Return the time by the host's clock.

        Raises:
            PolicyError: The clock returns no valid time, so a record would be false.
        """
        time = self._watch.now()
        if time is None:
            raise self.refused(frame, check_failed_error(self.tool.name, "clock", ValueError()), values)
        return time

    def needs(self, frame: CallFrame) -> tuple[str, ...]:
        """Return what a call needs, as records show it."""
        return tuple(self._watch.text(need_text(need)) for need in frame.needs)

    def types_and_sizes(self, values: tuple[Any, ...]) -> tuple[tuple[type, ...], tuple[int, ...]]:
        """Return the types and the sizes of exact values."""
        sizes = [len(value) if type(value) in SIZED_TYPES else 0 for value in values]
        return tuple(map(type, values)), tuple(sizes)

    def repaired(self, made: tuple[Repair, ...]) -> tuple[Repair, ...]:
        """Return what was converted, with secrets replaced in the keys of its paths."""
        return self._watch.repaired(made) if made else made

    def _record(
        self, kind: Kind, frame: CallFrame, began: CallStart, code: str, rule: str, seconds: float
    ) -> CallRecord:
        return CallRecord(
            kind, self.facts, self._watch.run, frame.session.id, frame.call,
            0 if frame.parent is None else frame.parent.call, frame.depth, self.policy_digest, began.time,
            self.needs(frame), began.types, began.sizes, began.digest, began.repairs, code, rule,
            {**frame.spent} if frame.spent else NOTHING_SPENT, seconds,
        )  # fmt: skip
