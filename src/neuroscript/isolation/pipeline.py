"""The call pipeline of an isolated tool: its function runs in a worker, everything else in the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from neuroscript.calls.flow_pipeline import FlowPipeline
from neuroscript.calls.pipeline import CallPipeline
from neuroscript.calls.steps import CallerGone, CallFrame, RunMode, Steps, engine_closed_error
from neuroscript.calls.streams import StreamAccount
from neuroscript.coercion.scalars import Handle
from neuroscript.errors import ArgumentError, CallTimeout, ToolFailed
from neuroscript.isolation.exceptions import problems_from, received
from neuroscript.isolation.frames import ProtocolError, UnsendableValue
from neuroscript.isolation.host_runtime import HostRuntime, WorkerGone, WorkerObject
from neuroscript.isolation.pool import EXIT_SECONDS, Pool, Worker, WorkerRules
from neuroscript.isolation.rules import file_rules
from neuroscript.isolation.tool_source import ToolSource, reference, source_of, without_injection
from neuroscript.policy.capabilities import Capability
from neuroscript.runtime.state import handle_id
from neuroscript.spec.callables import positional_signature
from neuroscript.spec.instances import plain_default
from neuroscript.tools.tool import ToolImplementation, observation_of

if TYPE_CHECKING:
    from neuroscript.policy.isolation import IsolationOf


NESTED_SECONDS: Final = 0.05
"""Seconds after its deadline when a nested call is killed, unless the outer call has been ended before."""


RESULT: Final[Mapping[str, int]] = {"done": 1}
STREAM: Final[Mapping[str, int]] = {"done": 1, "stream": 0}
ITEM: Final[Mapping[str, int]] = {"item": 1, "end": 0}
END: Final[Mapping[str, int]] = {"end": 0}
"""What a worker may send at the end of a call, before a stream, and during one, with the number of values."""


class RejectedArguments(Exception):
    """The class of an argument rejects its value, in a worker."""

    def __init__(self, error: ArgumentError) -> None:
        super().__init__()
        self.error = error


@attrs.define(eq=False, repr=False)
class WorkerCall:
    """A call that a worker carries out.

    Attributes:
        worker: The worker, or None before there is one.
        is_over: Whether the worker was given back.
        is_killed: Whether the worker was killed because the call was over.
    """

    worker: Worker | None = None
    is_over: bool = False
    is_killed: bool = False
    _lock: Lock = attrs.field(factory=Lock)

    def kill(self) -> None:
        """Kill the worker, unless the call has ended; then the worker may serve another one."""
        with self._lock:
            if not self.is_over:
                self.is_killed = True
                if self.worker is not None:
                    self.worker.kill()

    def end(self) -> bool:
        """Record that the worker is given back or discarded, and return whether it was not before."""
        with self._lock:
            was_over, self.is_over = self.is_over, True
            return not was_over


class IsolatedFunction:
    """The function of an isolated tool.

    Args:
        tool: The tool, without injected arguments.
        source: Where a worker finds it.
        settings: How the host isolates it.

    Attributes:
        calls: The calls that are being carried out, by frame.
        is_stream: Whether the tool returns an iterator.
    """

    def __init__(self, tool: Any, source: ToolSource, pool: Pool, settings: IsolationOf) -> None:
        self.calls: dict[CallFrame, WorkerCall] = {}
        self._tool: str = tool.name
        self._pool = pool
        self._settings = settings
        self._reference = reference(tool)
        self.is_stream = bool(tool.spec.stream)
        self._opens_raw_files: bool = tool.policy.raw_files
        self._args = tuple(tool.spec.args)
        self._plains = tuple(arg if arg.cls is not None or arg.nested else None for arg in self._args)
        self._rules = WorkerRules(
            source,
            settings.isolates_import,
            settings.reuse,
            network=settings.keeps_network,
            memory_bytes=settings.memory_bytes,
            cpu_seconds=settings.cpu_seconds,
            open_files=settings.open_files,
            require=settings.require,
        )
        self.__signature__ = positional_signature(["rt", *(arg.name for arg in self._args)], tool.spec.variadic)

    def __call__(self, rt: Any, *values: Any) -> Any:
        """Run one call in a worker and return its result, or the items of its stream."""
        frame: CallFrame = rt._frame
        call = self.calls.setdefault(frame, WorkerCall())
        tick = Tick(frame, call)
        with self._rules_for(frame) as rules:
            holder = self._holder(frame, values)
            worker = call.worker = self._pool.take(rules, self._settings, holder, frame, tick)
        exchange = Exchange(self, rt, worker, call, tick)
        try:
            tick()
            kind, value = exchange.begin(self._message(frame, values))
        except BaseException as error:
            failed = exchange.failed(error)
            raise failed from failed.__cause__
        if kind == "done":
            exchange.end()
            return value
        return IsolatedItems(exchange)

    def _message(self, frame: CallFrame, values: Sequence[Any]) -> tuple[Any, ...]:
        plain = [value if arg is None else plain_default(arg, value) for arg, value in self._with_args(values)]
        return ("call", *self._reference, self.is_stream, plain, environment_of(frame.needs))

    def _with_args(self, values: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        last = len(self._plains) - 1
        return ((self._plains[min(index, last)], value) for index, value in enumerate(values))

    @contextmanager
    def _rules_for(self, frame: CallFrame) -> Iterator[WorkerRules]:
        """Provide the rules of a call: those of the tool, with the files and programs that its needs permit."""
        if not frame.needs:
            yield self._rules
            return
        with file_rules(frame.needs, lambda: frame.session.sandbox, raw_files=self._opens_raw_files) as files:
            executes = any("execute" in each.words for each in files)
            yield attrs.evolve(self._rules, files=files, execute=executes) if files else self._rules

    def _holder(self, frame: CallFrame, values: Sequence[Any]) -> Worker | None:
        """Return the worker that holds an object which the arguments refer to, or None."""
        stored = frame.session.memory.handles
        if not len(stored):
            return None
        for value in values:
            if type(value) in (str, Handle):
                thing = stored.peek(handle_id(value))
                if isinstance(thing, WorkerObject) and thing.worker.frame not in (*frame.chain(),):
                    return thing.worker  # it is free, or becomes free without waiting for this call
        return None

    def given_back(self, worker: Worker) -> None:
        """Return a worker to the pool."""
        self._pool.give_back(worker, self._settings)

    def discarded(self, worker: Worker, seconds: float) -> str:
        """Return how a worker has ended, which is killed if it does not end within some seconds."""
        return self._pool.discard(worker, seconds)

    def host_runtime(self, rt: Any, worker: Worker) -> HostRuntime:
        """Return what answers the requests of a call."""
        return HostRuntime(rt, worker, opens_raw_files=self._opens_raw_files)

    @property
    def memory_bytes(self) -> int:
        """How much memory a worker may use."""
        return self._settings.memory_bytes


@attrs.frozen(eq=False, repr=False)
class Tick:
    """Ends a call in a worker whose caller no longer waits."""

    _frame: CallFrame
    _call: WorkerCall

    def __call__(self) -> None:
        if not self._call.is_killed and self.is_over:
            self._call.kill()
        if self._call.is_killed:
            raise self.error()

    @property
    def is_over(self) -> bool:
        """Whether the caller no longer waits. A nested call lets the outer one notice first that the time is over."""
        frame = self._frame
        if frame.session._is_over or frame.is_abandoned:
            return True
        if frame.deadline is None:
            return False
        return monotonic() >= frame.deadline + (NESTED_SECONDS if frame.timeout is None else 0)

    def error(self) -> CallerGone:
        """Return the error of the call that was killed."""
        is_closed = self._frame.session._is_over
        return CallerGone(engine_closed_error() if is_closed else killed(self._frame))


def killed(frame: CallFrame, items: int | None = None) -> CallTimeout:
    """Return the error of a call whose worker was killed because its time was over.

    Args:
        items: How many items its stream had produced; None if it is not a stream.
    """
    seconds = "" if frame.timeout is None else f" within {frame.timeout:g} s"
    text = f"did not end{seconds} and was killed"
    error = CallTimeout(text, tool=frame.tool, state="killed", seconds=frame.timeout)
    if items is None:
        return error
    return cast(CallTimeout, StreamAccount(None, items).ending(error))


class Exchange:
    """The messages of one call between the host and its worker."""

    def __init__(self, func: IsolatedFunction, rt: Any, worker: Worker, call: WorkerCall, tick: Tick) -> None:
        self._func = func
        self._worker = worker
        self._call = call
        self._tick = tick
        self._host = func.host_runtime(rt, worker)

    def begin(self, message: tuple[Any, ...]) -> tuple[str, Any]:
        """Send a call, and return its result, or that items follow."""
        with self._worker.serving(self._host, self._tick):
            self._worker.flush()
            self._worker.channel.send(*message)
            return self._reply(STREAM if self._func.is_stream else RESULT)

    def ask(self, word: str) -> tuple[str, Any]:
        """Ask for the next item of a stream, or for its end."""
        try:
            with self._worker.serving(self._host, self._tick):
                self._worker.channel.send(word)
                return self._reply(ITEM if word == "next" else END)
        except BaseException as error:
            failed = self.failed(error)
            raise failed from failed.__cause__

    def _reply(self, expected: Mapping[str, int]) -> tuple[str, Any]:
        """Answer the requests of the worker until it sends a result.

        Args:
            expected: What it may send, with the number of values.
        """
        while True:
            match self._worker.channel.receive():
                case ["rt", str(member), list(arguments)]:
                    self._host.answer(member, arguments)
                case [str(word), *values] if len(values) == expected.get(word):
                    return word, values[0] if values else None
                case ["failed", data]:
                    raise _Raised(received(data))
                case ["refused", int(index)] if index in self._host.raised:
                    raise _Raised(self._host.raised[index])
                case ["misfit", list(problems)]:
                    raise _Raised(RejectedArguments(ArgumentError(problems_from(problems))))
                case _:
                    raise ProtocolError("it sent an unknown message")

    def end(self) -> None:
        """Give the worker back, because the call has ended."""
        if self._call.end():
            self._host.end()
            self._func.given_back(self._worker)

    def failed(self, error: BaseException) -> BaseException:
        """Return the exception for what has happened, and give the worker back or discard it."""
        if isinstance(error, _Raised):
            self.end()
            return error.error if not _is_memory_error(error.error) else self._memory_error(error.error)
        if not self._call.end():
            return error
        self._host.end()
        if isinstance(error, UnsendableValue):
            self._func.given_back(self._worker)
            return ToolFailed(f"an argument cannot be sent to a worker ({error})", code="isolation.value")
        is_gone = isinstance(error, (EOFError, ConnectionError, WorkerGone))
        end = self._func.discarded(self._worker, EXIT_SECONDS if is_gone else 0)
        if self._call.is_killed or self._tick.is_over:
            return self._tick.error()
        if isinstance(error, ProtocolError):
            return ToolFailed(f"its worker was killed because {error}", code="isolation.protocol")
        if is_gone:
            how = f" ({end})" if end else ""
            return ToolFailed(f"its worker ended during the call{how}", code="isolation.died")
        return error

    def _memory_error(self, error: BaseException) -> ToolFailed:
        limit = self._func.memory_bytes >> 20
        failed = ToolFailed(f"it needs more memory than the {limit} MiB of its worker", code="isolation.memory")
        failed.__cause__ = error
        return failed


class _Raised(Exception):
    """The tool has raised an exception; its worker is intact."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


def _is_memory_error(error: BaseException) -> bool:
    return type(error).__name__ == "MemoryError"


class IsolatedItems:
    """The items of a stream that a worker makes."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._is_over = False

    def __iter__(self) -> IsolatedItems:
        return self

    def __next__(self) -> Any:
        if self._is_over:
            raise StopIteration
        try:
            kind, value = self._exchange.ask("next")
        except BaseException:
            self._is_over = True
            raise
        if kind == "item":
            return value
        self._is_over = True
        self._exchange.end()
        raise StopIteration

    def close(self) -> None:
        """Let the worker close the iterator."""
        if not self._is_over:
            self._is_over = True
            self._exchange.ask("close")
            self._exchange.end()


def environment_of(needs: Sequence[Capability]) -> Mapping[str, str]:
    """Return the variables of the host's environment that a call may read because its needs name them."""
    import os

    names = [scope for need in needs if need.resource == "env" and "read" in need.verbs for scope in need.scopes]
    return {name: os.environ[name] for name in names if name in os.environ}


# Pipelines


class IsolatedSteps:
    """Makes a pipeline kill the worker of a call that ends before its function."""

    function: IsolatedFunction

    @property
    def is_direct(self) -> bool:
        """Whether the pipeline can be compiled; a call in a worker takes steps, so that it can be ended."""
        return False

    def _body(self, handed: tuple[Any, ...], frame: CallFrame) -> Steps:
        calls = self.function.calls
        call = calls[frame] = WorkerCall()
        try:
            return (yield from super()._body(handed, frame))  # type: ignore[misc]
        except CallTimeout as error:
            if error.state == "abandoned" and (call.is_killed or not call.is_over):
                raise killed(frame, error.items) from None
            raise
        except ToolFailed as error:
            cause = error.__cause__
            if isinstance(cause, RejectedArguments):
                raise self.refused(frame, cause.error, handed) from None  # type: ignore[attr-defined]
            raise
        finally:
            del calls[frame]
            call.kill()


@attrs.frozen(eq=False, repr=False)
class IsolatedPipeline(IsolatedSteps, CallPipeline):
    """The call pipeline of an isolated tool.

    Attributes:
        function: Runs the function of the tool in a worker.
    """

    function: IsolatedFunction = attrs.field(kw_only=True)
    run_mode: RunMode = attrs.field(init=False, default="waits")


@attrs.frozen(eq=False, repr=False)
class IsolatedFlowPipeline(IsolatedSteps, FlowPipeline):
    """The same under rules about information flow."""

    function: IsolatedFunction = attrs.field(kw_only=True)
    run_mode: RunMode = attrs.field(init=False, default="waits")


def isolated_kind(function: IsolatedFunction, *, tracks_flow: bool) -> Callable[..., CallPipeline]:
    """Return what makes the pipeline of an isolated tool."""
    return partial(IsolatedFlowPipeline if tracks_flow else IsolatedPipeline, function=function)


def isolated_tool(listed: Any, pool: Pool, settings: IsolationOf) -> tuple[ToolImplementation, IsolatedFunction]:
    """Return a tool whose function runs in a worker, and that function.

    Args:
        listed: A `ToolImplementation`, or a tool that is known from an index and is not loaded.

    Raises:
        CannotImport: A worker cannot find its function.
        SpecError: An argument is injected by an async resolver.
    """
    source = source_of(listed)
    is_loaded = isinstance(listed, ToolImplementation)
    base = without_injection(listed) if is_loaded else listed
    known = getattr(base.func, "listed", None) if is_loaded else listed
    if getattr(known, "isolation", None) is not None:  # the host has not imported its code
        settings = attrs.evolve(settings, isolates_import=True)
    func = IsolatedFunction(base, source, pool, settings)
    if not is_loaded:
        return ToolImplementation(listed.spec, func, listed.policy), func
    tool = attrs.evolve(base, func=func)
    if listed.injection is not None:
        tool = attrs.evolve(listed, func=tool.with_injected(**listed.injected).func)
    observation = observation_of(listed)
    return tool if observation is None else attrs.evolve(tool, func=observation.around(tool.func)), func
