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
from tests.engine.hooked_engines import ENTRY_POINTS, EntryPoint, Gate, Observer, engine_of, entry_point, shop, way

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

# Adding hooks


@way
@entry_point
def test_added_hooks_apply_from_the_next_call(entry_point: str, timeout: float | None) -> None:
    """To the engine and to existing sessions, with or without a policy of their own."""
    engine = engine_of(timeout=timeout)
    sessions = [engine, engine.session(), engine.session(policy=ExecutionPolicy(deny=["shop.each"]))]
    run = {**ENTRY_POINTS, "session": ENTRY_POINTS["call"]}[entry_point]
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
    assert len(gate.calls) == 6


def test_a_running_call_continues_when_hooks_are_added() -> None:
    """Its later nested calls are checked by them; its end is sent to the observers that received its start."""
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

    assert [each.tool for each in after.seen if each.kind == "refused"] == ["shop.refund"]
    assert before.kinds()[-1] == ("outcome", "adding.add", "ok")
    assert Counter(each.kind for each in before.seen) == {"intent": 2, "outcome": 2, "refused": 1}


def test_hooks_can_be_added_while_threads_call() -> None:
    """Each observer receives a call at most once, and every call that starts after it was added."""
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
        outcomes = Counter(record.call for record in each.seen if record.kind == "outcome")
        assert set(outcomes.values()) == {1}
    numbers = [sorted(record.call for record in each.seen if record.kind == "intent") for each in observers]
    assert all(set(later) <= set(first) for first, later in itertools.combinations(numbers, 2))
    assert [each[0] for each in numbers] == sorted(each[0] for each in numbers)


OURS = {module.__file__ for module in (neuroscript.engine.session, neuroscript.engine.entries, neuroscript.calls.gate)}


def run_with_interruption(number: int, act: Callable[[], object], run: Callable[[], object]) -> bool:
    """Run *run*, and call *act* before a line of our modules, by its number; return whether it was reached."""
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


@pytest.mark.parametrize("entry_point", ["call", "call_named", "execute", "session"])
def test_a_gate_added_during_a_call_applies_to_the_next(entry_point: str) -> None:
    """Before any line of ours: no session reuses a call pipeline that was compiled without the gate."""
    number = 0
    reached = True
    while reached:
        engine = engine_of()
        session = engine.session() if entry_point == "session" else engine
        run = ENTRY_POINTS["call_named"] if entry_point == "session" else ENTRY_POINTS[entry_point]
        gate = Gate(lambda call: "no")

        def add(engine: Engine = engine, gate: Gate = gate) -> None:
            if not engine._shared._lock.locked():  # another thread would wait otherwise
                engine.add_hooks(gate)

        def first(session: Session = session, run: EntryPoint = run) -> None:
            with suppress(PolicyError):
                run(session, "shop.tries", {"euros": 5})

        reached = run_with_interruption(number, add, first)
        if reached and gate in engine._shared._watching.get("hooks", Gate()).plugins:
            assert code(lambda: run(session, "shop.refund", {"euros": 5})) == "policy.hook", number
            assert code(lambda: run(session, "shop.tries", {"euros": 5})) == "policy.hook", number
        number += 1

    assert number > 50


@pytest.mark.parametrize("entry_point", ["call", "call_named", "execute"])
def test_an_engine_closed_during_a_call_makes_no_other(entry_point: str) -> None:
    """Before any line of ours."""
    number = 0
    reached = True
    while reached:
        engine = engine_of()

        def first(engine: Engine = engine) -> None:
            with suppress(CallError):
                ENTRY_POINTS[entry_point](engine, "shop.refund", {"euros": 5})

        reached = run_with_interruption(
            number, lambda engine=engine: engine._shared._lock.locked() or engine._refuse_all(), first
        )
        if engine.is_closed:
            assert code(lambda: ENTRY_POINTS[entry_point](engine, "shop.refund", {"euros": 5})) == "engine.closed", (
                number
            )
        number += 1

    assert number > 20


# Cost


def compiled_code(engine: Engine, name: str = "shop.refund", by_name: bool = False) -> Any:
    """Return the code of the compiled call pipeline of a tool."""
    return engine._entry(name).function(by_name).__code__


@pytest.mark.parametrize("by_name", [False, True], ids=["in order", "by name"])
def test_without_hooks_the_compiled_code_is_the_same(by_name: bool) -> None:
    """For an engine without the parameter and for one with empty lists."""
    plain = Engine(toolsets=[shop()], plugins="none")
    none = Engine(toolsets=[shop()], plugins="none", hooks=[], audit=[], recording=None)

    assert compiled_code(plain, by_name=by_name) is compiled_code(none, by_name=by_name)
    assert compiled_code(plain, by_name=by_name) is compiled_code(plain.session(), by_name=by_name)  # type: ignore[arg-type]


class Bringing:
    """A plugin with an empty toolset and no other hook."""

    @hookimpl
    def neuroscript_toolsets(self) -> list[Toolset]:
        return [Toolset("nothing")]


@pytest.mark.parametrize("by_name", [False, True], ids=["in order", "by name"])
def test_plugins_with_only_toolsets_do_not_change_the_compiled_code(by_name: bool) -> None:
    """Passed or added; a gate can be added later, and no plugin twice."""
    plain, given, added = engine_of(), engine_of(bringing := Bringing()), engine_of()
    added.add_hooks(Bringing())

    assert (
        compiled_code(plain, by_name=by_name)
        is compiled_code(given, by_name=by_name)
        is compiled_code(added, by_name=by_name)
    )
    with pytest.raises(PluginError):
        given.add_hooks(bringing)
    given.add_hooks(Gate(lambda call: "no"))
    assert code(lambda: given.call("shop.refund", (5,))) == "policy.hook"


@pytest.mark.parametrize("by_name", [False, True], ids=["in order", "by name"])
def test_hooks_change_the_compiled_code(by_name: bool) -> None:
    """So the test above can fail; each kind of hook has its own code."""
    plain, gate, observer = engine_of(), engine_of(Gate()), engine_of(Observer())
    codes = {compiled_code(each, by_name=by_name) for each in (plain, gate, observer, engine_of(Gate(), Observer()))}
    before = compiled_code(plain, by_name=by_name)

    assert len(codes) == 4
    plain.add_hooks(Gate())
    assert compiled_code(plain, by_name=by_name) is compiled_code(gate, by_name=by_name) is not before


def test_observers_and_audit_log_receive_the_same_records() -> None:
    """One record for each call."""
    observer, audit = Observer(), MemoryAudit()
    engine = engine_of(observer, audit=audit, host=Host(clock=lambda: 5.0))
    for name, euros in (("twice", 5), ("refund", "x"), ("nothing", 1), ("later", 5)):
        code(lambda name=name, euros=euros: engine.call(f"shop.{name}", (euros,)))

    finished = tuple(each for each in observer.seen if each.kind != "intent")
    assert finished == audit.records and len(finished) == 3 + 1 + 1 + 2
