"""Hooks as an engine asks and tells them: at every door, for calls within calls, while others are added.

What a hook may answer is held in `test_hooks`, and what becomes of one that fails in `test_gate_faults`; here it is when
they are asked, what they are shown, and that they cost nothing where there are none.

Source: contract section 5; design.md, rules 4 and 5.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

import attrs
import pytest

import neuroscript.calls.gate
import neuroscript.engine.entries
import neuroscript.engine.session
from neuroscript import (
    ArgSpec,
    ArgType,
    CallError,
    CallRecord,
    Engine,
    ExecutionPolicy,
    Host,
    MemoryAudit,
    PluginError,
    PolicyError,
    Runtime,
    Session,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
    hookimpl,
)
from neuroscript.approval.request import Approval
from neuroscript.policy.limits import Limits
from neuroscript.runtime.records import PendingCall

# The tools and the doors

RAN: list[tuple[str, Any]] = []
"""What has run, with what it was given."""


def shop(timeout: float | None = None, *, approval: bool = False) -> Toolset:
    """Return tools that note that they ran; with a *timeout* their lines are not compiled."""
    made = Toolset("shop")
    items = ArgSpec("items", ArgType.SLICE_INT, required=False)
    args = (ArgSpec("euros", ArgType.INT), items)

    def refund(rt: Runtime, euros: int, items: list[int] | None) -> int:
        RAN.append(("refund", (euros, items)))
        return euros

    def twice(rt: Runtime, euros: int, items: list[int] | None) -> Any:
        RAN.append(("twice", (euros, items)))
        return [rt.call_tool("shop.refund", (euros,)), rt.call_tool_named("shop.refund", {"euros": str(euros)})]

    def each(rt: Runtime, euros: int, items: list[int] | None) -> Iterator[Any]:
        RAN.append(("each", (euros, items)))
        for number in range(euros):
            yield rt.call_tool("shop.refund", (number,))

    async def later(rt: Runtime, euros: int, items: list[int] | None) -> Any:
        RAN.append(("later", (euros, items)))
        await asyncio.sleep(0)
        return rt.call_tool("shop.refund", (euros,))

    def tries(rt: Runtime, euros: int, items: list[int] | None) -> str:
        RAN.append(("tries", (euros, items)))
        return code(lambda: rt.call_tool("shop.refund", (euros,)))

    for func in (refund, twice, each, later, tries):
        needs = ToolPolicy(timeout=timeout, requires_approval=approval and func is refund)
        spec = ToolSpec(func.__name__, "shop", args, return_type=ArgType.ANY, stream=func is each)
        made.add(spec, func, needs)
    return made


def engine_of(*hooks: object, timeout: float | None = None, approval: bool = False, **options: Any) -> Engine:
    """Return an engine with the tools, and nothing that has run so far."""
    RAN.clear()
    return Engine(toolsets=[shop(timeout, approval=approval)], plugins="none", hooks=hooks, **options)


async def _drained(items: Any) -> list[Any]:
    return [item async for item in items]


def executed(session: Session, name: str, given: dict[str, Any]) -> Any:
    """Call as a model does, and raise the error of the result."""
    result = session.execute(ToolCall(name.replace(".", "__"), given))
    if result.error is not None:
        raise result.error
    return result.value


Door = Callable[[Any, str, dict[str, Any]], Any]

DOORS: dict[str, Door] = {
    "call": lambda session, name, given: session.call(name, [*given.values()]),
    "call_named": lambda session, name, given: session.call_named(name, given),
    "acall": lambda session, name, given: asyncio.run(session.acall(name, [*given.values()])),
    "acall_named": lambda session, name, given: asyncio.run(session.acall_named(name, given)),
    "execute": executed,
    "stream": lambda session, name, given: list(session.stream(name, given)),
    "astream": lambda session, name, given: asyncio.run(_drained(session.astream(name, given))),
    "timed": lambda session, name, given: session.call_named(name, given, timeout=60),
    "session": lambda engine, name, given: engine.session().call_named(name, given),
}

door = pytest.mark.parametrize("door", DOORS)
way = pytest.mark.parametrize("timeout", [None, 60.0], ids=["compiled", "steps"])


RETRIES = {"coercion.format": "model", "engine.closed": "never", "tool.not_found": "model"}
"""Who can make the call succeed, by code; for every other code it is 'host'."""


def code(run: Callable[[], Any]) -> str:
    """Return the code of the error that a call ends with, or ``ok``."""
    try:
        run()
    except CallError as error:
        assert error.retry == RETRIES.get(error.code, "host")
        return error.code
    return "ok"


# The hooks


class Gate:
    """A hook that keeps what it is asked, and answers what a function says."""

    def __init__(self, answer: Callable[[PendingCall], Any] = lambda call: None) -> None:
        self.asked: list[PendingCall] = []
        self.answer = answer

    @hookimpl
    def neuroscript_decide(self, call: PendingCall) -> Any:
        self.asked.append(call)
        return self.answer(call)


class Observer:
    """A hook that keeps whatever it is told, in order."""

    def __init__(self) -> None:
        self.told: list[CallRecord] = []
        self.tools: list[tuple[str, str]] = []
        self.left: list[tuple[str, ...]] = []

    @hookimpl
    def neuroscript_call_started(self, record: CallRecord) -> None:
        self.told.append(record)

    @hookimpl
    def neuroscript_call_finished(self, record: CallRecord) -> None:
        self.told.append(record)

    @hookimpl
    def neuroscript_tool_registered(self, tool: Any, origin: str) -> None:
        self.tools.append((tool.spec.full_name, origin))

    @hookimpl
    def neuroscript_engine_closed(self, left: tuple[str, ...]) -> None:
        self.left.append(left)

    def kinds(self) -> list[tuple[str, str, str]]:
        """Return the kind, the tool without its group, and the code of each record."""
        return [(each.kind, each.tool.removeprefix("shop."), each.code) for each in self.told]


def raising(error: BaseException) -> Callable[[Any], Any]:
    """Return what raises an error, whatever it is asked."""

    def answer(call: Any) -> Any:
        raise error

    return answer


ANSWERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a sentence": (lambda call: "not today", "policy.hook"),
    "a refusal that it raises": (raising(PolicyError("not here")), "policy.hook"),
    "an error": (raising(ValueError("no")), "policy.fault"),
    "an exit": (raising(SystemExit(1)), "policy.fault"),
    "nonsense": (lambda call: False, "policy.fault"),
    "the arguments": (lambda call: call.arguments, "policy.fault"),
}


@way
@door
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_gate_refuses_at_every_door(answer: str, door: str, timeout: float | None) -> None:
    """The tool does not run, observers are told once, and the refusal is remembered."""
    decide, expected = ANSWERS[answer]
    gate, observer = Gate(decide), Observer()
    engine = engine_of(observer, gate, timeout=timeout)

    assert code(lambda: DOORS[door](engine, "shop.refund", {"euros": "5"})) == expected

    assert RAN == []
    assert len(gate.asked) == 1
    assert observer.kinds() == [("refused", "refund", expected)]
    assert [(each.code, each.rule, each.types) for each in engine.refusals] == [
        (expected, "hook Gate", (int, type(None)))
    ]


@way
@door
@pytest.mark.parametrize("outer", ["twice", "later", "each"])
def test_a_gate_refuses_a_call_within_at_every_door(outer: str, door: str, timeout: float | None) -> None:
    """It knows the call that it stands in; its refusal passes the outer tool as it is."""
    gate, observer = Gate(lambda call: "not within" if call.depth > 1 else None), Observer()
    engine = engine_of(gate, observer, timeout=timeout)

    assert code(lambda: DOORS[door](engine, f"shop.{outer}", {"euros": 5})) == "policy.hook"

    assert [name for name, _ in RAN] == [outer]
    asked = [(call.tool, call.depth, call.above) for call in gate.asked]
    assert asked == [(f"shop.{outer}", 1, ()), ("shop.refund", 2, (f"shop.{outer}",))]
    intent, refused, outcome = observer.told
    assert [each.kind for each in observer.told] == ["intent", "refused", "outcome"]
    assert (refused.parent, refused.depth) == (intent.call, 2)
    assert (outcome.call, outcome.code) == (intent.call, "policy.hook")


@way
@door
def test_a_gate_sees_the_values_that_the_tool_gets(door: str, timeout: float | None) -> None:
    """Of another spelling, and with defaults; whatever it does to them, the tool gets what was asked for."""

    def spoil(call: Any) -> None:
        call.arguments["items"].clear()
        call.arguments["euros"] = 999

    first, second = Gate(spoil), Gate()
    engine = engine_of(second, first, timeout=timeout)
    items = [1, 2.0, "3"]

    DOORS[door](engine, "shop.refund", {"euros": " 5 ", "items": items})

    assert RAN == [("refund", (5, [1, 2, 3]))]
    assert second.asked[0].arguments == {"euros": 5, "items": [1, 2, 3]}
    assert items == [1, 2.0, "3"]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        second.asked[0].tool = "shop.other"  # type: ignore[misc]


@way
def test_what_a_gate_keeps_of_a_call_is_its_own(timeout: float | None) -> None:
    """A tool that changes what it was given changes nothing that a gate has seen."""
    gate = Gate()
    made = Toolset("m")

    def change(rt: Runtime, items: list[Any]) -> None:
        items[0]["a"] = "changed"

    spec = ToolSpec("change", "m", (ArgSpec("items", ArgType.SLICE_MAP),), return_type=ArgType.NIL)
    made.add(spec, change, ToolPolicy(timeout=timeout))
    Engine(toolsets=[made], plugins="none", hooks=[gate]).call("m.change", ([{"a": 1}],))

    assert gate.asked[0].arguments == {"items": [{"a": 1}]}


@door
def test_a_gate_is_asked_when_nothing_else_has_refused(door: str) -> None:
    """Neither the name, nor the policy, nor the arguments; and it is asked before an approver and before any limit."""
    approved: list[Any] = []
    gate = Gate(lambda call: "no" if call.arguments["euros"] == 13 else None)
    policy = ExecutionPolicy(
        deny=["shop.twice"], limits=Limits(calls=9),
        approver=lambda request: approved.append(request.arguments["euros"]) or Approval.approve(),
    )  # fmt: skip
    engine = engine_of(gate, approval=True, policy=policy)
    codes = [
        code(lambda name=name, given=given: DOORS[door](engine, f"shop.{name}", given))
        for name, given in (
            ("nothing", {"euros": 1}), ("twice", {"euros": 1}), ("refund", {"euros": "x"}), ("refund", {"euros": 13}),
            ("refund", {"euros": 1}),
        )
    ]  # fmt: skip

    assert codes == ["tool.not_found", "policy.denied", "coercion.format", "policy.hook", "ok"]
    assert [call.arguments["euros"] for call in gate.asked] == [13, 1]
    assert approved == [1]
    assert engine.ledger.spent == {"calls": 1}


@door
def test_a_gate_is_asked_again_about_what_an_approver_has_changed(door: str) -> None:
    """With the new values, in their exact form."""
    gate = Gate(lambda call: "no" if call.arguments["euros"] == 13 else None)
    answers = [Approval.modify({"euros": "12"}), Approval.modify({"euros": "13"})]
    policy = ExecutionPolicy(approver=lambda request: answers.pop(0))
    engine = engine_of(gate, approval=True, policy=policy)

    assert code(lambda: DOORS[door](engine, "shop.refund", {"euros": 1})) == "ok"
    assert code(lambda: DOORS[door](engine, "shop.refund", {"euros": 1})) == "policy.hook"

    assert [call.arguments["euros"] for call in gate.asked] == [1, 12, 1, 13]
    assert [values[0] for _, values in RAN] == [12]


# Observers


@way
@door
def test_observers_are_told_of_calls_within_calls(door: str, timeout: float | None) -> None:
    """Each begins after the one that it stands in and ends before it, and names it."""
    observer = Observer()
    engine = engine_of(observer, timeout=timeout)

    DOORS[door](engine, "shop.twice", {"euros": 5})

    assert observer.kinds() == [
        ("intent", "twice", ""), ("intent", "refund", ""), ("outcome", "refund", "ok"), ("intent", "refund", ""),
        ("outcome", "refund", "ok"), ("outcome", "twice", "ok"),
    ]  # fmt: skip
    outer, inner, other = observer.told[0], observer.told[1], observer.told[3]
    assert [each.call for each in observer.told] == [outer.call, *[inner.call] * 2, *[other.call] * 2, outer.call]
    assert len({outer.call, inner.call, other.call}) == 3
    assert [each.parent for each in observer.told] == [0, *[outer.call] * 4, 0]
    assert [each.depth for each in observer.told] == [1, 2, 2, 2, 2, 1]
    assert [len(each.repairs) for each in observer.told] == [0, 0, 0, 1, 1, 0]
    assert {each.run for each in observer.told} == {outer.run}


@way
def test_a_refusal_that_a_tool_catches_is_told_all_the_same(timeout: float | None) -> None:
    """Its outer call has ended well."""
    observer = Observer()
    engine = engine_of(observer, timeout=timeout, policy=ExecutionPolicy(deny=["shop.refund"]))

    assert engine.call("shop.tries", (5,)) == "policy.denied"

    assert observer.kinds() == [
        ("intent", "tries", ""),
        ("refused", "refund", "policy.denied"),
        ("outcome", "tries", "ok"),
    ]


class Broken(Observer):
    """An observer that fails whenever it is told of a call."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    @hookimpl
    def neuroscript_call_started(self, record: CallRecord) -> None:
        self.told.append(record)
        raise self.error

    @hookimpl
    def neuroscript_call_finished(self, record: CallRecord) -> None:
        self.told.append(record)
        raise self.error


@way
@door
@pytest.mark.parametrize("error", [ValueError("canary"), SystemExit("canary")], ids=lambda each: type(each).__name__)
def test_an_observer_that_fails_is_logged_once_and_changes_nothing(
    error: BaseException, door: str, timeout: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    """For each of its hooks, whatever the call comes to, and the observers after it are told."""
    broken, observer = Broken(error), Observer()
    engine = engine_of(observer, broken, timeout=timeout)

    with caplog.at_level(logging.DEBUG, "neuroscript"):
        assert code(lambda: DOORS[door](engine, "shop.twice", {"euros": 5})) == "ok"
        assert code(lambda: DOORS[door](engine, "shop.twice", {"euros": "x"})) == "coercion.format"
        assert code(lambda: DOORS[door](engine, "shop.refund", {"euros": 6})) == "ok"

    assert observer.told == broken.told and len(observer.told) == 6 + 1 + 2
    assert [values[0] for _, values in RAN] == [5, 5, 5, 6]
    sentence = "the hook {} of the plugin Broken failed ({}); further failures of it are not logged"
    told = [record.getMessage() for record in caplog.records if record.name == "neuroscript.audit"]
    assert sorted(told) == [
        sentence.format(f"neuroscript_call_{kind}", type(error).__name__) for kind in ("finished", "started")
    ]
    assert [record.name for record in caplog.records].count("neuroscript.traceback") == 2


def test_an_engine_tells_of_its_tools_and_of_its_end(tmp_path: Any) -> None:
    """Of those that it is made with, of those that come later by whatever way, and once that it is closed."""
    observer = Observer()
    plugin = tmp_path / "more.py"
    plugin.write_text(
        "from neuroscript import ToolImplementation, ToolSpec\n"
        "def register(registrar):\n"
        "    registrar.register(ToolImplementation(ToolSpec('t', 'more'), lambda rt: 1))\n"
    )
    engine = engine_of(observer)
    made = Toolset("other")
    made.add(ToolSpec("t", "other"), lambda rt: 1)

    engine.register(made, origin="acme 1.0")
    engine.load_plugin(plugin)
    engine.session().close()

    names = [f"shop.{name}" for name in ("refund", "twice", "each", "later", "tries")]
    assert observer.tools[:6] == [*((name, "host") for name in names), ("other.t", "acme 1.0")]
    assert [name for name, _ in observer.tools[6:]] == ["more.t"] and "more" in observer.tools[6][1]
    assert observer.left == []
    engine.close()
    engine.close()
    assert observer.left == [()]


def test_the_end_of_an_engine_names_the_calls_that_are_left_behind() -> None:
    """Their records come when they end after all."""
    observer, inside, free = Observer(), threading.Event(), threading.Event()
    made = Toolset("slow")

    def wait(rt: Runtime) -> None:
        inside.set()
        free.wait(30)

    made.add(ToolSpec("wait", "slow", return_type=ArgType.NIL), wait)
    engine = Engine(toolsets=[made], plugins="none", hooks=[observer])
    caller = threading.Thread(target=lambda: code(lambda: engine.call("slow.wait")))
    caller.start()
    assert inside.wait(30)

    assert engine.close(grace=0) == ("slow.wait",)
    assert observer.left == [("slow.wait",)]
    free.set()
    caller.join()
    assert [(each.kind, each.tool) for each in observer.told] == [("intent", "slow.wait"), ("outcome", "slow.wait")]


def test_what_is_no_plugin_makes_no_engine() -> None:
    """A gate that would never be asked stands open."""

    class Unmarked:
        def neuroscript_decide(self, call: Any) -> str:
            return "never asked"

    with pytest.raises(PluginError):
        engine_of(Unmarked())
    engine = engine_of(Gate())
    with pytest.raises(PluginError):
        engine.add_hooks(Unmarked())
    assert engine.call("shop.refund", (5,)) == 5


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
    """A plugin that brings an empty toolset, and is neither asked nor told of anything."""

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
