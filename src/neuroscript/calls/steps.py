"""Where a call stands: whose it is, which calls it stands in, what its tool may do, and how long it has.

Source: contract sections 4 and 5.

What the steps of a line ask a driver to run, and what becomes of whatever a tool does there.

Source: contract section 6; reliability.md part 4.2.
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
    LentError,
    LimitError,
    NeuroScriptError,
    PolicyError,
    ToolFailed,
    is_interrupt,
)
from neuroscript.policy.capabilities import Capability, Grant

if TYPE_CHECKING:
    from neuroscript.approval.request import Approval
    from neuroscript.calls.gate import Beginning
    from neuroscript.policy.execution_policy import ExecutionPolicy
    from neuroscript.policy.ledger import Ledger
    from neuroscript.runtime.host import Host
    from neuroscript.runtime.interfaces import Logger, Reservation, ToolInfo
    from neuroscript.runtime.redaction import Redactor
    from neuroscript.runtime.state import Memory
    from neuroscript.sandbox import Sandbox
    from neuroscript.tools.toolset import Registry


class ToolsSnapshot(Protocol):
    """The tools of an engine at one time."""

    @property
    def registry(self) -> Registry:
        """The tools."""


class Caller(Protocol):
    """What the call pipeline uses of the session that makes a call.

    Attributes:
        id: The id of the session.
        host: What the host provides.
        memory: The variables and handles of the session.
        ledger: Counts what the session uses of its limits; None where nothing is limited.
        _approved: The calls that are approved for the whole session, by approver and digest.
        _answers: Approvals for calls that are resumed, by approver and digest.
        is_closed: Whether the session begins no further call.
        _is_over: Whether calls that have not ended are abandoned.
    """

    id: str
    host: Host
    memory: Memory
    ledger: Ledger | None
    _approved: set[tuple[int, str]]
    _answers: dict[tuple[int, str], Approval]
    is_closed: bool
    _is_over: bool

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
        """Make a call that the tool of *frame* asks for."""

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
    """Where a call stands; nobody changes it but the line, and a frozen one would cost each nested call 200 ns.

    Attributes:
        session: Whose call it is: it has the scope that the tool sees, and makes the calls that the tool asks for.
        tool: The canonical name of its tool.
        depth: 1 for a call from outside, one more for each call within.
        parent: The call that it stands in.
        needs: What its tool may do in this call: its needs, filled from its arguments.
        timeout: Seconds that its caller gives it, or None.
        deadline: When nobody will wait for it any more, on the clock of `time.monotonic`.
        tools: The tools as they were when the outermost call began, a `Moment`; None means as they are.
        ended: Whether nobody waits for it any more. Frames of compiled lines serve many calls, and never end.
        spent: What this call and those within have used of the limits, where somebody counts.
        call: Its number within the run of the engine, where somebody counts, from 1.
        told: What the records of this call tell of its beginning.
    """

    session: Caller
    tool: str
    depth: int = 1
    parent: CallFrame | None = None
    needs: tuple[Capability, ...] = ()
    timeout: float | None = None
    deadline: float | None = None
    tools: ToolsSnapshot | None = None
    ended: bool = False
    _held: tuple[Grant, ...] | None = None
    spent: dict[str, Any] | None = None
    call: int = 0
    told: Beginning | None = None

    def chain(self) -> Iterator[CallFrame]:
        """Yield this frame and those that it stands in, the innermost first."""
        frame: CallFrame | None = self
        while frame is not None:
            yield frame
            frame = frame.parent

    def started(self, timeout: float | None) -> CallFrame:
        """Return a frame for one call alone, whose tool gives itself *timeout* seconds."""
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
        """Return a frame for one call alone, which has a number and counts what it spends."""
        return CallFrame(
            self.session, self.tool, self.depth, self.parent, self.needs, self.timeout, self.deadline,
            self.tools, False, None, {}, call,
        )  # fmt: skip

    def uncovered(self, needs: Iterable[Capability]) -> Capability | None:
        """Return the first of *needs* that a tool in this chain of calls did not ask for itself."""
        for need, frame in product(needs, self.chain()):
            if not any(held.covers(need) for held in frame.held):
                return need
        return None

    def confine(self, needs: Iterable[Capability], others: Iterable[Capability]) -> None:
        """Hold the tool to *needs*, in place of whatever it holds that covers one of them.

        The frame has to be that of one call alone.

        Args:
            others: Needs that it has besides, and that stay.
        """
        exact, kept = tuple(needs), set(map(Grant.of, others))
        left = [held for held in self.held if held in kept or not any(map(held.covers, exact))]
        self._held = (*left, *map(Grant.of, exact))

    @property
    def is_left(self) -> bool:
        """Whether nobody waits any more for this call, or for one that it stands in."""
        frame: CallFrame | None = self
        while frame is not None:
            if frame.ended:
                return True
            frame = frame.parent
        return False

    @property
    def held(self) -> tuple[Grant, ...]:
        """The needs of this call, as the grants that they are to the calls within."""
        if self._held is None:
            self._held = tuple(map(Grant.of, self.needs))
        return self._held


Manner = Literal["plain", "waits", "coroutine"]
"""How a function is run: simply called, called on a thread where its caller has to go on, or awaited."""


GRACE: Final = 1.0
"""Seconds that what has to end is given for it before it is left behind."""


END: Final = object()
"""Stands for the end of an iterator, so that no StopIteration has to get past a thread or a coroutine."""


@attrs.frozen(eq=False, repr=False)
class Body:
    """What a driver is to run.

    Attributes:
        tool: The canonical name of the tool.
        func: Its function.
        values: The Runtime and the exact values.
        manner: How it is run.
        timeout: Seconds after which nobody waits for it any more, or None.
        limit: Seconds that the whole call has, or None.
        is_last: Whether it has to run though nobody waits for it any more: it ends what has begun.
    """

    tool: str
    func: Callable[..., Any]
    values: tuple[Any, ...]
    manner: Manner
    timeout: float | None = None
    limit: float | None = None
    is_last: bool = False


@attrs.frozen(eq=False, repr=False)
class Item:
    """One exact item of a stream, for whoever reads it; the driver goes on when it is asked for the next.

    Attributes:
        tool: The canonical name of the tool that gives it.
        value: The item.
        nodes: How many values it is made of.
        text: How many bytes of text are in it.
    """

    tool: str
    value: Any
    nodes: int
    text: int


LAST: Final = Item("", END, 0, 0)
"""Stands behind the last item, before the call has ended: whoever collects the items may still fail with them."""


class Closed(Exception):
    """Nobody reads the stream any more: thrown as the answer to an `Item`, and raised again when the tool has ended."""


@attrs.define(eq=False, repr=False)
class Ended(Exception):
    """Nobody waits for the `Body` any more; thrown in place of its outcome, with what the caller is to be told."""

    error: BaseException


Steps = Generator[Body | Item, Any, Any]


def outcome(
    frame: CallFrame, func: Callable[..., Any], values: tuple[Any, ...], manner: Manner, grace: float = 0.0
) -> Generator[Body, Any, Any]:
    """Have a function of the tool run and return what it returned, or raise what its caller is told.

    Args:
        grace: Seconds that it has at the least, where its time is limited, for it ends what has begun.
    """
    timeout = None if frame.deadline is None or frame.timeout is None else max(grace, frame.deadline - monotonic())
    try:
        return (yield Body(frame.tool, func, values, manner, timeout, frame.timeout, is_last=grace > 0))
    except Ended as end:
        raise end.error from None
    except BaseException as error:
        raise failed(error, frame)


def is_iterator(result: object) -> bool:
    """Tell whether a result is an iterator, or an async one, whose items are to be read."""
    return hasattr(type(result), "__next__") or hasattr(type(result), "__anext__")


def is_late(frame: CallFrame) -> bool:
    """Tell whether the time of a call is over."""
    return frame.deadline is not None and frame.timeout is not None and monotonic() >= frame.deadline


def ended_late(frame: CallFrame) -> CallTimeout:
    """Return what the reader of a stream is told that gives its items at once, and whose time is over all the same."""
    text = f"did not end within {frame.timeout:g} s and was stopped"
    return CallTimeout(text, tool=frame.tool, state="stopped", seconds=frame.timeout)


def ended_with_engine() -> CallError:
    """Return what a caller is told whose call was stopped when its engine was closed."""
    return CallError("was stopped, for the engine is closed", code="engine.closed")


def failure(error: BaseException, tool: str) -> BaseException:
    """Return what the caller of *tool* is told when its function raised *error*.

    A refusal by policy or limit passes as it is, and so does a `ToolFailed` that the tool raised itself; a `LentError`
    keeps its code, retry and text. Any other error of a call within becomes the tool's own, for the caller did not
    write those arguments. GeneratorExit and an interrupt of the main thread end what stands around the call, and pass.

    Source: contract section 6.
    """
    if isinstance(error, (PolicyError, LimitError, GeneratorExit)) or is_interrupt(error):
        return error
    if isinstance(error, ToolFailed) and error.tool in ("", tool):
        error.tool = tool
        return error
    if isinstance(error, LentError):
        failed = ToolFailed(error.text, tool=tool, code=error.code, retry=error.retry)
    else:
        failed = ToolFailed(_told(error), tool=tool)
    failed.__cause__ = error
    return failed


def failed(error: BaseException, frame: CallFrame) -> BaseException:
    """Return what the caller of *frame* is told when its tool raised *error*, without any secret."""
    found = failure(error, frame.tool)
    _log(found, error, frame)
    secrets = frame.session.secrets
    if secrets is None or not isinstance(found, CallError):
        return found
    if secrets.text(found.tool) is not found.tool and not frame.session._has_tool(found.tool):
        found.tool = frame.tool  # whose function has made up that name
    return secrets.error(found)


def _log(found: BaseException, error: BaseException, frame: CallFrame) -> None:
    """Log the traceback of what a tool raised; of a nested call that was done where it failed.

    A `ToolFailed` that the tool itself raised is expected: its cause, if it has one, is logged for debugging. One that
    stands for an interrupt on another thread is not, see `drivers.raised`.
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
        done = f"its call of {error.tool} failed" if error.tool else "what it asked for was refused"
        return f"{done} ({error.code})"
    return f"the tool failed ({type_name(error)})"


def close(result: Any) -> None:
    """End a generator, or a coroutine that a function returned without being a coroutine function."""
    if hasattr(result, "close") and hasattr(result, "send"):
        result.close()
