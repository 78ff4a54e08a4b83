"""Limits under concurrent calls in threads, tasks and streams."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests import races
from tests.conftest import ALL
from tests.engine.error_codes import code
from tests.engine.limited_tools import ENTRY_POINTS, INT, ONE, Failing, drained, engine_of, entry_point, tools

import neuroscript.calls.gate
import neuroscript.policy.counters
import neuroscript.policy.ledger
from neuroscript import (
    ArgSpec,
    ArgType,
    CallRecord,
    Engine,
    ExecutionPolicy,
    Host,
    MemoryAudit,
    Runtime,
    Session,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
)
from neuroscript.calls.compiler import FILE
from neuroscript.policy.ledger import Ledger
from neuroscript.policy.limits import Limits

# Concurrency


def test_no_more_calls_run_at_once_than_are_permitted() -> None:
    """Only outermost calls count; each call that ends frees its slot."""
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
    for name in ENTRY_POINTS:
        assert code(lambda name=name: ENTRY_POINTS[name](engine, "g.add", (1,))) == "limit.concurrency"
    go.set()
    for each in threads:
        each.join()
    assert sorted(ended) == ["ok", "tool.failed"]
    assert engine.ledger.spent == {"concurrency": 0}
    assert [code(lambda name=name: ENTRY_POINTS[name](engine, "g.outer", (1,))) for name in ENTRY_POINTS] == [
        "ok"
    ] * len(ENTRY_POINTS)


def test_tasks_of_a_loop_run_at_once_as_many_as_are_permitted() -> None:
    """Refused calls cost nothing; a cancelled call frees its slot."""
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

    reported = asyncio.run(go())
    assert Counter(type(each).__name__ for each in reported) == {"int": 3, "CancelledError": 1, "LimitError": 5}
    assert engine.ledger.spent == {"concurrency": 0, "calls": 4}


@pytest.mark.parametrize("way", ["closed", "dropped", "read", "closed later", "read later"])
def test_ended_stream_allows_another_call(way: str) -> None:
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
        await reader.aclose() if way == "closed later" else await drained(reader)

    asyncio.run(awaited()) if way.endswith("later") else sync()

    assert engine.ledger.spent == {"concurrency": 0}
    assert engine.call("g.add", (1,)) == 1


@entry_point
def test_failed_call_allows_another_call(entry_point: str) -> None:
    """By an error of its tool, a result that does not fit, or a time that is over."""
    engine = engine_of(Limits(concurrency=1, seconds=0.1))
    wrong = Toolset("w")
    wrong.add(ToolSpec("wrong", "w", return_type=INT), lambda rt: "no int")
    engine.register(wrong)

    codes = [
        code(lambda: ENTRY_POINTS[entry_point](engine, *each))
        for each in (("g.fail", (1,)), ("w.wrong", ()), ("g.sleeps", (0.3,)))
    ]
    assert codes == ["tool.failed", "return.type", "call.timeout"]
    assert engine.ledger.spent == {"concurrency": 0}


# Many threads at once

ATTEMPTS = (1_600, 80_000)
"""How often a call is tried for every change, and when all is tried."""

MOST = 1_000 if ALL else 500
"""How many calls are permitted."""

OURS = {FILE, neuroscript.calls.gate.__file__, neuroscript.policy.ledger.__file__, neuroscript.policy.counters.__file__}
raced = partial(races.raced, files=OURS, yielded=0.15)
"""Others are let in between the lines of the compiled call, the gate and the ledger."""


class RunCounter:
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
    reported = await asyncio.gather(*(session.acall(name, (1,)) for _ in range(times)), return_exceptions=True)
    return sum(isinstance(each, int) for each in reported)


Tries = Callable[[Session, str, int], int]
"""Tries so many calls and returns how many were let in."""

TRIES: dict[str, Tries] = {
    "call": lambda session, name, times: sum(code(lambda: session.call(name, (1,))) == "ok" for _ in range(times)),
    "execute": lambda session, name, times: sum(session.execute(ToolCall(name, (1,))).ok for _ in range(times)),
    "acall": lambda session, name, times: asyncio.run(_gathered(session, name, times)),
}
"""The compiled function, the steps, and tasks of a loop in each thread."""


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


def racing(limits: Limits, runs: RunCounter, **options: Any) -> Engine:
    """Return an engine whose tools count themselves, under limits, at a time that stands still."""
    added = {"counted": runs.of("counted"), "inner": runs.of("inner"), "around": runs.of("around")}
    policy = ExecutionPolicy(limits=limits)
    return Engine(toolsets=[tools(**added)], plugins="none", policy=policy, host=Host(clock=lambda: 5.0), **options)


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_exactly_as_many_calls_run_as_are_permitted(limits: dict[str, Any], full_counts: bool) -> None:
    """16 threads through the compiled function, each asking far more often than that; 80,000 attempts in the full run."""
    result = RunCounter()
    engine = racing(Limits(**limits), result)

    assert let_in(engine, TRIES["call"], ATTEMPTS[full_counts]) == MOST == result["counted"]
    assert {name: count for name, count in engine.ledger.spent.items() if name != "concurrency"} in (
        {}, dict.fromkeys(["calls"], MOST), dict.fromkeys(["calls of g.counted"], MOST),
        dict.fromkeys(["calls", "calls of g.counted"], MOST),
    )  # fmt: skip


@pytest.mark.parametrize("way", ["execute", "acall"])
@pytest.mark.parametrize("watched", [True, False], ids=["watched", "unwatched"])
def test_the_other_ways_let_in_exactly_as_many(way: str, watched: bool, full_counts: bool) -> None:
    """The steps, and tasks on loops in threads; each call that ran and each that was refused has its record."""
    result, audit = RunCounter(), MemoryAudit(100_000)
    engine = racing(Limits(calls=MOST), result, **({"audit": audit} if watched else {}))
    attempts = ATTEMPTS[full_counts] // 2

    assert let_in(engine, TRIES[way], attempts) == MOST == result["counted"] == engine.ledger.spent["calls"]
    if watched:
        assert Counter(each.code for each in audit.records) == {"ok": MOST, "limit.calls": attempts - MOST}
        assert len({each.call for each in audit.records}) == attempts


def test_sessions_share_what_the_engine_may(full_counts: bool) -> None:
    """One for each of 16 threads."""
    result = RunCounter()
    engine = racing(Limits(calls=MOST), result)

    assert let_in(engine, TRIES["call"], ATTEMPTS[full_counts], own_sessions=True) == MOST == result["counted"]


def test_reserved_calls_are_neither_lost_nor_made_twice(full_counts: bool) -> None:
    """A compiled call takes one of the calls that are counted in advance, while others return them to the sum."""
    runs = RunCounter()
    engine = racing(Limits(calls=MOST, tool_calls={"g.inner": MOST}), runs)
    attempts = ATTEMPTS[full_counts]
    seen: dict[int, list[int]] = {number: [] for number in range(16)}

    def work(number: int) -> None:
        for _ in range(attempts // 16):
            if number % 4:
                code(lambda: engine.call("g.counted", (1,)))
                continue
            code(lambda: engine.call("g.inner", (1,)))
            seen[number].append(int(engine.ledger.spent["calls"]))

    raced(16, work)

    assert runs["counted"] + runs["inner"] == MOST == engine.ledger.spent["calls"]
    assert runs["counted"] > 0 < runs["inner"] == engine.ledger.spent["calls of g.inner"]
    assert all(sums == sorted(sums) for sums in seen.values())


def test_calls_within_are_counted_like_all_others(full_counts: bool) -> None:
    """An outer call may run although no call is left for its nested call."""
    result = RunCounter()
    engine = racing(Limits(calls=MOST), result)
    attempts = ATTEMPTS[full_counts] // 4

    raced(16, lambda number: [code(lambda: engine.call("g.around", (1,))) for _ in range(attempts // 16)] and None)

    assert result["around"] + result["inner"] == MOST == engine.ledger.spent["calls"]
    assert result["inner"] <= result["around"] <= MOST


def test_ledger_without_its_lock_exceeds_the_limit() -> None:
    """In the same race, so that the tests above prove something."""

    def overshoots() -> bool:
        result = RunCounter()
        engine = racing(Limits(calls=MOST), result)
        engine.ledger._lock = nullcontext()
        return let_in(engine, TRIES["call"], ATTEMPTS[0]) > MOST

    assert any(overshoots() for _ in range(20))


def test_what_is_refunded_in_a_race_is_there_for_others(full_counts: bool) -> None:
    """A sink that fails at random refuses calls that were reserved: none of them is counted at last."""
    result, chance = RunCounter(), random.Random(3)

    class Leaky(Failing):
        def write(self, record: CallRecord) -> None:
            if record.kind == "intent" and chance.random() < 0.5:
                raise OSError

    engine = racing(Limits(calls=10**6, concurrency=10**6), result, audit=Leaky(), audit_required="all")
    ok = let_in(engine, TRIES["call"], ATTEMPTS[full_counts] // 4)

    assert engine.ledger.spent == {"calls": ok, "concurrency": 0}
    assert 0 < result["counted"] == ok < ATTEMPTS[full_counts] // 4


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
        while (reported := code(lambda: caller.call("b.around", (number,)))) == "ok":
            pass
        assert reported == "limit.fs_bytes"

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
    received: list[Any] = []

    def clock() -> float:
        received.append(engine.ledger.spent["calls"])
        return 5.0

    engine = Engine(toolsets=[tools(looks=looks)], plugins="none", policy=policy, host=Host(clock=clock))

    assert engine.call("g.looks", (1,)) == 1
    assert received[0] == 0


def test_limits_of_a_policy_make_ledgers_of_their_own() -> None:
    """Two engines share nothing, and an engine without limits has none."""
    limits = Limits(calls=1)
    first, second = engine_of(limits), engine_of(limits)

    assert [code(lambda: each.call("g.add", (1,))) for each in (first, second, first)] == ["ok", "ok", "limit.calls"]
    assert isinstance(first.ledger, Ledger) and engine_of(None).ledger is None
