"""Guards and observers that fail in every way: a failed guard refuses the call, and a failed observer is ignored.

Each fault is tried at every entry point and for every kind of function. The messages contain no part of the call. When the
guard works again, so does the tool: no count, slot, call or thread remains.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from itertools import product
from typing import Any

import attrs
import pytest

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CallError,
    Capability,
    Engine,
    ExecutionPolicy,
    Host,
    LimitError,
    PolicyError,
    Runtime,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
)
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.policy.limits import Limits
from neuroscript.runtime.records import CallRecord, PendingCall
from neuroscript.tools.hookspecs import hookimpl

CANARY = "cаnary"  # with a Cyrillic letter, so it matches nothing else

Fault = Callable[[], Any]
"""The behavior of a broken component: it raises an error or returns an invalid answer."""


class Unspeakable(Exception):
    """An error that cannot be converted to a string."""

    def __str__(self) -> str:
        raise RuntimeError(CANARY)

    __repr__ = __str__


class Odd(BaseException):
    """A BaseException that Python itself does not define."""


def raising(error: Callable[[], BaseException]) -> Fault:
    """Return a function that raises a new error."""

    def fault() -> Any:
        raise error()

    return fault


RAISED: dict[str, Fault] = {
    "ValueError": raising(lambda: ValueError(CANARY)),
    "KeyError": raising(lambda: KeyError(CANARY)),
    "StopIteration": raising(lambda: StopIteration(CANARY)),
    "StopAsyncIteration": raising(lambda: StopAsyncIteration(CANARY)),
    "SystemExit": raising(lambda: SystemExit(CANARY)),
    "GeneratorExit": raising(lambda: GeneratorExit(CANARY)),
    "CancelledError": raising(lambda: asyncio.CancelledError(CANARY)),
    "RecursionError": raising(lambda: RecursionError(CANARY)),
    "MemoryError": raising(MemoryError),
    "TimeoutError": raising(TimeoutError),
    "an error that can not be printed": raising(Unspeakable),
    "no Exception": raising(lambda: Odd(CANARY)),
    "a group": raising(lambda: BaseExceptionGroup(CANARY, [Odd(CANARY)])),
    "an ArgumentError": raising(lambda: ArgumentError([])),
    "a CallError": raising(lambda: CallError(CANARY)),
}
"""The errors that a component may raise."""


def returning(value: Any) -> Fault:
    """Return a function that always returns the same object."""
    return lambda: value


class Truthful:
    """An object that claims to equal everything."""

    verdict = "approve"
    allowed = True
    for_session = True
    arguments = None
    reason = ""

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Subclassed(Approval):
    """An approval of a foreign class."""


def approval(verdict: object) -> Approval:
    """Return an approval with a verdict that its constructor refuses."""
    made = Approval.approve()
    object.__setattr__(made, "verdict", verdict)
    return made


NO_APPROVAL: dict[str, Fault] = {
    "None": returning(None),
    "True": returning(True),
    "1": returning(1),
    "yes": returning("yes"),
    "approve": returning("approve"),
    "a dict": returning({"verdict": "approve"}),
    "a tuple": returning((True,)),
    "the class": returning(Approval),
    "the maker": returning(Approval.approve),
    "another class": returning(Truthful()),
    "a subclass": lambda: Subclassed("approve"),
    "an unknown verdict": lambda: approval("maybe"),
    "no verdict": lambda: approval(True),
    "an empty verdict": lambda: approval(""),
    "a verdict in capitals": lambda: approval("APPROVE"),
    "a generator": lambda: (Approval.approve() for _ in range(1)),
    "a list of one": lambda: [Approval.approve()],
}
"""Invalid answers of an approver."""

NO_REFUSAL: dict[str, Fault] = {
    "1": returning(1),
    "0": returning(0),
    "False": returning(False),
    "a dict": returning({}),
    "a list": returning([]),
    "bytes": returning(b""),
    "another class": returning(Truthful()),
    "an approval": lambda: Approval.approve(),
    "the class": returning(PolicyError),
    "a number": returning(0.0),
}
"""Invalid answers of a hook."""


class Need:
    """An object that looks like an empty need."""

    resource = "pure"
    verbs = ("use",)
    scopes = None


def half() -> Iterator[Capability]:
    """Yield a need, then fail."""
    yield Capability.parse("fs:read:data/a")
    raise ValueError(CANARY)


NO_NEEDS: dict[str, Fault] = {
    "None": returning(None),
    "5": returning(5),
    "True": returning(True),
    "a text": returning(f"fs:read:{CANARY}"),
    "a list of texts": returning([f"fs:read:{CANARY}"]),
    "a list of None": returning([None]),
    "a need of another class": returning((Need(),)),
    "a generator that fails": half,
    "the class": returning(Capability),
    "an empty text": returning(""),
    "an empty map": returning({}),
    "no bytes": returning(b""),
}
"""Invalid results of a need template."""

NO_TIME: dict[str, Fault] = {
    "NaN": returning(float("nan")),
    "infinity": returning(float("inf")),
    "minus infinity": returning(float("-inf")),
    "None": returning(None),
    "a text": returning("12:00"),
    "bytes": returning(b"0"),
    "a list": returning([1.0]),
    "a truth value": returning(True),
    "a decimal": returning(Decimal(1)),
    "a complex number": returning(1j),
    "a number without end": returning(10**400),
    "a year that nobody knows": returning(1e300),
    "another class": returning(Truthful()),
}
"""Invalid times of a clock."""


# An engine with one broken component


@attrs.define
class Part:
    """A component that fails while it is broken, and works otherwise."""

    fault: Fault
    broken: bool = True
    asked: int = 0

    def __call__(self, works: Callable[[], Any]) -> Any:
        self.asked += 1
        return self.fault() if self.broken else works()


class Log:
    """The formatted log lines, without tracebacks, whose messages are for the host only."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.tracebacks: list[str] = []

    def error(self, msg: str, *args: object) -> None:
        (self.tracebacks if msg == "%s failed\n%s" else self.lines).append(msg % args)

    debug = info = warning = error


class Sink:
    """Stores records in a list, unless one of its faults is active."""

    def __init__(self, intent: Part | None = None, outcome: Part | None = None, closing: Part | None = None) -> None:
        self.records: list[CallRecord] = []
        self._parts = {"intent": intent, "outcome": outcome, "refused": outcome}
        self._closing = closing

    def write(self, record: CallRecord) -> None:
        part = self._parts[record.kind]
        if part is not None:
            part(lambda: None)
        self.records.append(record)

    def close(self) -> None:
        if self._closing is not None:
            self._closing(lambda: None)


def approving(request: ApprovalRequest) -> Approval:
    """Approve everything."""
    return Approval.approve()


@attrs.frozen
class Setting:
    """The options of an engine and its tool that make one component fail."""

    options: dict[str, Any] = attrs.field(factory=dict)
    permits: dict[str, Any] = attrs.field(factory=dict)
    needs: dict[str, Any] = attrs.field(factory=dict)
    limits: dict[str, Any] = attrs.field(factory=dict)
    template: Part | None = None
    clock: Callable[[], Any] = time.time


class Bench:
    """An engine with ``g.t``, which must not run, and ``g.outer``, which calls it, plus the log and the tools that ran."""

    def __init__(self, setting: Setting, manner: str, logger: Any = None) -> None:
        self.ran: list[Any] = []
        self.log = Log()
        toolset = Toolset("g")
        spec = ToolSpec(
            "t", "g", (ArgSpec("x", ArgType.STRING),), return_type=ArgType.STRING, stream=manner == "stream"
        )
        policy = ToolPolicy(effects=("writes",), blocking=False, **setting.needs)
        inner = toolset.add(spec, self._function(manner), policy)
        toolset.add(ToolSpec("outer", "g", (ArgSpec("x", ArgType.STRING),), return_type=ArgType.ANY), _outer)
        if setting.template is not None:
            object.__setattr__(inner, "templates", (Template(setting.template),))
        limits = Limits(**{"calls": 1_000, "concurrency": 1, **setting.limits})
        self.engine = Engine(
            toolsets=[toolset],
            plugins="none",
            policy=ExecutionPolicy(limits=limits, **setting.permits),
            host=Host(logger=self.log if logger is None else logger, clock=setting.clock),
            **setting.options,
        )

    def _function(self, manner: str) -> Callable[..., Any]:
        def plain(rt: Runtime, x: str) -> str:
            self.ran.append(x)
            return f"{x}!"

        async def coroutine(rt: Runtime, x: str) -> str:
            self.ran.append(x)
            return f"{x}!"

        def stream(rt: Runtime, x: str) -> Iterator[str]:
            self.ran.append(x)
            yield f"{x}!"

        return {"plain": plain, "coroutine": coroutine, "stream": stream}[manner]

    def call(self, door: str, value: str = CANARY) -> Any:
        """Call the tool through an entry point, and return its result, or the one item of a stream."""
        given = DOORS[door](self.engine, value)
        return given[0] if isinstance(given, list) else given

    def counts(self) -> dict[str, Any]:
        """Return the current counts of the limits."""
        return dict(self.engine.ledger.spent)


def _outer(rt: Runtime, x: str) -> Any:
    return rt.call_tool("g.t", (x,))


class Template:
    """Stands in for the code that fills a need of a tool; the public API cannot make one that fails."""

    def __init__(self, part: Part) -> None:
        self._part = part

    def fill(self, values: Any) -> Any:
        return self._part(lambda: ())


def executed(engine: Engine, value: str) -> Any:
    """Call like a model loop, and raise the error of the result."""
    result = engine.execute(ToolCall("g.t", (value,)))
    if result.error is not None:
        raise result.error
    return result.value


async def _drained(items: Any) -> list[Any]:
    return [item async for item in items]


DOORS: dict[str, Callable[[Engine, str], Any]] = {
    "call": lambda engine, value: engine.call("g.t", (value,)),
    "call_named": lambda engine, value: engine.call_named("g.t", {"x": value}),
    "timed": lambda engine, value: engine.call("g.t", (value,), timeout=60),
    "acall": lambda engine, value: asyncio.run(engine.acall("g.t", (value,))),
    "execute": executed,
    "stream": lambda engine, value: list(engine.stream("g.t", (value,))),
    "astream": lambda engine, value: asyncio.run(_drained(engine.astream("g.t", (value,)))),
    "nested": lambda engine, value: engine.call("g.outer", (value,)),
    "nested, awaited": lambda engine, value: asyncio.run(engine.acall("g.outer", (value,))),
}
ON_THIS_THREAD = ("call", "call_named", "execute", "stream", "nested")
MANNERS = ("plain", "coroutine", "stream")


# Guards

Gate = Callable[[Part], Setting]


def by_approver(part: Part) -> Setting:
    """A sync approver."""

    def approver(request: ApprovalRequest) -> Any:
        return part(Approval.approve)

    return Setting(permits={"approver": approver}, needs={"requires_approval": True})


def by_async_approver(part: Part) -> Setting:
    """An async approver."""

    async def approver(request: ApprovalRequest) -> Any:
        await asyncio.sleep(0)
        return part(Approval.approve)

    return Setting(permits={"approver": approver}, needs={"requires_approval": True})


def by_awaitable(part: Part) -> Setting:
    """A sync approver that returns an awaitable."""

    async def later() -> Any:
        return part(Approval.approve)

    return Setting(permits={"approver": lambda request: later()}, needs={"requires_approval": True})


def by_approver_of_the_host(part: Part) -> Setting:
    """The approver of the outer of two policies."""
    setting = by_approver(part)
    ceiling = ExecutionPolicy(**setting.permits)
    return Setting(permits={"approver": approving, "within": ceiling}, needs=setting.needs)


def by_hook(part: Part) -> Setting:
    """A hook that may refuse."""

    class Deciding:
        @hookimpl
        def neuroscript_decide(self, call: PendingCall) -> Any:
            return part(lambda: None) if call.tool == "g.t" else None

    return Setting({"hooks": [Deciding()]})


def by_template(part: Part) -> Setting:
    """The code that fills the needs of the tool; the host grants everything."""
    return Setting(permits={"grants": ("*:*:*",)}, template=part)


def by_template_without_grants(part: Part) -> Setting:
    """The same, but the host grants nothing."""
    return Setting(template=part)


def by_sink(part: Part) -> Setting:
    """A sink that must store the start of calls that write."""
    return Setting({"audit": Sink(intent=part)})


def by_second_sink(part: Part) -> Setting:
    """The second of two sinks, where all calls must be stored."""
    sink = Sink()
    sink.write = lambda record: (  # type: ignore[method-assign]
        part(lambda: None) if record.kind == "intent" and record.tool == "g.t" else sink.records.append(record)
    )
    return Setting({"audit": [Sink(), sink], "audit_required": "all"})


def by_clock(part: Part) -> Setting:
    """The clock of an audit log."""
    return Setting({"audit": Sink()}, clock=lambda: part(time.time))


def by_clock_of_an_observer(part: Part) -> Setting:
    """The clock of an observer that is notified of each end."""

    class Observing:
        @hookimpl
        def neuroscript_call_finished(self, record: CallRecord) -> None:
            pass

    return Setting({"hooks": [Observing()]}, clock=lambda: part(time.time))


def by_clock_of_a_rate(part: Part) -> Setting:
    """The clock of a time limit."""
    return Setting(clock=lambda: part(time.time), limits={"rates": {"g.t": "1000/hour"}})


@attrs.frozen
class Row:
    """A guard, its possible faults, and the resulting refusals.

    Attributes:
        nonsense: Invalid answers that it may return.
        codes: The error codes of the refusal.
        right: Exceptions that are valid answers.
        outer: Whether the outer of two nested calls meets the fault first.
    """

    gate: Gate
    nonsense: dict[str, Fault]
    codes: tuple[str, ...] = ("policy.fault",)
    right: tuple[str, ...] = ()
    outer: bool = False

    @property
    def faults(self) -> dict[str, Fault]:
        """Every fault of the guard."""
        every = {**RAISED, **self.nonsense}
        return {name: fault for name, fault in every.items() if name not in self.right}


GATES = {
    "approver": Row(by_approver, NO_APPROVAL),
    "async approver": Row(by_async_approver, NO_APPROVAL),
    "approver that gives an awaitable": Row(by_awaitable, NO_APPROVAL),
    "approver of the host": Row(by_approver_of_the_host, NO_APPROVAL),
    "hook": Row(by_hook, NO_REFUSAL),
    "template": Row(by_template, NO_NEEDS, right=("an ArgumentError",)),
    "template without grants": Row(by_template_without_grants, NO_NEEDS, right=("an ArgumentError",)),
    "sink": Row(by_sink, {}, ("audit.unavailable",)),
    "second sink": Row(by_second_sink, {}, ("audit.unavailable",)),
    "clock of an audit": Row(by_clock, NO_TIME, outer=True),
    "clock of an observer": Row(by_clock_of_an_observer, NO_TIME, outer=True),
    "clock of a rate": Row(
        by_clock_of_a_rate, NO_TIME, ("limit.clock", "policy.fault"), right=("a year that nobody knows",)
    ),
}
FEW = ("ValueError", "SystemExit", "GeneratorExit", "None")
"""Faults that are tried for every kind of function; the others use a plain function."""


def cells(faults: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each fault with each kind of function that it is tried for."""
    for fault in faults:
        for manner in MANNERS if fault in FEW else ("plain",):
            yield fault, manner


@contextmanager
def cell(*words: str) -> Iterator[None]:
    """Return the name of a table cell for assertion messages."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"the cell: {', '.join(words)}")
        raise


def text_of(error: BaseException) -> str:
    """Return everything that an error says about itself."""
    return f"{error} {error!r} {error.args}"


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("gate", GATES)
def test_failing_guard_refuses_and_leaves_nothing_behind(gate: str, door: str) -> None:
    """The function does not run, the code gives the reason, a record is stored, and no value of the call appears."""
    for fault, manner in cells(GATES[gate].faults):
        with cell(fault, manner):
            refuses_and_leaves_nothing_behind(GATES[gate], fault, manner, door)


def refuses_and_leaves_nothing_behind(row: Row, fault: str, manner: str, door: str) -> None:
    is_nested = "nested" in door
    refused = "g.outer" if is_nested and row.outer else "g.t"
    part = Part(row.faults[fault])
    bench = Bench(row.gate(part), manner)
    with bench.engine as engine:
        with pytest.raises((PolicyError, LimitError)) as caught:
            bench.call(door)
        assert bench.ran == []
        assert part.asked > 0
        assert caught.value.code in row.codes
        assert caught.value.retry == "host"
        assert caught.value.tool == refused
        assert [(each.tool, each.code) for each in engine.refusals] == [(refused, caught.value.code)]
        assert CANARY not in text_of(caught.value) + repr(engine.refusals) + "".join(bench.log.lines)
        assert not engine._running

        part.broken = False
        before = bench.counts()["calls"]
        assert before == int(is_nested and refused == "g.t"), "a call that never began is counted"
        assert bench.call(door) == f"{CANARY}!"
        assert bench.ran == [CANARY]
        assert bench.counts()["calls"] - before == 1 + is_nested
        assert bench.counts()["concurrency"] == 0


@pytest.mark.parametrize("door", DOORS)
def test_failing_guards_leave_no_thread(door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads end after their engines are closed and the idle time is over."""
    monkeypatch.setattr("neuroscript.calls.threads.IDLE_SECONDS", 0.1)  # seconds
    before = set(threading.enumerate())
    for gate, fault in product(GATES.values(), ("ValueError", "SystemExit")):
        with Bench(gate.gate(Part(RAISED[fault])), "coroutine").engine as engine:
            with suppress(BaseException):
                DOORS[door](engine, CANARY)
    for each in set(threading.enumerate()) - before:
        each.join(10)
        assert not each.is_alive(), each.name


@pytest.mark.parametrize("door", ON_THIS_THREAD)
@pytest.mark.parametrize("gate", GATES)
def test_interrupt_propagates_through_every_guard_on_the_main_thread(gate: str, door: str) -> None:
    """It is neither an answer nor a fault; the function does not run, and nothing remains."""
    part = Part(raising(KeyboardInterrupt))
    bench = Bench(GATES[gate].gate(part), "plain")
    with bench.engine as engine:
        if "await" in gate or "async" in gate:
            with pytest.raises(PolicyError):  # on the thread of the loop it is not an interrupt by the user
                bench.call(door)
        else:
            with pytest.raises(KeyboardInterrupt):
                bench.call(door)
        assert bench.ran == []

        part.broken = False
        assert bench.call(door) == f"{CANARY}!"
        assert bench.counts()["concurrency"] == 0
        assert not engine._running


# Arguments changed by an approver

NO_ARGUMENTS: dict[str, Any] = {
    "nothing": None,
    "a number": 5,
    "a text": CANARY,
    "a list": [CANARY],
    "no arguments": {},
    "another argument": {"y": CANARY},
    "one too many": {"x": "a", "y": CANARY},
    "another type": {"x": [CANARY]},
    "an object": {"x": object()},
    "a name that is none": {5: CANARY},
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("arguments", NO_ARGUMENTS)
def test_invalid_arguments_from_an_approver_refuse_the_call(arguments: str, door: str) -> None:
    """The error blames the approver, and the caller's own arguments are not used instead."""
    for manner in MANNERS:
        part = Part(lambda: Approval.modify(NO_ARGUMENTS[arguments]))
        bench = Bench(by_approver(part), manner)
        with bench.engine:
            with pytest.raises(CallError) as caught:
                bench.call(door)
            assert isinstance(caught.value, (ArgumentError, PolicyError)) or "nested" in door
            assert bench.ran == []
            assert CANARY not in text_of(caught.value)

            part.broken = False
            assert bench.call(door) == f"{CANARY}!"
            assert bench.counts()["concurrency"] == 0


@pytest.mark.parametrize("door", DOORS)
def test_approvers_that_modify_forever_refuse_the_call(door: str) -> None:
    """Two approvers that never agree count as a fault after some rounds."""
    counter = iter(range(10_000))

    def modifying(request: ApprovalRequest) -> Approval:
        return Approval.modify({"x": f"{CANARY} {next(counter)}"})

    def modifying_too(request: ApprovalRequest) -> Approval:
        return modifying(request)

    ceiling = ExecutionPolicy(approver=modifying)
    setting = Setting(permits={"approver": modifying_too, "within": ceiling}, needs={"requires_approval": True})
    bench = Bench(setting, "plain")
    with bench.engine as engine:
        with pytest.raises(PolicyError) as caught:
            bench.call(door)
        assert (caught.value.code, caught.value.retry) == ("policy.fault", "host")
        assert CANARY not in text_of(caught.value)
        assert [each.code for each in engine.refusals] == ["policy.fault"]
    assert bench.ran == []
    assert next(counter) < 100


# Observers

Observer = Callable[[Part], Setting]


def hooks_of(part: Part, name: str) -> Setting:
    """Return a setting with a plugin whose observer fails."""

    class Observing:
        @hookimpl
        def neuroscript_call_started(self, record: CallRecord) -> None:
            if name == "started":
                part(lambda: None)

        @hookimpl
        def neuroscript_call_finished(self, record: CallRecord) -> None:
            if name == "finished":
                part(lambda: None)

        @hookimpl
        def neuroscript_tool_registered(self) -> None:
            if name == "registered":
                part(lambda: None)

        @hookimpl
        def neuroscript_engine_closed(self) -> None:
            if name == "closed":
                part(lambda: None)

    return Setting({"hooks": [Observing()]})


OBSERVERS: dict[str, Observer] = {
    "hook that is told of a beginning": lambda part: hooks_of(part, "started"),
    "hook that is told of an end": lambda part: hooks_of(part, "finished"),
    "hook that is told of a tool": lambda part: hooks_of(part, "registered"),
    "hook that is told of the engine's end": lambda part: hooks_of(part, "closed"),
    "sink that is not required, at the beginning": lambda part: Setting(
        {"audit": Sink(intent=part), "audit_required": "none"}
    ),
    "sink that is not required, at the end": lambda part: Setting(
        {"audit": Sink(outcome=part), "audit_required": "none"}
    ),
    "sink that is required, at the end": lambda part: Setting({"audit": Sink(outcome=part), "audit_required": "all"}),
    "sink that is closed": lambda part: Setting({"audit": [Sink(closing=part), Sink()]}),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("observer", OBSERVERS)
def test_failing_observer_changes_nothing(observer: str, door: str) -> None:
    """The result or error of the tool is unchanged, and the log line contains no value."""
    for fault, manner in cells(RAISED):
        with cell(fault, manner):
            changes_nothing(OBSERVERS[observer], fault, manner, door)


def changes_nothing(observer: Observer, fault: str, manner: str, door: str) -> None:
    part = Part(RAISED[fault])
    bench = Bench(observer(part), manner)
    with bench.engine as engine:
        for _ in range(2):
            assert bench.call(door) == f"{CANARY}!"
        with pytest.raises(ArgumentError):
            engine.call("g.t", ([],))
        assert bench.ran == [CANARY, CANARY]
        assert bench.counts()["concurrency"] == 0
        assert not engine._running
        assert engine.refusals == ()
    assert part.asked > 0
    assert (len(bench.log.lines), len(bench.log.tracebacks)) == (1, 1)
    assert CANARY not in bench.log.lines[0]


@pytest.mark.parametrize("observer", OBSERVERS)
def test_failing_observer_and_log_change_nothing(observer: str) -> None:
    """A failed log is not a reason to fail the call."""

    class Broken:
        def error(self, msg: str, *args: object) -> None:
            raise ValueError(CANARY)

        debug = info = warning = error

    part = Part(RAISED["ValueError"])
    bench = Bench(OBSERVERS[observer](part), "plain", Broken())
    with bench.engine:
        for door in DOORS:
            assert bench.call(door) == f"{CANARY}!"
    assert part.asked > 0


@pytest.mark.parametrize("fault", RAISED)
def test_sink_that_fails_to_close_prevents_no_other_close(fault: str) -> None:
    """The other sinks are closed, and the hooks are notified."""
    closed: list[str] = []

    class Observing:
        @hookimpl
        def neuroscript_engine_closed(self) -> None:
            closed.append("hook")

    class Last(Sink):
        def close(self) -> None:
            closed.append("sink")

    part = Part(RAISED[fault])
    bench = Bench(Setting({"audit": [Sink(closing=part), Last()], "hooks": [Observing()]}), "plain")

    bench.engine.close()

    assert closed == ["sink", "hook"]
    assert part.asked == 1


# Clocks with unusual but valid times

CLOCKS: dict[str, Callable[[], Any]] = {
    "goes back": lambda: 2e9 - time.monotonic(),
    "stands still": lambda: 1_000_000.0,
    "tells whole seconds": lambda: int(time.time()),
    "is before 1970": lambda: -1_000.5,
    "stands at 1970": lambda: 0.0,
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("clock", CLOCKS)
def test_unusual_clock_time_is_not_a_fault(clock: str, door: str) -> None:
    """Records contain the time as it is; durations come from another clock."""
    for gate in (by_clock, by_clock_of_an_observer, by_clock_of_a_rate):
        sinks: list[Sink] = []
        setting = attrs.evolve(gate(Part(lambda: None)), clock=CLOCKS[clock])
        if "audit" in setting.options:
            sinks.append(setting.options["audit"])
        bench = Bench(setting, "plain")
        with bench.engine:
            assert bench.call(door) == f"{CANARY}!"
        assert all(record.seconds >= 0 for sink in sinks for record in sink.records)


def test_every_fault_of_the_tables_is_a_fault() -> None:
    """Each one raises or returns an invalid approval, so no row passes by mistake."""
    assert sum(len([*cells(row.faults)]) for row in GATES.values()) > 200
    for fault in RAISED.values():
        with pytest.raises(BaseException):  # noqa: B017
            fault()
    for fault in NO_APPROVAL.values():
        answer = fault()
        assert type(answer) is not Approval or answer.verdict != "approve"
