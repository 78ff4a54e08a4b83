"""Engines with one broken component, and the guards that it can break."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
from tests.calls.faults import CANARY, NO_APPROVAL, NO_NEEDS, NO_REFUSAL, NO_TIME, RAISED, Fault
from tests.conftest import ALL

from neuroscript import (
    ArgSpec,
    ArgType,
    Engine,
    ExecutionPolicy,
    Host,
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

    def call(self, entry_point: str, value: str = CANARY) -> Any:
        """Call the tool through an entry point, and return its result, or the one item of a stream."""
        given = ENTRY_POINTS[entry_point](self.engine, value)
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


ENTRY_POINTS: dict[str, Callable[[Engine, str], Any]] = {
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

MANNERS = ("plain", "coroutine", "stream")

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
    codes: tuple[str, ...] = ("policy.check_failed",)
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
        by_clock_of_a_rate, NO_TIME, ("limit.clock", "policy.check_failed"), right=("a year out of range",)
    ),
}
FEW = ("ValueError", "SystemExit", "GeneratorExit", "None")
"""Faults that are tried for every kind of function; the others use a plain function."""


def cells(faults: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each fault with each kind of function that it is tried for."""
    for fault in faults:
        for manner in MANNERS if fault in FEW else ("plain",):
            yield fault, manner


def share_of_cells(faults: Iterable[str], *places: int) -> list[tuple[str, str]]:
    """Return the cells that one row and one entry point try: all of them in a full run, otherwise a third.

    Args:
        places: The places of the row and of the entry point in their tables. Three entry points of nine try each cell.
    """
    every = [*cells(faults)]
    return every if ALL else every[sum(places) % 3 :: 3]


@contextmanager
def cell(*words: str) -> Iterator[None]:
    """Return the name of a table cell for assertion messages."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"the cell: {', '.join(words)}")
        raise
