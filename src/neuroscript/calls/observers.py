"""Observers of the calls of an engine: audit logs, hooks, recordings, and the latest refusals.

If a required record cannot be stored, the call is refused. An observer that fails is logged once and ignored.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal

from neuroscript.calls.steps import CallFrame, StreamClosed
from neuroscript.coercion.context import type_name
from neuroscript.errors import CallError, LimitError, PolicyError, is_interrupt
from neuroscript.io.tracebacks import log_failure
from neuroscript.runtime.host import Host
from neuroscript.runtime.interfaces import Logger, ToolInfo
from neuroscript.runtime.records import CLOSED, AuditSink, CallRecord, PendingCall, ToolFacts
from neuroscript.spec.binding import Repair
from neuroscript.tools.fingerprints import KEY_BYTES, ArgumentDigests
from neuroscript.tools.tool import ToolImplementation

if TYPE_CHECKING:
    from neuroscript.audit.recording import Recording
    from neuroscript.calls.hooks import Hooks
    from neuroscript.runtime.redaction import Redactor

Required = Literal["effects", "all", "none"]
"""Which calls are refused if the audit log cannot store them: those with lasting effects, all, or none."""

MAX_REFUSALS: Final = 1_000
"""Maximum number of refusals that an engine stores."""

MAX_TIME_SECONDS: Final = 1e12
"""Seconds from 1970; a clock beyond this is broken."""

Observer = Callable[[CallRecord], object]


class Observers:
    """The observers of one engine.

    Attributes:
        run: The id of the engine, a new one at each start.
        numbers: Yields the number of each call.
        clock: The host's clock.
        required: Which calls an audit log must store.
        recording: Stores the content of calls, or None.
        refusals: The latest refusals by policy or limit.
        listeners: Each observer of calls that have ended, with what is called if it raises an exception.
    """

    def __init__(
        self,
        host: Host,
        sinks: Sequence[AuditSink] = (),
        hooks: Hooks | None = None,
        required: Required = "effects",
        recording: Recording | None = None,
        redactor: Callable[[], Redactor | None] = lambda: None,
    ) -> None:
        self._host = host
        self.run = os.urandom(8).hex()
        self.numbers = count(1)
        self.clock = host.clock
        self.required = required
        self.recording = recording
        self.refusals: deque[CallRecord] = deque(maxlen=MAX_REFUSALS)
        self.digests = ArgumentDigests(_key(sinks))
        self.sinks = tuple(sinks)
        self._logger: Callable[[], Logger] = lambda: host.logger_of("audit")
        self._intents: tuple[Observer, ...] = tuple(each.write for each in sinks if getattr(each, "intents", True))
        self._logged: set[str] = set()
        self._redactor = redactor
        self.listeners: tuple[tuple[Observer, Callable[[BaseException], None]], ...] = ()
        self.listen(hooks)

    def listen(self, hooks: Hooks | None) -> None:
        """Replace the hooks."""
        self._hooks = hooks
        self._started: tuple[Observer, ...] = () if hooks is None else hooks.started
        finished: tuple[Observer, ...] = () if hooks is None else hooks.finished
        observers = ((tell, partial(self._observed, tell)) for tell in finished)
        self.listeners = (*((sink.write, self._lose) for sink in self.sinks), *observers)

    def _is_secret(self, value: Any) -> bool:
        """Return whether a value contains a secret that the engine knows."""
        redactor = self._redactor()
        return redactor is not None and redactor.plain(value) is not value

    def text(self, text: str) -> str:
        """Return a string for a record, in which the secrets of all sessions are replaced."""
        redactor = self._redactor()
        return text if redactor is None else redactor.text(text)

    def outcome(self, error: BaseException | None) -> str:
        """Return the code that a record shows for a call that ended with *error*, or with a result."""
        if error is None:
            return "ok"
        if isinstance(error, StreamClosed):
            return CLOSED
        if not isinstance(error, CallError):
            return "call.interrupted"
        return error.code if self.text(error.code) == error.code else error.CODE

    def repaired(self, made: tuple[Repair, ...]) -> tuple[Repair, ...]:
        """Return what was converted, with secrets replaced in the keys of its paths."""
        return tuple(Repair(self.text(each.where), each.got, each.became) for each in made)

    @property
    def decides(self) -> bool:
        """Whether hooks may refuse a call."""
        return self._hooks is not None and bool(self._hooks.deciders)

    def refusal(self, call: PendingCall) -> PolicyError | None:
        """Return why a hook refuses a call, or None."""
        return None if self._hooks is None else self._hooks.refusal(call)

    @property
    def is_on(self) -> bool:
        """Whether calls have any observer."""
        return bool(self.listeners or self.observes_starts or self.recording is not None)

    @property
    def observes_starts(self) -> bool:
        """Whether the start of a call has observers."""
        return bool(self._intents or self._started)

    def begin(self, record: CallRecord, required: bool) -> None:
        """Report that a call starts.

        Raises:
            PolicyError: The audit log must store the record and cannot.
        """
        for write in self._intents:
            try:
                write(record)
            except BaseException as error:
                self._lose(error)
                if required:
                    text = "denied because the audit cannot record it"
                    raise PolicyError(text, tool=record.tool, code="audit.unavailable", rule="audit") from None
        for tell in self._started:
            self._observe(tell, record)

    def end(self, record: CallRecord) -> None:
        """Report that a call has ended or was refused; a failure in here does not change its outcome."""
        for tell, lost in self.listeners:
            try:
                tell(record)
            except BaseException as error:
                lost(error)

    def refuse(self, record: CallRecord, remembered: bool) -> None:
        """Report that a call was refused, and store the refusal if policy or a limit caused it."""
        if remembered:
            self.refusals.append(record)
        self.end(record)

    def refused(self, frame: CallFrame, error: CallError, values: object = None) -> CallError:
        """Report that a call of an unknown tool was refused, and return the error for its caller."""
        code = self.outcome(error)
        rule = self.text(error.rule) if isinstance(error, PolicyError) else code
        record = CallRecord(
            "refused", ToolFacts(self.text(frame.tool)), self.run, frame.session.id, next(self.numbers),
            0 if frame.parent is None else frame.parent.call, frame.depth, "", self.now() or 0.0, (), (), (), b"", (),
            code, rule, {}, 0.0,
        )  # fmt: skip
        self.refuse(record, remembered=isinstance(error, (PolicyError, LimitError)))
        return error

    def now(self) -> float | None:
        """Return the time by the host's clock, or None if the clock fails or returns no valid time."""
        try:
            time = self.clock()
        except BaseException as error:
            if is_interrupt(error):
                raise
            self._log_once("the clock", error)
            return None
        return float(time) if type(time) in (int, float) and abs(time) < MAX_TIME_SECONDS else None

    def registered(self, tool: ToolInfo, origin: str) -> None:
        """Report to the hooks that a tool was registered."""
        for tell in () if self._hooks is None else self._hooks.registered:
            try:
                tell(tool, origin)
            except BaseException as error:
                self._observed(tell, error)

    def record(
        self,
        tool: ToolImplementation,
        fingerprint: str,
        values: tuple[Any, ...],
        error: BaseException | None,
        result: Any,
        is_cut: bool = False,
    ) -> None:
        """Record the content of a call, unless an interrupt or its reader ended it.

        Args:
            is_cut: Whether there was more than is stored.
        """
        if self.recording is None or (error is not None and not isinstance(error, CallError)):
            return
        try:
            if is_cut:
                self.recording.omit(tool, "size")
                return
            self.recording.write(tool, fingerprint, values, result, error=error, is_secret=self._is_secret)
        except Exception as failure:
            self._lose(failure)

    def _observe(self, tell: Observer, record: CallRecord) -> None:
        try:
            tell(record)
        except BaseException as error:
            self._observed(tell, error)

    def _observed(self, tell: Observer, error: BaseException) -> None:
        """Log once that a hook failed; an interrupt of the main thread passes."""
        failed = "" if self._hooks is None else self._hooks.failed(tell, error, self._logger())
        if failed:
            self._log_failure(failed, error)

    def _log_failure(self, what: str, error: BaseException) -> None:
        log_failure(self._host, what, error, self._redactor())

    def _lose(self, error: BaseException) -> None:
        """Log the first lost record for each type of error."""
        if is_interrupt(error):
            raise error
        if self._log_once("the audit", error):
            with suppress(Exception):  # whether the log works does not affect the call
                self._logger().error("the audit cannot write a record (%s)", type_name(error))

    def _log_once(self, what: str, error: BaseException) -> bool:
        """Log a failure and its traceback if this type of error is new, and return whether it was."""
        kind = f"{what} {type_name(error)}"
        if kind in self._logged:
            return False
        self._logged.add(kind)
        self._log_failure(what, error)
        return True

    def close(self, left: tuple[str, ...]) -> None:
        """Close the audit logs and the recording, and report to the hooks which calls were abandoned."""
        steps: Iterable[Callable[[], object]] = [each.close for each in self.sinks]
        if self.recording is not None:
            steps = [*steps, self.recording.close]
        for step in steps:
            try:
                step()
            except BaseException as error:
                self._lose(error)
        for tell in () if self._hooks is None else self._hooks.closed:
            try:
                tell(left)
            except BaseException as error:
                self._observed(tell, error)


def _key(sinks: Sequence[AuditSink]) -> bytes:
    """Return the first key for digests that an audit log has, so that digests of several runs can be compared."""
    keys = (getattr(each, "digest_key", None) for each in sinks)
    return next((each for each in keys if each), None) or os.urandom(KEY_BYTES)
