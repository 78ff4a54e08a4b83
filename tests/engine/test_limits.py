"""Limits as hosts meet them: through engines and sessions, by every door, in many threads at once.

What `Ledger` counts is held in `test_limits`, and its races in `test_ledger_races`; here it is the line that reserves and
gives back, so it is the line that is watched while other threads are let in between its statements.

Source: contract section 5; issue "Authority", it is done when; reliability.md parts 4.4 and 5.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests import races

import neuroscript.calls.gate
import neuroscript.policy.counters
import neuroscript.policy.ledger
from neuroscript import (
    ArgSpec,
    ArgType,
    CallError,
    CallRecord,
    Engine,
    ExecutionPolicy,
    Host,
    LimitError,
    MemoryAudit,
    Runtime,
    Session,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
    hookimpl,
)
from neuroscript.approval.request import Approval
from neuroscript.calls.compiler import FILE
from neuroscript.policy.ledger import Ledger
from neuroscript.policy.limits import Limits

INT, STRING = ArgType.INT, ArgType.STRING

# The tools


def add(rt: Runtime, a: int) -> int:
    return a


def stream(rt: Runtime, a: int) -> Iterator[int]:
    yield from range(a)


async def awaited(rt: Runtime, a: int) -> int:
    await asyncio.sleep(0)
    return a


def outer(rt: Runtime, a: int) -> Any:
    return rt.call_tool("g.add", (a,))


def deep(rt: Runtime, a: int) -> Any:
    return rt.call_tool("g.deep", (a - 1,)) if a else 0


def pays(rt: Runtime, what: str, amount: str) -> None:
    rt.spend(what, amount)


def settles(rt: Runtime, what: str, amount: str, taken: str) -> None:
    rt.spend(what, amount).settle(taken)


def pays_twice(rt: Runtime, what: str, amount: str) -> None:
    rt.spend(what, amount)
    rt.call_tool("g.pays", (what, amount))


def fail(rt: Runtime, a: int) -> None:
    raise OSError


def sleeps(rt: Runtime, seconds: float) -> None:
    time.sleep(seconds)


def sleeps_within(rt: Runtime, seconds: float) -> Any:
    for _ in range(3):
        rt.call_tool("g.sleeps", (seconds,))


ONE = (ArgSpec("a", INT),)
AMOUNT = (ArgSpec("what", STRING), ArgSpec("amount", STRING))


def tools(**added: Any) -> Toolset:
    """Return the tools, each in the group ``g``; *added* are functions of one number."""
    made = Toolset("g")
    spec_of: dict[Any, tuple[ArgSpec, ...]] = {
        **dict.fromkeys((add, stream, awaited, outer, deep, fail), ONE),
        **dict.fromkeys((pays, pays_twice), AMOUNT),
        settles: (*AMOUNT, ArgSpec("taken", STRING)),
        **dict.fromkeys((sleeps, sleeps_within), (ArgSpec("seconds", ArgType.FLOAT),)),
        **dict.fromkeys(added.values(), ONE),
    }
    names = {func: name for name, func in added.items()}
    for func, args in spec_of.items():
        name = names.get(func, func.__name__)
        made.add(ToolSpec(name, "g", args, return_type=ArgType.ANY, return_nullable=True, stream=func is stream), func)
    return made


def engine_of(limits: Limits | None, *, clock: Callable[[], float] = time.time, **options: Any) -> Engine:
    """Return an engine with the tools under limits."""
    policy = ExecutionPolicy(
        limits=limits, **{key: options.pop(key) for key in ("grants", "approver") if key in options}
    )
    return Engine(toolsets=[tools()], plugins="none", policy=policy, host=Host(clock=clock), **options)


# The doors

Door = Callable[[Session, str, tuple[Any, ...]], Any]


async def _drained(items: Any) -> list[Any]:
    return [item async for item in items]


def executed(session: Session, name: str, args: tuple[Any, ...]) -> Any:
    """Call as a model does, and raise the error of the result."""
    result = session.execute(ToolCall(name, args))
    if result.error is not None:
        raise result.error
    return result.value


DOORS: dict[str, Door] = {
    "call": lambda session, name, args: session.call(name, args),
    "call_named": lambda session, name, args: session.call_named(name, _named(session, name, args)),
    "acall": lambda session, name, args: asyncio.run(session.acall(name, args)),
    "execute": executed,
    "stream": lambda session, name, args: list(session.stream(name, args)),
    "astream": lambda session, name, args: asyncio.run(_drained(session.astream(name, args))),
    "timed": lambda session, name, args: session.call(name, args, timeout=60),
}

door = pytest.mark.parametrize("door", DOORS)


def _named(session: Session, name: str, args: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip((arg.name for arg in session.infos[name].spec.args), args, strict=False))


RETRIES = {
    "call.timeout": "later",
    "coercion.format": "model",
    "limit.amount": "never",
    "limit.concurrency": "later",
    "limit.rate": "later",
    "limit.identical_calls": "model",
    "policy.rejected": "never",
    "return.type": "never",
    "tool.failed": "never",
    "tool.not_found": "model",
}
"""Who can make the call succeed, by code; for every other code it is 'host'."""


def code(run: Callable[[], Any]) -> str:
    """Return the code of the error that a call ends with, or ``ok``."""
    try:
        run()
    except CallError as error:
        assert error.retry == RETRIES.get(error.code, "host")
        return error.code
    return "ok"


# Each limit, by each door


@attrs.frozen
class Case:
    """A limit, and calls in a row with what comes of each.

    Attributes:
        steps: The tool, its arguments and the code; or a number, by which the clock goes on.
        spent: What the ledger has at the end.
    """

    limits: dict[str, Any]
    steps: Sequence[Any]
    spent: dict[str, Any] = attrs.field(factory=dict)


def step(tool: str, *args: Any, code: str = "ok") -> tuple[str, tuple[Any, ...], str]:
    """Return a call of a case."""
    return f"g.{tool}", args or (1,), code


CASES: dict[str, Case] = {
    "calls in total": Case(
        {"calls": 3},
        [step("add"), step("fail", code="tool.failed"), step("awaited"), step("add", code="limit.calls")],
        {"calls": 3},
    ),
    "calls within are calls": Case(
        {"calls": 3},
        [step("outer"), step("outer", code="limit.calls"), step("add", code="limit.calls")],
        {"calls": 3},
    ),
    "calls of a tool": Case(
        {"tool_calls": {"tool.G.Add": 2, "g.deep": 0}},
        [step("add"), step("outer"), step("outer", code="limit.tool"), step("awaited"), step("deep", code="limit.tool")],
        {"calls of g.add": 2, "calls of g.deep": 0},
    ),
    "a rate": Case(
        {"rates": {"g.*": "2/minute"}},
        [step("add"), 30.0, step("stream"), step("add", code="limit.rate"), 29.5, step("awaited", code="limit.rate"),
         1.0, step("add"), step("add", code="limit.rate")],
    ),
    "a rate of one tool": Case(
        {"rates": {"g.add": "1/second"}},
        [step("add"), step("awaited"), step("outer", code="limit.rate"), 1.0, step("outer")],
    ),
    "the same call in a row": Case(
        {"max_identical_calls": 2},
        [step("add", 5), step("add", 5), step("add", 5, code="limit.identical_calls"), step("add", 6), step("add", 5),
         step("add", 5), step("awaited", 5), step("add", 5)],
    ),
    "the same call in another spelling": Case(
        {"max_identical_calls": 2}, [step("add", 5), step("add", "5"), step("add", 5.0, code="limit.identical_calls")],
    ),
    "the same call within others": Case(
        {"max_identical_calls": 1}, [step("outer", 5), step("outer", 5, code="limit.identical_calls"), step("outer", 6), step("add", 6)],
    ),
    "a depth": Case(
        {"depth": 3}, [step("deep", 2), step("deep", 3, code="limit.depth"), step("deep", 2)],
    ),
    "money of the run": Case(
        {"money": {"EUR": "1.00"}},
        [step("pays", "EUR", "0.3"), step("pays_twice", "EUR", "0.3"), step("pays", "EUR", "0.11", code="limit.money"),
         step("pays", "EUR", "0.1"), step("pays", "EUR", "0.001", code="limit.money"), step("pays", "USD", "99")],
        {"EUR": Decimal("1.0")},
    ),
    "money of one call": Case(
        {"money_per_call": {"EUR": "0.5"}},
        [step("pays", "EUR", "0.5"), step("pays", "EUR", "0.51", code="limit.money"),
         step("pays_twice", "EUR", "0.25"), step("pays_twice", "EUR", "0.26", code="limit.money"),
         step("pays", "EUR", "0.5")],
    ),
    "money that comes back": Case(
        {"money": {"EUR": 1}},
        [step("settles", "EUR", "1", "0.25"), step("settles", "EUR", "0.75", "0.9"), step("pays", "EUR", "0.01", code="limit.money")],
        {"EUR": Decimal("1.15")},
    ),
    "seconds of sleep": Case(
        {"sleep": "1"},
        [step("pays", "sleep", "0.6"), step("pays_twice", "sleep", "0.3", code="limit.sleep"), step("pays", "sleep", "0.1")],
        {"sleep": Decimal("1.0")},
    ),
    "what is no amount": Case(
        {"money": {"EUR": 1}},
        [step("pays", "EUR", "-1", code="limit.amount"), step("pays", "EUR", "NaN", code="limit.amount"),
         step("pays", "eur", "1", code="limit.amount"), step("settles", "EUR", "1", "x", code="limit.amount")],
        {"EUR": 1},
    ),
    "none at all": Case({"calls": 0}, [step("add", code="limit.calls")], {"calls": 0}),
}  # fmt: skip


@door
@pytest.mark.parametrize("name", CASES)
def test_a_limit_holds_by_each_door(name: str, door: str) -> None:
    """In the compiled line and in the steps; the ledger has what the calls have used, and none of those refused."""
    case, now = CASES[name], [1_000.0]
    engine = engine_of(Limits(**case.limits), clock=lambda: now[0])

    for each in case.steps:
        if isinstance(each, float):
            now[0] += each
        else:
            tool, args, expected = each
            assert code(lambda tool=tool, args=args: DOORS[door](engine, tool, args)) == expected, (tool, args)

    assert ({} if engine.ledger is None else dict(engine.ledger.spent)) == case.spent


@door
def test_an_outermost_call_has_so_many_seconds_with_all_that_is_within(door: str) -> None:
    """Each of the calls within has what is left of them."""
    engine = engine_of(Limits(seconds=0.2))

    assert code(lambda: DOORS[door](engine, "g.sleeps", (0.0,))) == "ok"
    assert code(lambda: DOORS[door](engine, "g.sleeps_within", (0.1,))) == "call.timeout"
    assert code(lambda: DOORS[door](engine, "g.sleeps", (0.0,))) == "ok"


@door
def test_the_sentence_of_repeats_says_what_to_do(door: str) -> None:
    """It is told to a model that goes round in circles, and names no value."""
    engine = engine_of(Limits(max_identical_calls=3))
    for _ in range(3):
        DOORS[door](engine, "g.add", (987_654,))

    with pytest.raises(LimitError) as caught:
        DOORS[door](engine, "g.add", (987_654,))

    text = "the same call was made 3 times in a row; change the arguments, or do something else"
    assert (str(caught.value), caught.value.retry) == (f"g.add: {text}", "model")


# Concurrency


def test_no_more_calls_run_at_once_than_are_permitted() -> None:
    """Calls from outside alone; one that ends, however it ends, makes room."""
    inside, go = threading.Semaphore(0), threading.Event()

    def waits(rt: Runtime, a: int) -> Any:
        inside.release()
        go.wait(30)
        rt.call_tool("g.add", (a,))
        if a == 1:
            raise OSError

    engine = Engine(toolsets=[tools(waits=waits)], plugins="none", policy=ExecutionPolicy(limits=Limits(concurrency=2)))
    ended: list[str] = []
    threads = [
        threading.Thread(target=lambda a=a: ended.append(code(lambda: engine.call("g.waits", (a,))))) for a in (1, 2)
    ]
    for each in threads:
        each.start()
        assert inside.acquire(timeout=30)

    assert engine.ledger.spent == {"concurrency": 2}
    for name in DOORS:
        assert code(lambda name=name: DOORS[name](engine, "g.add", (1,))) == "limit.concurrency"
    go.set()
    for each in threads:
        each.join()
    assert sorted(ended) == ["ok", "tool.failed"]
    assert engine.ledger.spent == {"concurrency": 0}
    assert [code(lambda name=name: DOORS[name](engine, "g.outer", (1,))) for name in DOORS] == ["ok"] * len(DOORS)


def test_tasks_of_a_loop_run_at_once_as_many_as_are_permitted() -> None:
    """Those that are refused have cost nothing; one that is cancelled makes room."""
    engine = engine_of(Limits(concurrency=3, calls=10**6))

    async def go() -> list[Any]:
        slow = Toolset("s")
        begun, free = 0, asyncio.Event()

        async def wait(rt: Runtime, a: int) -> int:
            nonlocal begun
            begun += 1
            await free.wait()
            return a

        slow.add(ToolSpec("wait", "s", ONE, return_type=INT), wait)
        engine.register(slow)
        tasks = [asyncio.create_task(engine.acall("s.wait", (a,))) for a in range(8)]
        while begun < 3:
            await asyncio.sleep(0)
        refused = [each for each in tasks if each.done()]
        running = [each for each in tasks if not each.done()]
        running[0].cancel()
        await asyncio.wait([running[0]])
        one_more = asyncio.create_task(engine.acall("s.wait", (9,)))
        while begun < 4:
            await asyncio.sleep(0)
        free.set()
        assert len(refused) == 5
        return await asyncio.gather(*tasks, one_more, return_exceptions=True)

    told = asyncio.run(go())
    assert Counter(type(each).__name__ for each in told) == {"int": 3, "CancelledError": 1, "LimitError": 5}
    assert engine.ledger.spent == {"concurrency": 0, "calls": 4}


@pytest.mark.parametrize("way", ["closed", "dropped", "read", "closed later", "read later"])
def test_a_stream_makes_room_when_it_has_ended(way: str) -> None:
    """However that comes about, for sync readers and for those that await each item."""
    engine = engine_of(Limits(concurrency=1))

    def sync() -> None:
        reader: Any = engine.stream("g.stream", (3,))
        assert next(reader) == 0
        assert code(lambda: engine.call("g.add", (1,))) == "limit.concurrency"
        if way == "read":
            assert [*reader] == [1, 2]
        elif way == "closed":
            reader.close()

    async def awaited() -> None:
        reader: Any = engine.astream("g.stream", (3,))
        assert await anext(reader) == 0
        assert code(lambda: engine.call("g.add", (1,))) == "limit.concurrency"
        await reader.aclose() if way == "closed later" else await _drained(reader)

    asyncio.run(awaited()) if way.endswith("later") else sync()

    assert engine.ledger.spent == {"concurrency": 0}
    assert engine.call("g.add", (1,)) == 1


@door
def test_a_call_that_fails_makes_room(door: str) -> None:
    """By an error of its tool, a result that does not fit, or a time that is over."""
    engine = engine_of(Limits(concurrency=1, seconds=0.1))
    wrong = Toolset("w")
    wrong.add(ToolSpec("wrong", "w", return_type=INT), lambda rt: "no int")
    engine.register(wrong)

    codes = [
        code(lambda: DOORS[door](engine, *each)) for each in (("g.fail", (1,)), ("w.wrong", ()), ("g.sleeps", (0.3,)))
    ]
    assert codes == ["tool.failed", "return.type", "call.timeout"]
    assert engine.ledger.spent == {"concurrency": 0}


# What never began


class Failing:
    """A sink that can be full."""

    def __init__(self, *, intents: bool = True) -> None:
        self.is_full, self.intents = False, intents

    def write(self, record: CallRecord) -> None:
        if self.is_full and record.kind == "intent":
            raise OSError

    def close(self) -> None:
        """Do nothing."""


class Deciding:
    """A hook that refuses one argument."""

    @hookimpl
    def neuroscript_decide(self, call: Any) -> str | None:
        return "not 13" if call.arguments.get("a") == 13 else None


def counting(timeout: float | None) -> tuple[Engine, Failing]:
    """Return an engine that counts everything, tools that are refused in each way, and the sink that can be full."""
    sink, made = Failing(), Toolset("n")
    specs: dict[str, dict[str, Any]] = {
        "plain": {},
        "needs": {"capabilities": ("fs:read:other/{path}",)},
        "asks": {"requires_approval": True},
        "denied": {},
    }
    for name, policy in specs.items():
        args = (*ONE, ArgSpec("path", STRING, default="a"))
        made.add(
            ToolSpec(name, "n", args, return_type=INT), lambda rt, a, path: a, ToolPolicy(timeout=timeout, **policy)
        )
    limits = Limits(
        calls=100, tool_calls={"n.plain": 50}, rates={"n.*": "90/hour"}, concurrency=5, max_identical_calls=2
    )
    policy = ExecutionPolicy(
        grants=["fs:read:data/**"], deny=["n.denied"], limits=limits,
        approver=lambda request: Approval.reject("no") if request.arguments["a"] != 7 else Approval.modify({"a": "x"}),
    )  # fmt: skip
    engine = Engine(
        toolsets=[made], plugins="none", policy=policy, audit=sink, audit_required="all", hooks=[Deciding()],
        host=Host(clock=lambda: 5.0),
    )  # fmt: skip
    return engine, sink


REFUSED = {
    "arguments that do not fit": ("n.plain", ("x",), "coercion.format"),
    "a capability": ("n.needs", (1,), "policy.capability"),
    "an approval that is rejected": ("n.asks", (1,), "policy.rejected"),
    "an approval with arguments that do not fit": ("n.asks", (7,), "coercion.format"),
    "a hook": ("n.plain", (13,), "policy.hook"),
    "a tool that is denied": ("n.denied", (1,), "policy.denied"),
    "no such tool": ("n.nothing", (1,), "tool.not_found"),
    "an audit that fails": ("n.plain", (1,), "audit.unavailable"),
}


@pytest.mark.parametrize("timeout", [None, 60.0], ids=["compiled", "steps"])
@pytest.mark.parametrize("door", ["call", "acall", "execute", "stream"])
@pytest.mark.parametrize("case", REFUSED)
def test_a_call_that_never_began_costs_nothing(case: str, door: str, timeout: float | None) -> None:
    """Neither in a count, nor in a rate, nor in a row; nor does it hold a place."""
    engine, sink = counting(timeout)
    name, args, expected = REFUSED[case]
    for _ in range(2):
        engine.call("n.plain", (5,))
    before = dict(engine.ledger.spent)
    moments = list(engine.ledger._windows["n.*"]._moments)
    sink.is_full = case == "an audit that fails"

    for _ in range(3):
        assert code(lambda: DOORS[door](engine, name, args)) == expected
        assert dict(engine.ledger.spent) == before
        assert list(engine.ledger._windows["n.*"]._moments) == moments

    sink.is_full = False
    assert before == {"calls": 2, "calls of n.plain": 2, "concurrency": 0}
    assert code(lambda: engine.call("n.plain", (5,))) == "limit.identical_calls"
    assert code(lambda: engine.call("n.plain", (6,))) == "ok"


@pytest.mark.parametrize("timeout", [None, 60.0], ids=["compiled", "steps"])
def test_a_call_within_that_never_began_costs_the_outer_one_alone(timeout: float | None) -> None:
    """The outer call has run."""
    engine, _ = counting(timeout)
    engine.register(tools(tries=lambda rt, a: code(lambda: rt.call_tool("n.needs", (a,)))))

    assert engine.call("g.tries", (1,)) == "policy.capability"
    assert engine.ledger.spent == {"calls": 1, "calls of n.plain": 0, "concurrency": 0}


def test_one_count_that_refuses_gives_back_what_the_others_reserved() -> None:
    """Of the session and of the engine."""
    engine = engine_of(Limits(calls=10, tool_calls={"g.add": 1}))
    session = engine.session(policy=ExecutionPolicy(limits=Limits(calls=5)))
    session.call("g.add", (1,))

    assert [code(lambda: session.call("g.add", (1,))) for _ in range(3)] == ["limit.tool"] * 3
    assert engine.ledger.spent == {"calls": 1, "calls of g.add": 1}
    assert session.ledger.spent == {"calls": 1}


# Sessions


@door
def test_sessions_count_in_their_own_ledger_and_in_that_of_the_engine(door: str) -> None:
    """Nested calls, bytes and money add up in both; a session that has none of its own uses that of the engine."""
    engine = engine_of(Limits(calls=9, money={"EUR": 1}))
    small = engine.session(policy=ExecutionPolicy(limits=Limits(calls=3, money={"EUR": "0.3"})))
    plain = engine.session()
    run = DOORS[door]

    assert code(lambda: run(small, "g.pays_twice", ("EUR", "0.1"))) == "ok"
    assert code(lambda: run(small, "g.pays_twice", ("EUR", "0.2"))) == "limit.money"
    assert code(lambda: run(small, "g.pays", ("EUR", "0.1"))) == "limit.calls"
    assert code(lambda: run(plain, "g.pays_twice", ("EUR", "0.45"))) == "limit.money"
    assert code(lambda: run(plain, "g.pays", ("EUR", "0.1"))) == "ok"

    assert small.ledger.spent == {"calls": 3, "EUR": Decimal("0.2")}
    assert engine.ledger.spent == {"calls": 3 + 2 + 1, "EUR": Decimal("0.2") + Decimal("0.45") + Decimal("0.1")}
    assert [code(lambda: run(engine, "g.add", (1,))) for _ in range(4)] == ["ok"] * 3 + ["limit.calls"]
    assert code(lambda: run(plain, "g.add", (1,))) == "limit.calls"


def test_a_new_session_begins_at_nothing_under_what_the_engine_has_used() -> None:
    """As hosts that have one for each caller need it."""
    engine = engine_of(Limits(calls=5))
    for _ in range(2):
        session = engine.session(policy=ExecutionPolicy(limits=Limits(calls=2)))
        assert [code(lambda: session.call("g.add", (1,))) for _ in range(3)] == ["ok", "ok", "limit.calls"]
        session.close()

    assert engine.ledger.spent == {"calls": 4}


# Many threads at once

ATTEMPTS = (3_200, 80_000)
"""How often a call is tried for every change, and when all is tried."""

MOST = 1_000
OURS = {FILE, neuroscript.calls.gate.__file__, neuroscript.policy.ledger.__file__, neuroscript.policy.counters.__file__}
raced = partial(races.raced, files=OURS, yielded=0.15)
"""Others are let in between the lines of the compiled call, the gate and the ledger."""


class Ran:
    """How often the functions of tools have run, by thread, so that no lock of ours orders the threads."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[int, str]] = Counter()

    def of(self, name: str) -> Callable[..., Any]:
        """Return a function that counts that it has run."""

        def func(rt: Runtime, a: int) -> Any:
            self.counts[threading.get_ident(), name] += 1
            return rt.call_tool("g.inner", (a,)) if name == "around" else a

        return func

    def __getitem__(self, name: str) -> int:
        return sum(count for (_, each), count in self.counts.items() if each == name)


async def _gathered(session: Session, name: str, times: int) -> int:
    told = await asyncio.gather(*(session.acall(name, (1,)) for _ in range(times)), return_exceptions=True)
    return sum(isinstance(each, int) for each in told)


Tries = Callable[[Session, str, int], int]
"""Tries so many calls and returns how many were let in."""

TRIES: dict[str, Tries] = {
    "call": lambda session, name, times: sum(code(lambda: session.call(name, (1,))) == "ok" for _ in range(times)),
    "execute": lambda session, name, times: sum(session.execute(ToolCall(name, (1,))).ok for _ in range(times)),
    "acall": lambda session, name, times: asyncio.run(_gathered(session, name, times)),
}
"""The compiled line, the steps, and tasks of a loop in each thread."""


def let_in(engine: Engine, tries: Tries, attempts: int, *, own_sessions: bool = False) -> int:
    """Return how many of so many attempts in 16 threads were let in, with or without a session for each thread."""
    counts = [0] * 16

    def work(number: int) -> None:
        session = engine.session() if own_sessions else engine
        counts[number] = tries(session, "g.counted", attempts // 16)

    raced(16, work)
    return sum(counts)


LIMITS = {
    "calls in total": {"calls": MOST},
    "calls of a tool": {"tool_calls": {"g.counted": MOST}},
    "a rate": {"rates": {"g.c*": f"{MOST}/minute"}},
    "all at once": {
        "calls": MOST,
        "tool_calls": {"g.counted": MOST},
        "rates": {"g.*": f"{MOST}/hour"},
        "concurrency": 99,
    },
}


def racing(limits: Limits, ran: Ran, **options: Any) -> Engine:
    """Return an engine whose tools count themselves, under limits, at a time that stands still."""
    added = {"counted": ran.of("counted"), "inner": ran.of("inner"), "around": ran.of("around")}
    policy = ExecutionPolicy(limits=limits)
    return Engine(toolsets=[tools(**added)], plugins="none", policy=policy, host=Host(clock=lambda: 5.0), **options)


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_exactly_as_many_calls_run_as_are_permitted(limits: dict[str, Any], full_counts: bool) -> None:
    """16 threads through the compiled line, each asking far more often than that; 80,000 attempts in the full run."""
    ran = Ran()
    engine = racing(Limits(**limits), ran)

    assert let_in(engine, TRIES["call"], ATTEMPTS[full_counts]) == MOST == ran["counted"]
    assert {name: count for name, count in engine.ledger.spent.items() if name != "concurrency"} in (
        {}, dict.fromkeys(["calls"], MOST), dict.fromkeys(["calls of g.counted"], MOST),
        dict.fromkeys(["calls", "calls of g.counted"], MOST),
    )  # fmt: skip


@pytest.mark.parametrize("way", ["execute", "acall"])
@pytest.mark.parametrize("watched", [True, False], ids=["watched", "unwatched"])
def test_the_other_ways_let_in_exactly_as_many(way: str, watched: bool, full_counts: bool) -> None:
    """The steps, and tasks on loops in threads; each call that ran and each that was refused has its record."""
    ran, audit = Ran(), MemoryAudit(100_000)
    engine = racing(Limits(calls=MOST), ran, **({"audit": audit} if watched else {}))
    attempts = ATTEMPTS[full_counts] // 2

    assert let_in(engine, TRIES[way], attempts) == MOST == ran["counted"] == engine.ledger.spent["calls"]
    if watched:
        assert Counter(each.code for each in audit.records) == {"ok": MOST, "limit.calls": attempts - MOST}
        assert len({each.call for each in audit.records}) == attempts


def test_sessions_share_what_the_engine_may(full_counts: bool) -> None:
    """One for each of 16 threads."""
    ran = Ran()
    engine = racing(Limits(calls=MOST), ran)

    assert let_in(engine, TRIES["call"], ATTEMPTS[full_counts], own_sessions=True) == MOST == ran["counted"]


def test_calls_within_are_counted_like_all_others(full_counts: bool) -> None:
    """An outer call that is let in may find that there is none left for the one within."""
    ran = Ran()
    engine = racing(Limits(calls=MOST), ran)
    attempts = ATTEMPTS[full_counts] // 4

    raced(16, lambda number: [code(lambda: engine.call("g.around", (1,))) for _ in range(attempts // 16)] and None)

    assert ran["around"] + ran["inner"] == MOST == engine.ledger.spent["calls"]
    assert ran["inner"] <= ran["around"] <= MOST


def test_without_its_lock_the_line_does_overshoot() -> None:
    """In the same race, so that the tests above prove something."""

    def overshoots() -> bool:
        ran = Ran()
        engine = racing(Limits(calls=MOST), ran)
        engine.ledger._lock = nullcontext()
        return let_in(engine, TRIES["call"], ATTEMPTS[0]) > MOST

    assert any(overshoots() for _ in range(20))


def test_what_is_refunded_in_a_race_is_there_for_others(full_counts: bool) -> None:
    """A sink that fails at random refuses calls that were reserved: none of them is counted at last."""
    ran, chance = Ran(), random.Random(3)

    class Leaky(Failing):
        def write(self, record: CallRecord) -> None:
            if record.kind == "intent" and chance.random() < 0.5:
                raise OSError

    engine = racing(Limits(calls=10**6, concurrency=10**6), ran, audit=Leaky(), audit_required="all")
    ok = let_in(engine, TRIES["call"], ATTEMPTS[full_counts] // 4)

    assert engine.ledger.spent == {"calls": ok, "concurrency": 0}
    assert 0 < ran["counted"] == ok < ATTEMPTS[full_counts] // 4


@pytest.mark.parametrize("own_sessions", [False, True], ids=["one session", "sessions"])
def test_bytes_that_nested_calls_share_are_never_more_than_permitted(
    own_sessions: bool, tmp_path: Path, full_counts: bool
) -> None:
    """8 threads read and write in an outer tool and in the one within, through ``rt.fs``; records add up to the ledger."""
    most, got, seen = (500_000 if full_counts else 40_000), [0] * 8, [0] * 8
    (tmp_path / "in").write_bytes(b"x" * 97)
    made = Toolset("b")

    def move(rt: Runtime, number: int) -> None:
        got[number] += len(rt.fs.read_bytes("in"))
        seen[number] = max(seen[number], engine.ledger.spent["fs_bytes"])
        rt.fs.write_bytes(f"out{number}", b"y" * 31)
        got[number] += 31

    def around(rt: Runtime, number: int) -> None:
        move(rt, number)
        rt.call_tool("b.move", (number,))
        move(rt, number)

    needs = ToolPolicy(capabilities=("fs:read:**", "fs:write:**"))
    for func in (move, around):
        spec = ToolSpec(func.__name__, "b", (ArgSpec("number", INT),), return_type=ArgType.NIL)
        made.add(spec, func, needs)
    policy = ExecutionPolicy(grants=["fs:read:*", "fs:write:*"], limits=Limits(fs_bytes=most))
    audit = MemoryAudit(10**6)
    engine = Engine(toolsets=[made], plugins="none", policy=policy, host=Host(sandbox_dir=tmp_path), audit=audit)

    def work(number: int) -> None:
        session = engine.session(policy=ExecutionPolicy(grants=["*:*:*"], limits=Limits(fs_bytes=10**9)))
        caller = session if own_sessions else engine
        while (told := code(lambda: caller.call("b.around", (number,)))) == "ok":
            pass
        assert told == "limit.fs_bytes"

    raced(8, work)

    spent = engine.ledger.spent["fs_bytes"]
    assert max(seen) <= most
    assert most - 97 < spent == sum(got) <= most
    assert sum(each.spent.get("fs_bytes", 0) for each in audit.records if each.depth == 1) == spent
    assert all(each.spent.get("fs_bytes", 0) <= 128 for each in audit.records if each.depth == 2)


def test_the_lock_of_the_ledger_is_not_held_while_tools_run() -> None:
    """Nor while the clock is asked, or a tool that asks the ledger itself would wait for ever."""

    def looks(rt: Runtime, a: int) -> int:
        return int(engine.ledger.spent["calls"])

    policy = ExecutionPolicy(limits=Limits(calls=9, rates={"*": "9/hour"}))
    told: list[Any] = []

    def clock() -> float:
        told.append(engine.ledger.spent["calls"])
        return 5.0

    engine = Engine(toolsets=[tools(looks=looks)], plugins="none", policy=policy, host=Host(clock=clock))

    assert engine.call("g.looks", (1,)) == 1
    assert told[0] == 0


def test_limits_of_a_policy_make_ledgers_of_their_own() -> None:
    """Two engines share nothing, and an engine without limits has none."""
    limits = Limits(calls=1)
    first, second = engine_of(limits), engine_of(limits)

    assert [code(lambda: each.call("g.add", (1,))) for each in (first, second, first)] == ["ok", "ok", "limit.calls"]
    assert isinstance(first.ledger, Ledger) and engine_of(None).ledger is None
