"""Frames of calls, and the steps that a driver runs for a call.

A frame says which session makes a call, which calls it is nested in, what its tool may do and how long it may take. A
step is something that a driver runs for the pipeline, such as the function of the tool.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import product
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.errors import (
    CallError,
    CallTimeout,
    HostError,
    LimitError,
    NeuroScriptError,
    PolicyError,
    ToolFailed,
    is_interrupt,
)
from neuroscript.policy.capabilities import Capability, Grant

if TYPE_CHECKING:
    from neuroscript.approval.request import Approval, Approver
    from neuroscript.calls.gate import CallStart
    from neuroscript.policy.execution_policy import ExecutionPolicy
    from neuroscript.policy.ledger import Ledger
    from neuroscript.runtime.host import Host
    from neuroscript.runtime.interfaces import Logger, Reservation, ToolInfo
    from neuroscript.runtime.redaction import Redactor
    from neuroscript.runtime.state import Memory
    from neuroscript.sandbox import Sandbox
    from neuroscript.tools.toolset import Registry


class HasRegistry(Protocol):
    """The tools of an engine at one time."""

    @property
    def registry(self) -> Registry:
        """The tools."""


class Caller(Protocol):
    """The part of a session that the call pipeline uses.

    Attributes:
        id: The id of the session.
        host: What the host provides.
        memory: The variables and handles of the session.
        ledger: Counts what the session uses of its limits; None where nothing is limited.
        _approved: The approvers of calls that are approved for the whole session, by their key and the digest; they
            exist as long as their keys.
        _answers: Approvals for calls that are resumed, with what these calls would send where, by approver and digest.
        is_closed: Whether the session refuses further calls.
        _is_over: Whether calls that have not ended are abandoned.
        _is_stopped: Whether an approver has stopped the session.
    """

    id: str
    host: Host
    memory: Memory
    ledger: Ledger | None
    _approved: dict[tuple[object, str], Approver]
    _answers: dict[tuple[int, str], tuple[Approval, tuple[str, ...]]]
    is_closed: bool
    _is_over: bool
    _is_stopped: bool

    @property
    def policy(self) -> ExecutionPolicy:
        """What the host permits."""

    @property
    def secrets(self) -> Redactor | None:
        """Replaces the secrets of the session; None where there are none."""

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox."""

    @property
    def infos(self) -> Mapping[str, ToolInfo]:
        """The tools that may be called, by canonical name."""

    @property
    def _running(self) -> set[CallFrame]:
        """The calls of all sessions that are carried out in steps."""

    def _has_tool(self, name: str) -> bool:
        """Return whether the engine has a tool of this canonical name."""

    def _call_within(self, frame: CallFrame, name: str, given: object, by_name: bool) -> Any:
        """Run a call that the tool of *frame* requested."""

    def _spend(self, frame: CallFrame, what: str, amount: object) -> Reservation:
        """Count what the tool of *frame* spends."""

    def _hide(self, value: object) -> None:
        """Hide a secret that the caller has sent."""

    def _receive(self, value: object, *, is_lasting: bool = False) -> None:
        """Hide a secret of the host that a tool has received."""

    def _without_secrets(self, value: Any) -> Any:
        """Return a value with its secrets replaced."""

    def _refused(self, frame: CallFrame, error: CallError, values: tuple[Any, ...] | None = None) -> CallError:
        """Record that a call was refused, and return the error for its caller."""

    def _stop(self) -> None:
        """Begin no further call, because an approver said so."""

    def _logger_of(self, tool: str) -> Logger:
        """Return the host's logger of one tool."""

    def _log_refusal(self, error: CallError) -> None:
        """Log why a call was refused."""

    def _log_failure(self, what: str, error: BaseException, level: Literal["error", "debug"] = "error") -> None:
        """Log that code of a tool or of the host failed."""


class CallBound(Protocol):
    """The Runtime of one call, which works while ``_frame`` is set."""

    _frame: CallFrame | None


@attrs.define(eq=False, repr=False)
class CallFrame:
    """The state of one call; only the pipeline changes it.

    It is not frozen, because that would cost each nested call 200 ns.

    Attributes:
        session: The session that makes the call; its variables and handles are the ones that the tool sees.
        tool: The canonical name of the tool.
        depth: 1 for a call from outside, plus 1 for each level of nesting.
        parent: The frame of the call that it is nested in.
        needs: What the tool may do in this call: its needs, filled from its arguments.
        timeout: Seconds that the caller allows, or None.
        deadline: When the caller stops waiting, on the clock of `time.monotonic`.
        tools: The tools at the time when the outermost call began; None means the current tools.
        ended: Whether the caller has stopped waiting. The frame of a compiled function never ends.
        spent: What this call and its nested calls have used of the limits, where limits are counted.
        call: The number of the call within the run of the engine, from 1, where calls are numbered.
        beginning: The start of the call, as its records show it.
    """

    session: Caller
    tool: str
    depth: int = 1
    parent: CallFrame | None = None
    needs: tuple[Capability, ...] = ()
    timeout: float | None = None
    deadline: float | None = None
    tools: HasRegistry | None = None
    ended: bool = False
    _grants: tuple[Grant, ...] | None = None
    spent: dict[str, Any] | None = None
    call: int = 0
    beginning: CallStart | None = None

    def chain(self) -> Iterator[CallFrame]:
        """Yield this frame and the frames that it is nested in, the innermost first."""
        frame: CallFrame | None = self
        while frame is not None:
            yield frame
            frame = frame.parent

    def started(self, timeout: float | None) -> CallFrame:
        """Return a frame for a single call of a tool whose own timeout is *timeout* seconds."""
        seconds = self.timeout
        if timeout is not None and (seconds is None or timeout < seconds):
            seconds = timeout
        deadline = self.deadline
        if seconds is not None:
            end = monotonic() + seconds
            deadline = end if deadline is None else min(deadline, end)
        return CallFrame(
            self.session, self.tool, self.depth, self.parent, self.needs, seconds, deadline, self.tools,
            spent=self.spent,
        )  # fmt: skip

    def numbered(self, call: int) -> CallFrame:
        """Return a frame for a single call that has a number and counts what it spends."""
        return CallFrame(
            self.session, self.tool, self.depth, self.parent, self.needs, self.timeout, self.deadline,
            self.tools, False, None, {}, call,
        )  # fmt: skip

    def uncovered_need(self, needs: Iterable[Capability]) -> Capability | None:
        """Return the first of *needs* that some tool in this chain of calls did not declare itself."""
        for need, frame in product(needs, self.chain()):
            if not any(held.covers(need) for held in frame.grants):
                return need
        return None

    def confine(self, needs: Iterable[Capability], others: Iterable[Capability]) -> None:
        """Restrict the tool to *needs*, in place of every grant that covers one of them.

        The frame must belong to a single call.

        Args:
            others: Further needs of the tool, which stay.
        """
        exact, kept = tuple(needs), set(map(Grant.of, others))
        left = [held for held in self.grants if held in kept or not any(map(held.covers, exact))]
        self._grants = (*left, *map(Grant.of, exact))

    @property
    def is_abandoned(self) -> bool:
        """Whether the caller of this call, or of one that it is nested in, has stopped waiting."""
        frame: CallFrame | None = self
        while frame is not None:
            if frame.ended:
                return True
            frame = frame.parent
        return False

    @property
    def grants(self) -> tuple[Grant, ...]:
        """The needs of this call, as the grants that nested calls are checked against."""
        if self._grants is None:
            self._grants = tuple(map(Grant.of, self.needs))
        return self._grants


RunMode = Literal["plain", "waits", "coroutine"]
"""How a function is run: called directly, called on a thread where the caller must not block, or awaited."""


GRACE_SECONDS: Final = 1.0
"""Seconds that a function gets to clean up before it is abandoned."""


END: Final = object()
"""Marks the end of an iterator; a StopIteration cannot pass through a thread or a coroutine."""


@attrs.frozen(eq=False, repr=False)
class Invocation:
    """A function call that a driver runs.

    Attributes:
        tool: The canonical name of the tool.
        func: The function.
        values: The Runtime and the exact values.
        run_mode: How the function is run.
        timeout: Seconds after which the caller stops waiting, or None.
        limit: Seconds that the whole call may take, or None; error messages state it.
        is_last: Whether it must run even if the caller has stopped waiting, because it cleans up.
    """

    tool: str
    func: Callable[..., Any]
    values: tuple[Any, ...]
    run_mode: RunMode
    timeout: float | None = None
    limit: float | None = None
    is_last: bool = False


@attrs.frozen(eq=False, repr=False)
class StreamItem:
    """One exact item of a stream; the driver continues when the reader asks for the next one.

    Attributes:
        tool: The canonical name of the tool.
        value: The item.
        nodes: How many values it consists of.
        text: How many bytes of text it contains.
    """

    tool: str
    value: Any
    nodes: int
    text: int


LAST: Final = StreamItem("", END, 0, 0)
"""Follows the last item, before the call ends; the collector of the items may still fail."""


class StreamClosed(Exception):
    """The reader has closed the stream: thrown as the answer to a `StreamItem`, raised again when the tool ends."""


@attrs.define(eq=False, repr=False)
class CallerGone(Exception):
    """The caller no longer waits for the `Invocation`; thrown instead of its outcome, with the error for it."""

    error: BaseException


Steps = Generator[Invocation | StreamItem, Any, Any]


def run_step(
    frame: CallFrame, func: Callable[..., Any], values: tuple[Any, ...], run_mode: RunMode, grace: float = 0.0
) -> Generator[Invocation, Any, Any]:
    """Run a function of the tool and return its result, or raise the error for the caller.

    Args:
        grace: The minimum of seconds that a function gets which cleans up, if its time is limited.
    """
    timeout = None if frame.deadline is None or frame.timeout is None else max(grace, frame.deadline - monotonic())
    try:
        return (yield Invocation(frame.tool, func, values, run_mode, timeout, frame.timeout, is_last=grace > 0))
    except CallerGone as end:
        raise end.error from None
    except BaseException as error:
        raise report_failure(error, frame)


def is_iterator(result: object) -> bool:
    """Return whether a result is an iterator, or an async one, whose items are to be read."""
    return hasattr(type(result), "__next__") or hasattr(type(result), "__anext__")


def is_late(frame: CallFrame) -> bool:
    """Return whether a call has used up its time."""
    return frame.deadline is not None and frame.timeout is not None and monotonic() >= frame.deadline


def timeout_error(frame: CallFrame) -> CallTimeout:
    """Return the error for the reader of a stream whose time ran out between two items."""
    text = f"did not end within {frame.timeout:g} s and was stopped"
    return CallTimeout(text, tool=frame.tool, state="stopped", seconds=frame.timeout)


def engine_closed_error() -> CallError:
    """Return the error of a call that was stopped because its engine was closed."""
    return CallError("was stopped because the engine was closed", code="engine.closed")


def convert_exception(error: BaseException, tool: str) -> BaseException:
    """Return the error for the caller of *tool* when its function raised *error*.

    Refusals by policy or limit pass unchanged, and so does a `ToolFailed` that the tool raised itself; a `HostError`
    keeps its code, retry and text. Any other error of a nested call becomes the tool's own, because the caller did not
    write those arguments. GeneratorExit and an interrupt of the main thread are meant for the code around the call, and
    pass unchanged.
    """
    if isinstance(error, (PolicyError, LimitError, GeneratorExit)) or is_interrupt(error):
        return error
    if isinstance(error, ToolFailed) and error.tool in ("", tool):
        error.tool = tool
        return error
    if isinstance(error, HostError):
        failed = ToolFailed(error.text, tool=tool, code=error.code, retry=error.retry)
    else:
        failed = ToolFailed(_told(error), tool=tool)
    failed.__cause__ = error
    return failed


def report_failure(error: BaseException, frame: CallFrame) -> BaseException:
    """Return the error for the caller of *frame* when its tool raised *error*, with all secrets replaced."""
    found = convert_exception(error, frame.tool)
    _log(found, error, frame)
    secrets = frame.session.secrets
    if secrets is None or not isinstance(found, CallError):
        return found
    if secrets.text(found.tool) is not found.tool and not frame.session._has_tool(found.tool):
        found.tool = frame.tool  # the function invented the other name
    return secrets.error(found)


def _log(found: BaseException, error: BaseException, frame: CallFrame) -> None:
    """Log the traceback of what a tool raised; the traceback of a nested call was logged where it failed.

    A `ToolFailed` that the tool itself raised is expected: its cause, if any, is logged for debugging. One that stands
    for an interrupt on another thread is not expected, see `drivers.error_outcome`.
    """
    if isinstance(error, CallError) and isinstance(found, CallError):
        found.is_logged = error.is_logged
    if isinstance(error, ToolFailed):
        if error.__cause__ is not None and not (error.is_logged or isinstance(error.__cause__, NeuroScriptError)):
            is_fault = error.code == "inject.failed" or isinstance(error.__cause__, KeyboardInterrupt)
            level: Literal["error", "debug"] = "error" if is_fault else "debug"
            frame.session._log_failure(frame.tool, error.__cause__, level)
            error.is_logged = level == "error"
    elif isinstance(found, CallError) and not isinstance(error, NeuroScriptError):
        frame.session._log_failure(frame.tool, error)
        found.is_logged = True


def _told(error: BaseException) -> str:
    if isinstance(error, CallError):
        done = f"its call of {error.tool} failed" if error.tool else "its request was refused"
        return f"{done} ({error.code})"
    return f"the tool failed ({type_name(error)})"


def close(result: Any) -> None:
    """Close a generator, or a coroutine that a function returned without being a coroutine function.

    What its own code raises is dropped, because the call fails anyway; an interrupt of the main thread propagates.
    """
    try:
        if hasattr(result, "send"):
            result.close()
    except BaseException as error:
        if is_interrupt(error):
            raise
