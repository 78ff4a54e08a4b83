"""Hooks that are added while an engine runs, and their cost."""

from __future__ import annotations

import itertools
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest
from tests.engine.error_codes import code
from tests.engine.hooked_engines import DOORS, Door, Gate, Observer, door, engine_of, shop, way

import neuroscript.calls.gate
import neuroscript.engine.entries
import neuroscript.engine.session
from neuroscript import (
    ArgType,
    CallError,
    Engine,
    ExecutionPolicy,
    Host,
    MemoryAudit,
    PluginError,
    PolicyError,
    Runtime,
    Session,
    Toolset,
    ToolSpec,
    hookimpl,
)

# Hooks that come later


@way
@door
def test_hooks_that_are_added_are_asked_and_told_from_the_next_call_on(door: str, timeout: float | None) -> None:
    """Of the engine, and of sessions that were there before, with a policy of their own or without."""
    engine = engine_of(timeout=timeout)
    sessions = [engine, engine.session(), engine.session(policy=ExecutionPolicy(deny=["shop.each"]))]
    run = {**DOORS, "session": DOORS["call"]}[door]
    for session in sessions:
        run(session, "shop.twice", {"euros": 1})
    gate, observer = Gate(lambda call: "no" if call.depth > 1 else None), Observer()

    engine.add_hooks(observer)
    engine.add_hooks(gate)

    for session in sessions:
        assert code(lambda session=session: run(session, "shop.twice", {"euros": 1})) == "policy.hook"
    assert observer.kinds() == [
        ("intent", "twice", ""), ("refused", "refund", "policy.hook"), ("outcome", "twice", "policy.hook")
    ] * 3  # fmt: skip
    assert len(gate.asked) == 6


def test_a_call_that_runs_while_hooks_are_added_goes_on() -> None:
    """What it calls from then on is asked about; it ends as those were told who heard that it began."""
    before, after, gate = Observer(), Observer(), Gate(lambda call: "no" if call.tool == "shop.refund" else None)
    engine = engine_of(before)
    made = Toolset("adding")

    def add(rt: Runtime) -> list[str]:
        codes = [code(lambda: rt.call_tool("shop.refund", (5,)))]
        engine.add_hooks(after, gate)
        return [*codes, code(lambda: rt.call_tool("shop.refund", (5,)))]

    made.add(ToolSpec("add", "adding", return_type=ArgType.ANY), add)
    engine.register(made)

    assert engine.call("adding.add") == ["ok", "policy.hook"]

    assert [each.tool for each in after.told if each.kind == "refused"] == ["shop.refund"]
    assert before.kinds()[-1] == ("outcome", "adding.add", "ok")
    assert Counter(each.kind for each in before.told) == {"intent": 2, "outcome": 2, "refused": 1}


def test_hooks_are_added_while_many_threads_call() -> None:
    """Every call is told at most once to each; of calls that begin when one has been added, none is missing."""
    engine = engine_of()
    observers: list[Observer] = []
    ended, begun = threading.Event(), threading.Barrier(5)

    def work() -> None:
        begun.wait()
        while not ended.is_set():
            engine.call("shop.refund", (5,))

    threads = [threading.Thread(target=work) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for each in threads:
            each.start()
        begun.wait()
        for _ in range(8):
            observers.append(Observer())
            engine.add_hooks(observers[-1])
            engine.call("shop.refund", (7,))
    finally:
        ended.set()
        for each in threads:
            each.join()
        sys.setswitchinterval(interval)

    for each in observers:
        outcomes = Counter(record.call for record in each.told if record.kind == "outcome")
        assert set(outcomes.values()) == {1}
    numbers = [sorted(record.call for record in each.told if record.kind == "intent") for each in observers]
    assert all(set(later) <= set(first) for first, later in itertools.combinations(numbers, 2))
    assert [each[0] for each in numbers] == sorted(each[0] for each in numbers)


OURS = {module.__file__ for module in (neuroscript.engine.session, neuroscript.engine.entries, neuroscript.calls.gate)}


def with_a_line(number: int, act: Callable[[], object], run: Callable[[], object]) -> bool:
    """Do *run*, and *act* before its line of that number in our modules; tell whether it has so many."""
    left = number

    def on_line(frame: FrameType, event: str, value: Any) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left == -1:
                sys.settrace(None)
                act()
        return on_line

    def on_call(frame: FrameType, event: str, value: Any) -> Any:
        return on_line if frame.f_code.co_filename in OURS else None

    sys.settrace(on_call)
    try:
        run()
    finally:
        sys.settrace(None)
    return left < 0


@pytest.mark.parametrize("door", ["call", "call_named", "execute", "session"])
def test_a_gate_that_is_added_in_the_middle_of_a_call_is_asked_of_the_next_one(door: str) -> None:
    """Before whichever line of ours: no session goes on with a line that was made when the gate was not there."""
    number = 0
    reached = True
    while reached:
        engine = engine_of()
        session = engine.session() if door == "session" else engine
        run = DOORS["call_named"] if door == "session" else DOORS[door]
        gate = Gate(lambda call: "no")

        def add(engine: Engine = engine, gate: Gate = gate) -> None:
            if not engine._world._lock.locked():  # then another thread would wait
                engine.add_hooks(gate)

        def first(session: Session = session, run: Door = run) -> None:
            with suppress(PolicyError):
                run(session, "shop.tries", {"euros": 5})

        reached = with_a_line(number, add, first)
        if reached and gate in engine._world._watching.get("hooks", Gate()).plugins:
            assert code(lambda: run(session, "shop.refund", {"euros": 5})) == "policy.hook", number
            assert code(lambda: run(session, "shop.tries", {"euros": 5})) == "policy.hook", number
        number += 1

    assert number > 50


@pytest.mark.parametrize("door", ["call", "call_named", "execute"])
def test_an_engine_that_is_closed_in_the_middle_of_a_call_makes_no_other(door: str) -> None:
    """Before whichever line of ours that happens."""
    number = 0
    reached = True
    while reached:
        engine = engine_of()

        def first(engine: Engine = engine) -> None:
            with suppress(CallError):
                DOORS[door](engine, "shop.refund", {"euros": 5})

        reached = with_a_line(number, lambda engine=engine: engine._world._lock.locked() or engine._refuse_all(), first)
        if engine.is_closed:
            assert code(lambda: DOORS[door](engine, "shop.refund", {"euros": 5})) == "engine.closed", number
        number += 1

    assert number > 20


# What hooks cost


def line_of(engine: Engine, name: str = "shop.refund", by_name: bool = False) -> Any:
    """Return the code of the compiled line of a tool."""
    return engine._entry(name).function(by_name).__code__


@pytest.mark.parametrize("by_name", [False, True], ids=["in order", "by name"])
def test_without_hooks_a_call_is_the_very_same(by_name: bool) -> None:
    """The same statements, compiled once: of an engine that was never told of hooks, and of one with none of them."""
    plain = Engine(toolsets=[shop()], plugins="none")
    none = Engine(toolsets=[shop()], plugins="none", hooks=[], audit=[], recording=None)

    assert line_of(plain, by_name=by_name) is line_of(none, by_name=by_name)
    assert line_of(plain, by_name=by_name) is line_of(plain.session(), by_name=by_name)  # type: ignore[arg-type]


class Bringing:
    """A plugin with an empty toolset and no other hook."""

    @hookimpl
    def neuroscript_toolsets(self) -> list[Toolset]:
        return [Toolset("nothing")]


@pytest.mark.parametrize("by_name", [False, True], ids=["in order", "by name"])
def test_plugins_that_bring_toolsets_alone_cost_a_call_nothing(by_name: bool) -> None:
    """Whether they are given or added; a gate that comes later is asked, and none of them is given twice."""
    plain, given, added = engine_of(), engine_of(bringing := Bringing()), engine_of()
    added.add_hooks(Bringing())

    assert line_of(plain, by_name=by_name) is line_of(given, by_name=by_name) is line_of(added, by_name=by_name)
    with pytest.raises(PluginError):
        given.add_hooks(bringing)
    given.add_hooks(Gate(lambda call: "no"))
    assert code(lambda: given.call("shop.refund", (5,))) == "policy.hook"


@pytest.mark.parametrize("by_name", [False, True], ids=["in order", "by name"])
def test_with_hooks_a_call_is_another(by_name: bool) -> None:
    """So the test above does look at what calls are made of; each kind of hook is paid for by itself."""
    plain, gate, observer = engine_of(), engine_of(Gate()), engine_of(Observer())
    codes = {line_of(each, by_name=by_name) for each in (plain, gate, observer, engine_of(Gate(), Observer()))}
    before = line_of(plain, by_name=by_name)

    assert len(codes) == 4
    plain.add_hooks(Gate())
    assert line_of(plain, by_name=by_name) is line_of(gate, by_name=by_name) is not before


def test_what_is_asked_and_told_agrees_with_an_audit() -> None:
    """One record for one call: a sink and an observer are given the same one."""
    observer, audit = Observer(), MemoryAudit()
    engine = engine_of(observer, audit=audit, host=Host(clock=lambda: 5.0))
    for name, euros in (("twice", 5), ("refund", "x"), ("nothing", 1), ("later", 5)):
        code(lambda name=name, euros=euros: engine.call(f"shop.{name}", (euros,)))

    finished = tuple(each for each in observer.told if each.kind != "intent")
    assert finished == audit.records and len(finished) == 3 + 1 + 1 + 2
