"""The methods that call tools: by position or by name, for a result or a stream, from sync or async code.

A session belongs to one caller: it has its own variables and handles, and shares the tools of its engine.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self
from weakref import WeakKeyDictionary

from neuroscript.calls.compiler import UNDECIDED, CompiledCall
from neuroscript.calls.drivers import Collector, adrive, adrive_stream, drive, drive_stream
from neuroscript.calls.steps import CallFrame, HasRegistry, Steps
from neuroscript.coercion.parameters import (
    BY_NAME,
    FUNCTION,
    SECONDS,
    STRING,
    STRINGS,
    Form,
    as_tuple,
    collection,
    instance,
    one_of,
    optional,
    require,
)
from neuroscript.engine.entries import NameCache, SessionTool, ToolView
from neuroscript.errors import CallError, LimitError, PolicyError, SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.names import canonical, from_wire
from neuroscript.policy.execution_policy import POLICY, Decision, ExecutionPolicy
from neuroscript.runtime.host import Host
from neuroscript.runtime.interfaces import LabelledToolResult, Logger, Reservation, ToolCall, ToolInfo, ToolResult
from neuroscript.runtime.state import Memory
from neuroscript.spec.binding import Repair, parse_arguments, parse_timeout, repairs
from neuroscript.spec.callables import is_coroutine

if TYPE_CHECKING:
    from neuroscript.approval.pending import PendingApproval
    from neuroscript.approval.request import Approval, Approver
    from neuroscript.flow.labels import Labels
    from neuroscript.flow.state import CallLabels
    from neuroscript.policy.ledger import Ledger
    from neuroscript.runtime.redaction import Redactor
    from neuroscript.sandbox import Sandbox


Call = ToolCall | Mapping[str, Any]
"""A call as a model sends it: a `ToolCall`, or a dict of ``name``, ``arguments`` and ``id``."""


MAX_CACHED_SPELLINGS: Final = 10_000
"""Maximum number of spellings of names that a session caches in addition to the canonical ones."""


class SentCall:
    """A call that a model sent, and what its result reports besides the value."""

    __slots__ = ("_started", "call", "labels", "parsed", "repairs", "tool")

    def __init__(self, call: ToolCall) -> None:
        self._started = perf_counter()
        self.call = call
        self.tool = ""
        self.parsed: Any = None
        self.repairs: tuple[Repair, ...] = ()
        self.labels: CallLabels | None = None

    def result(self, value: Any) -> ToolResult:
        """Return the result of a call that returned *value*."""
        if self.labels is not None:
            return self._labelled(self.tool, self.labels.names, value, repairs=self.repairs)
        return ToolResult(self.call.id, self.tool, value, repairs=self.repairs, seconds=perf_counter() - self._started)

    def failed(self, error: CallError) -> ToolResult:
        """Return the result of a call that failed."""
        name = self.tool or quote_untrusted(str(self.call.name))
        if self.labels is not None:
            return self._labelled(name, self.labels.names, error=error)
        return ToolResult(self.call.id, name, error=error, seconds=perf_counter() - self._started)

    def _labelled(self, tool: str, labels: tuple[str, ...], value: Any = None, **more: Any) -> ToolResult:
        seconds = perf_counter() - self._started
        return LabelledToolResult(self.call.id, tool, value, seconds=seconds, labels=labels, **more)


class Session:
    """A caller's access to the tools of an engine. `Engine` is itself a session; `Engine.session` creates others.

    Args:
        entries: The tools that the policy of the session permits.
        id: The id in records and approvals; by default a random id is generated.
        variables: Initial variables, in addition to those of the host.
        ledger: The value of `ledger`.
        host: What the host provides to this session, if it differs from the engine's host.

    Attributes:
        id: The id in records and approvals.
        host: What the host provides.
        is_closed: Whether the session refuses further calls.
        ledger: The `Ledger` that counts its calls and their usage against its limits; None if nothing is limited.
    """

    _is_engine: bool = False

    def __init__(
        self,
        entries: ToolView,
        id: str = "",
        variables: Mapping[str, Any] | None = None,
        ledger: Ledger | None = None,
        host: Host | None = None,
    ) -> None:
        shared = entries.shared
        self._entries = entries
        self._shared = shared
        self.host = host or shared.host
        self.memory = Memory({**shared.host.variables, **(variables or {})}, shared.host.constants)
        self.id = id or os.urandom(8).hex()
        self.ledger = ledger
        self.is_closed = shared.is_closed
        self._is_over = False
        self._is_stopped = False
        self._approved: dict[tuple[object, str], Approver] = {}
        self._answers: dict[tuple[int, str], tuple[Approval, tuple[str, ...]]] = {}
        self._redactor: Redactor | None = None
        if entries.tracks_flow:
            self.memory.flow = shared.new_flow()
        self._same: WeakKeyDictionary[Session, None] = WeakKeyDictionary({self: None})
        shared.join(self)

    # Calls

    def call(self, name: str, args: Sequence[Any] = (), timeout: float | None = None) -> Any:
        """Call a tool with arguments in order and return its result.

        Args:
            name: Any spelling of its name, for example ``math.add`` or ``tool.Math.Add``.
            args: A list or a tuple; trailing optional arguments may be omitted.
            timeout: Seconds that the call may take; the tool's own policy may allow fewer.

        Returns:
            The exact built-in of the tool's return type; for a stream, the list of its items.

        Raises:
            CallError: The call failed. The subclass and its attributes say why, and who can fix it.
        """
        if timeout is not None:
            return drive(self._steps(name, args, False, timeout), self._shared)
        try:
            line = self._positional[name] if type(name) is str else self._found(name, False)
        except KeyError:
            line = self._found(name, False)
        return line(args)

    def call_named(self, name: str, mapping: Mapping[str, Any], timeout: float | None = None) -> Any:
        """Call a tool with arguments by name, a dict, and return its result, as `call` does."""
        if timeout is not None:
            return drive(self._steps(name, mapping, True, timeout), self._shared)
        try:
            line = self._named[name] if type(name) is str else self._found(name, True)
        except KeyError:
            line = self._found(name, True)
        return line(mapping)

    async def acall(self, name: str, args: Sequence[Any] = (), timeout: float | None = None) -> Any:
        """Return what `call` returns, or raise what it raises, without blocking the event loop."""
        return await self._acall(name, args, False, timeout)

    async def acall_named(self, name: str, mapping: Mapping[str, Any], timeout: float | None = None) -> Any:
        """Return what `call_named` returns, or raise what it raises, without blocking the event loop."""
        return await self._acall(name, mapping, True, timeout)

    async def _acall(self, name: str, given: object, by_name: bool, timeout: float | None) -> Any:
        known = self._entry(name)
        if timeout is None and known.pipeline.is_direct and known.pipeline.run_mode == "plain":
            return known.function(by_name)(given)
        return await adrive(self._steps(name, given, by_name, timeout), self._shared)

    def stream(
        self, name: str | ToolCall, args: Sequence[Any] | Mapping[str, Any] = (), timeout: float | None = None
    ) -> Generator[Any, None, None]:
        """Call a tool and yield its items as they arrive; a tool that does not stream yields its single result.

        The tool is stopped when the iterator is closed or exhausted.

        Args:
            name: Any spelling of its name; or a call as a model sent it, in which case secrets are replaced in each
                item.
            args: In order, or a dict by name; ignored if *name* is a call.
            timeout: Seconds for the whole stream.

        Raises:
            CallError: Immediately if the call cannot start, or later if the tool fails.
        """
        if isinstance(name, ToolCall):
            return self._sent_stream(SentCall(name), timeout)
        return drive_stream(self._steps(name, args, isinstance(args, dict), timeout), self._shared)

    def astream(
        self, name: str | ToolCall, args: Sequence[Any] | Mapping[str, Any] = (), timeout: float | None = None
    ) -> AsyncGenerator[Any, None]:
        """Call a tool and yield its items as they arrive; the async variant of `stream`."""
        if isinstance(name, ToolCall):
            return self._adiscreetly(adrive_stream(self._sent_steps(SentCall(name), timeout), self._shared))
        return adrive_stream(self._steps(name, args, isinstance(args, dict), timeout), self._shared)

    def _sent_stream(self, sent: SentCall, timeout: float | None) -> Generator[Any, None, None]:
        return self._discreetly(drive_stream(self._sent_steps(sent, timeout), self._shared))

    def _discreetly(self, items: Generator[Any, None, None]) -> Generator[Any, None, None]:
        try:
            for item in items:
                yield self._without_secrets(item)
        finally:
            items.close()

    async def _adiscreetly(self, items: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
        try:
            async for item in items:
                yield self._without_secrets(item)
        finally:
            await items.aclose()

    def _steps(self, name: object, given: object, by_name: bool, timeout: float | None) -> Steps:
        known = self._entry(name)
        line, frame = known.pipeline, self._timed(known, timeout)
        values = line.bind(frame, given, by_name)
        return line.steps(values, frame, line.repairs(given, values))

    def _timed(self, known: SessionTool, timeout: float | None) -> CallFrame:
        if timeout is None:
            return known.frame
        return CallFrame(self, known.frame.tool, timeout=parse_timeout(timeout), tools=known.frame.tools)

    def execute(
        self,
        call: Call,
        timeout: float | None = None,
        *,
        on_item: Callable[[Any], object] | None = None,
    ) -> ToolResult:
        """Run a call as a model sent it, and return its result or its error; never raise a `CallError`.

        The name may be a wire name (``math__add``), and the arguments may be JSON text. Secrets are redacted in the
        result.

        Args:
            call: A `ToolCall`, or a dict of ``name``, ``arguments`` and ``id``, of which only the name is required.
                `neuroscript.llm.wire.read_call` reads the calls of model APIs.
            timeout: Seconds for the whole call.
            on_item: Called with each item of a stream as it arrives; the result still has all items. An exception that
                it raises stops the tool and is propagated.

        Raises:
            SpecError: A parameter has the wrong type, or *on_item* is a coroutine function, which only `aexecute`
                accepts.
        """
        if on_item is not None:
            _refuse_coroutine(on_item)
        if timeout is not None:
            require("execute", timeout=(timeout, SECONDS))
        sent = SentCall(call if type(call) is ToolCall else _call_of(call))
        collected = None if on_item is None and self._shared.spill is None else self._collected(sent, on_item)
        try:
            value = self._exact_result(sent) if timeout is None else UNDECIDED
            if value is UNDECIDED:
                value = drive(self._sent_steps(sent, timeout), self._shared, collected)
            result = sent.result(value)
        except CallError as error:
            result = sent.failed(error if collected is None else collected.ended(error))
        return self._told(result)

    def _exact_result(self, sent: SentCall) -> Any:
        """Return the result of a call that needs no repair, or `UNDECIDED`, in which case nothing has happened yet."""
        call = sent.call
        known = self._names.sent.get(call.name) if type(call.name) is str else None
        if known is None:
            return UNDECIDED
        given = call.arguments
        sent.tool = known.frame.tool
        if type(given) is str:
            given = sent.parsed = parse_arguments(given, sent.tool, self._shared.coercion.sizes)
        return known.exact(given)

    async def aexecute(
        self,
        call: Call,
        timeout: float | None = None,
        *,
        on_item: Callable[[Any], object] | None = None,
    ) -> ToolResult:
        """Return what `execute` returns, without blocking the event loop.

        Args:
            on_item: May be a coroutine function; the next item is requested after it has returned.
        """
        if timeout is not None or on_item is not None:
            require("aexecute", timeout=(timeout, optional(SECONDS)), on_item=(on_item, optional(FUNCTION)))
        sent = SentCall(call if type(call) is ToolCall else _call_of(call))
        no_collector = on_item is None and self._shared.spill is None
        collected = None if no_collector else self._collected(sent, on_item, on_loop=True)
        try:
            result = sent.result(await adrive(self._sent_steps(sent, timeout), self._shared, collected))
        except CallError as error:
            result = sent.failed(error if collected is None else await self._aside(collected.ended, error))
        told: ToolResult = await self._aside(self._told, result)
        return told

    async def _aside(self, func: Callable[..., Any], given: Any) -> Any:
        """Call a function on a thread if it may write a file, otherwise at once."""
        if self._shared.spill is None:
            return func(given)
        from asyncio import to_thread

        return await to_thread(func, given)

    def _collected(
        self, sent: SentCall, on_item: Callable[[Any], object] | None, *, on_loop: bool = False
    ) -> Collector:
        if self._shared.spill is not None:
            from neuroscript.calls.spill_writer import SpillingCollector

            label = None if self.memory.flow is None else partial(self._label_file, sent)
            return SpillingCollector(self, self._shared.spill, on_item, on_loop=on_loop, label=label)
        from neuroscript.calls.streams import CollectedItems

        return CollectedItems(None if on_item is None else lambda item: on_item(self._without_secrets(item)))

    def _sent_steps(self, sent: SentCall, timeout: float | None) -> Steps:
        call, names = sent.call, self._names
        known = self._entry(from_wire(call.name) if isinstance(call.name, str) else call.name)
        line, sent.tool = known.pipeline, known.frame.tool
        if type(call.name) is str and len(names.sent) <= self._entries.count + MAX_CACHED_SPELLINGS:
            names.sent[call.name] = known
        frame = self._timed(known, timeout)
        given = sent.parsed
        if given is None:
            given = parse_arguments(call.arguments, sent.tool, line.coercion.sizes)
        values = line.bind(frame, given, isinstance(given, dict))
        sent.repairs = repairs(line.tool.spec, given, values)
        if line.tracks_flow:
            frame, sent.labels = self._labelled(frame)
        return line.steps(values, frame, sent.repairs)

    def _labelled(self, frame: CallFrame, given: Labels | None = None) -> tuple[CallFrame, CallLabels]:
        """Return a frame for one call from outside, and the labels of the call, which its result is added to.

        Args:
            given: What its arguments carry, from a caller that knows what its result is used for; None means that only
                their text tells.
        """
        from neuroscript.flow.state import CallLabels

        call = CallLabels() if given is None else CallLabels(given, is_exact=True)
        own = CallFrame(self, frame.tool, timeout=frame.timeout, tools=frame.tools)
        if self.memory.flow is not None:
            self.memory.flow.prepared[own] = call
        return own, call

    def _labelled_steps(
        self, name: str, mapping: Mapping[str, Any], timeout: float | None, given: Labels
    ) -> tuple[Steps, CallLabels]:
        """Return the steps of a call whose caller states what its arguments carry, and the labels of the call."""
        known = self._entry(name)
        line = known.pipeline
        frame, call = self._labelled(self._timed(known, timeout), given)
        values = line.bind(frame, mapping, True)
        return line.steps(values, frame, line.repairs(mapping, values)), call

    def _label_file(self, sent: SentCall, path: str) -> None:
        """Label a file that receives items of a stream."""
        if self.memory.flow is not None and sent.labels is not None:
            self.memory.flow.files.add(path, sent.labels.outcome)

    def _told(self, result: ToolResult) -> ToolResult:
        if self.secrets is not None:
            from neuroscript.runtime.redacting_proxies import redacted_result

            result = redacted_result(self.secrets, result)
        if self._shared.spill is None:
            return result
        from neuroscript.calls.spill_writer import spill_result

        told = spill_result(self, self._shared.spill, result)
        flow = self.memory.flow
        if told.labels and told.spilled is not None and flow is not None:
            flow.files.add(told.spilled.path, {name: flow.read.get(name, ()) for name in told.labels})
        return told

    def resume(self, pending: PendingApproval, answer: Approval, timeout: float | None = None) -> ToolResult:
        """Run a suspended call through the whole pipeline, with the answer to its approval request.

        An answer can be used once, and only if the call, the definition of its tool, the policy and this session are
        unchanged.

        Args:
            pending: The suspended call, a `PendingApproval`.
            answer: The answer, an `Approval`.

        Returns:
            What `execute` returns; an error ``policy.stale`` says what has changed.
        """
        from neuroscript.approval.pending import PendingApproval
        from neuroscript.approval.request import Approval

        parts = {"pending": (pending, instance(PendingApproval)), "answer": (answer, instance(Approval))}
        require("resume", **parts, timeout=(timeout, optional(SECONDS)))
        error = self._stale(pending)
        if error is not None:
            return self._told(ToolResult(pending.call.id, pending.tool, error=error))
        call, digest = pending.call, pending.digest
        if pending.flows:
            from neuroscript.calls.approvals import settle_flows

            try:
                call, digest = settle_flows(self, self._entry(pending.tool).pipeline, pending, answer)
            except CallError as refusal:
                return self._told(ToolResult(pending.call.id, pending.tool, error=refusal))
            answer = Approval.approve()
        self._answers[pending.approver, digest] = answer, pending.flows
        try:
            return self.execute(call, timeout)
        finally:
            self._answers.pop((pending.approver, digest), None)

    def _stale(self, pending: PendingApproval) -> CallError | None:
        from neuroscript.calls.approvals import check_not_stale

        try:
            line = self._entry(pending.tool).pipeline
        except CallError as error:
            return error
        return check_not_stale(self, line, pending)

    def check(self, calls: Iterable[Call]) -> tuple[Decision, ...]:
        """Return for each call whether it may run, and why, without running a tool or asking an approver.

        The calls are read as `execute` reads them, and each is checked as if it were the next one: it does not use up
        limits for the others. Hooks that may refuse a call are asked. What a tool requires only while it runs cannot be
        checked here.
        """
        from neuroscript.engine.preflight import decide

        found = as_tuple(calls)
        require("check", calls=(found, CALLS))
        return tuple(decide(self, _call_of(call)) for call in found)

    def _call_within(self, frame: CallFrame, name: str, given: object, by_name: bool) -> Any:
        """Run the call that the tool of *frame* requested through its Runtime, with the tools of its own snapshot."""
        names = self._names
        known = names.known.get(name) if type(name) is str and frame.tools is names.moment else None
        known = known or self._entry(name, frame)
        inner = CallFrame(self, known.frame.tool, frame.depth + 1, frame, (), None, frame.deadline, frame.tools)
        if frame.depth >= self._entries.depth:
            text = f"nested calls may be at most {self._entries.depth} deep"
            raise self._refused(inner, LimitError(text, tool=inner.tool, code="limit.depth"))
        return known.function(by_name)(given, inner)

    def _logger_of(self, tool: str) -> Logger:
        """Return the host's logger of one tool; if there are secrets, one that redacts them.

        The engine's logger hides every secret that the engine knows; a session's own logger hides what that session
        hides.
        """
        logger, redactor = self.host.logger_of(tool), self._log_redactor
        if redactor is None or redactor.is_empty:
            return logger
        from neuroscript.runtime.redacting_proxies import RedactingLogger

        return RedactingLogger(logger, redactor)

    @property
    def _log_redactor(self) -> Redactor | None:
        return self._shared.redactor if self.host.logger is self._shared.host.logger else self.secrets

    def _log_refusal(self, error: CallError) -> None:
        """Log at level INFO, to the host's logger ``refusal``, why a call was refused and what would permit it."""
        from neuroscript.policy.refusals import LOGGER, Refusal

        with suppress(Exception):  # whether the log works does not affect the call
            self.host.logger_of(LOGGER).info("%s", Refusal.of(error, self._log_redactor))

    def _log_failure(self, what: str, error: BaseException, level: Literal["error", "debug"] = "error") -> None:
        """Log that code of a tool or of the host failed, with its traceback, see `tracebacks.log_failure`."""
        from neuroscript.io.tracebacks import log_failure

        log_failure(self.host, what, error, self._log_redactor, level)

    def _spend(self, frame: CallFrame, what: str, amount: object) -> Reservation:
        """Count what the tool of *frame* spends, in this session and in the calls that the frame is nested in.

        Returns:
            A `Reservation`.

        Raises:
            LimitError: The limit is used up, or *amount* is not a valid amount.
        """
        if self.ledger is None:
            from neuroscript.policy.ledger import check_amount

            return check_amount(what, amount, frame.tool)
        tallies = [each.spent for each in frame.chain() if each.spent is not None]
        return self.ledger.spend(what, amount, frame.tool, tallies)

    # Information flow

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of everything that this session has read, such as ``untrusted``; empty without flow rules."""
        flow = self.memory.flow
        return () if flow is None else tuple(flow.read)

    def user_said(self, text: object) -> None:
        """Add words of the user: arguments may contain them, even if a labelled result contains them too.

        `neuroscript.llm.converse` does this with its prompt. It has no effect without flow rules.

        Args:
            text: A string, or plain data with strings.
        """
        flow = self.memory.flow
        if flow is not None:
            flow.texts.said(text)

    def add_labelled(self, value: object, labels: Collection[str], *, origin: str = "host") -> None:
        """Add data that did not come from a tool, such as a document that the host has put into a prompt.

        It has no effect without flow rules.

        Args:
            value: A string, or plain data with strings.
            labels: What it carries, such as ``("untrusted",)``.
            origin: What it is called in messages.

        Raises:
            SpecError: A parameter has the wrong type, or a label does not exist.
        """
        from neuroscript.policy.labels import SOURCES, label_problems

        require("add_labelled", labels=(labels, STRINGS), origin=(origin, STRING))
        problems = list(label_problems("labels", labels, SOURCES))
        if problems:
            raise SpecError("add_labelled", problems)
        flow = self.memory.flow
        if flow is not None:
            from neuroscript.flow.state import host_labels

            flow.saw(value, host_labels(labels, origin))

    # What tools see

    @property
    def policy(self) -> ExecutionPolicy:
        """What the host permits."""
        return self._entries.policy

    @property
    def secrets(self) -> Redactor | None:
        """The `Redactor` for the secrets of this session; None as long as there are none."""
        known = self._shared.secrets
        if known is None or self._redactor is not None:
            return self._redactor
        from neuroscript.runtime.redaction import Redactor

        self._redactor = Redactor(*known.everywhere, self._entries.secrets, *known.of(self.memory))
        return self._redactor

    @property
    def spills(self) -> bool:
        """Whether large results of `execute` are written to files of the sandbox."""
        return self._shared.spill is not None

    def _without_secrets(self, value: Any) -> Any:
        """Return a value with its secrets replaced."""
        return value if self.secrets is None else self.secrets.plain(value)

    def _hide(self, value: object) -> None:
        """Hide a secret that the caller has sent, in this session and in its child sessions."""
        self._shared.known_secrets().hide(value, None if self._is_engine else self.memory)

    def _receive(self, value: object, *, is_lasting: bool = False) -> None:
        """Hide a secret of the host that a tool has received in this session.

        Args:
            is_lasting: Whether the host always provides the same value.
        """
        self._shared.known_secrets().receive(value, self.memory, is_lasting=is_lasting)

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox, opened when it is first needed."""
        return self._shared.sandbox

    @property
    def infos(self) -> Mapping[str, ToolInfo]:
        """The tools that may be called, without their functions."""
        return self._entries.infos

    @property
    def _running(self) -> set[CallFrame]:
        """The calls of all sessions that are carried out in steps."""
        return self._shared.running

    # Names

    def _has_tool(self, name: str) -> bool:
        """Return whether the engine has a tool of this canonical name, permitted or not."""
        return name in self._shared.registry.tools

    def _found(self, name: object, by_name: bool) -> CompiledCall:
        names = self._names
        function = self._entry(name).function(by_name)
        (names.named if by_name else names.positional)[str.__str__(name)] = function
        return function

    def _entry(self, name: object, above: CallFrame | None = None) -> SessionTool:
        """Return the tool that *name* refers to, if it may be called, and the frame of its calls from outside.

        Args:
            above: The call whose tool makes this call.

        Raises:
            ToolNotFound: There is no such tool, or the engine does not permit any with this name.
            PolicyError: It needs what this engine does not grant.
        """
        spelling = str.__str__(name) if isinstance(name, str) else None
        names = self._names
        moment = names.moment if above is None or above.tools is None else above.tools
        known = None if spelling is None or moment is not names.moment else names.known.get(spelling)
        if known is not None and not self.is_closed:
            return known
        try:
            return self._resolved(spelling, name, moment)
        except CallError as error:
            tool = "" if spelling is None else canonical(spelling)
            asked = tool if tool in self._shared.registry.tools else quote_untrusted(tool)
            frame = CallFrame(self, asked, 1) if above is None else CallFrame(self, asked, above.depth + 1, above)
            raise self._refused(frame, error) from error.__cause__

    def _resolved(self, spelling: str | None, name: object, moment: HasRegistry | None = None) -> SessionTool:
        """Return what `_entry` returns, for the tools of *moment*, and cache it if these are the current ones."""
        if self._is_stopped:
            text = "the session was stopped by an approver"
            raise PolicyError(text, code="policy.stopped", rule="approver")
        if self.is_closed:
            raise CallError("the engine is closed", code="engine.closed")
        names = self._names
        moment = moment or names.moment
        entry = self._entries.of(spelling, name, moment.registry)
        tool = entry.pipeline.tool.name
        if moment is not names.moment:
            return SessionTool(entry, CallFrame(self, tool, tools=moment))
        if len(names.known) > self._entries.count + MAX_CACHED_SPELLINGS:
            self._forget()
            names = self._names
        known = names.known.get(tool) or SessionTool(entry, CallFrame(self, tool, tools=moment))
        for value in entry.pipeline.tool.secrets:
            self._receive(value, is_lasting=True)
        for each in {tool, spelling or tool}:
            names.known[each] = known
        return known

    def _refused(self, frame: CallFrame, error: CallError, values: tuple[Any, ...] | None = None) -> CallError:
        """Report that a call was refused, and return the error for its caller."""
        told = error if self.secrets is None else self.secrets.error(error)
        return self._entries.refused(frame, told, values)

    def _forget(self) -> None:
        """Clear the cache of spellings: it is full, the session is closed, or the tools have changed."""
        self._names = NameCache(self._shared.moment)
        self._positional, self._named = self._names.positional, self._names.named

    def narrowed(
        self,
        policy: ExecutionPolicy | None = None,
        *,
        allow: Collection[str] | None = None,
        otherwise: Literal["refuse", "ask"] = "refuse",
    ) -> Session:
        """Return a session for the same caller under a policy that can only permit less.

        It shares the id, the variables, the handles, the ledger and the approvals of this session, and the labels of
        what it has read. Both end together, and an approver that stops one of them stops the other.

        Args:
            policy: The policy; None means that only *allow* narrows.
            allow: Patterns of the tools that a task needs, such as ``plan.tools``.
            otherwise: What happens to other tools: they are refused, or each call of them needs an approval.

        Raises:
            SpecError: A parameter has the wrong type or value; each problem is listed.
        """
        parts = {"policy": (policy, optional(POLICY)), "allow": (allow, optional(STRINGS))}
        require("narrowed", **parts, otherwise=(otherwise, OTHERWISE))
        if allow is not None or otherwise != "refuse":
            permitted = ("*",) if allow is None else tuple(allow)
            policy = (policy or self.policy).narrowed(allow=permitted, otherwise=otherwise)
        within = Session(self._entries.narrowed(policy), self.id, ledger=self.ledger, host=self.host)
        if self.memory.flow is None:
            self.memory.flow = within.memory.flow
        within.memory, within._approved, within._answers = self.memory, self._approved, self._answers
        within._is_engine = self._is_engine
        within._same = self._same
        within._same[within] = None
        if self._is_stopped:
            within._stop()
        elif self.is_closed:  # checked last: closing this session meanwhile closes the new one too
            within._refuse()
        return within

    def _all(self) -> Iterator[Session]:
        """Yield all sessions of the same caller, this one included; others may begin meanwhile."""
        for reference in self._same.keyrefs():
            session = reference()
            if session is not None:
                yield session

    # Closing

    def _refuse(self) -> None:
        """Begin no further call."""
        self.is_closed = True
        self._forget()

    def _stop(self) -> None:
        """Begin no further call, because an approver said so."""
        for each in self._all():
            each._is_stopped = True
            each._refuse()

    def _end(self) -> None:
        """Refuse further calls, end the Runtimes of those that run, and release all handles."""
        for each in self._all():
            each._refuse()
            each._is_over = True
        self.memory.handles.close()

    def close(self) -> Any:
        """Close this session; the engine and its other sessions are not affected."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _call_of(call: Any) -> ToolCall:
    """Return a call that may be written as a dict of name, arguments and id; the pipeline checks their values.

    Raises:
        SpecError: It is something else.
    """
    if isinstance(call, ToolCall):
        return call
    if type(call) is not dict or not {"name"} <= call.keys() <= CALL_KEYS:
        require("execute", call=(call, CALL))
    id = call.get("id", "")
    if type(id) is not str:
        require("execute", id=(id, STRING))
    return ToolCall(call["name"], call.get("arguments", ()), id=id)


OTHERWISE: Final = one_of("refuse", "ask")
CALL_KEYS: Final = frozenset({"name", "arguments", "id"})
CALL: Final = Form(
    "a ToolCall, or a dict of name, arguments and id",
    lambda call: isinstance(call, ToolCall) or BY_NAME.accepts(call),
    lambda call: isinstance(call, ToolCall) or {"name"} <= call.keys() <= CALL_KEYS,
    hint="neuroscript.llm.wire.read_call reads the calls of model APIs",
)


CALLS: Final = collection(CALL, "ToolCalls, or dicts of name, arguments and id")


def _refuse_coroutine(on_item: Callable[[Any], object]) -> None:
    require("execute", on_item=(on_item, FUNCTION))
    if is_coroutine(on_item):
        raise SpecError("execute", ["on_item is a coroutine function; use aexecute, which awaits it"])
