"""Hooks of an engine: gates and observers at every entry point and in nested calls."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from tests.engine.error_codes import code
from tests.engine.hooked_engines import ENTRY_POINTS, RAN, Gate, Observer, engine_of, entry_point, way

from neuroscript import (
    ArgSpec,
    ArgType,
    CallRecord,
    Engine,
    ExecutionPolicy,
    PluginError,
    PolicyError,
    Runtime,
    ToolPolicy,
    Toolset,
    ToolSpec,
    hookimpl,
)
from neuroscript.approval.request import Approval
from neuroscript.policy.limits import Limits

# Gates


def raising(error: BaseException) -> Callable[[Any], Any]:
    """Return a function that raises an error."""

    def answer(call: Any) -> Any:
        raise error

    return answer


ANSWERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a sentence": (lambda call: "not today", "policy.hook"),
    "a refusal that it raises": (raising(PolicyError("not here")), "policy.hook"),
    "an error": (raising(ValueError("no")), "policy.check_failed"),
    "an exit": (raising(SystemExit(1)), "policy.check_failed"),
    "nonsense": (lambda call: False, "policy.check_failed"),
    "the arguments": (lambda call: call.arguments, "policy.check_failed"),
}


@way
@entry_point
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_gate_refuses_calls_of_every_entry_point(answer: str, entry_point: str, timeout: float | None) -> None:
    """The tool does not run, observers are notified once, and the refusal is stored."""
    decide, expected = ANSWERS[answer]
    gate, observer = Gate(decide), Observer()
    engine = engine_of(observer, gate, timeout=timeout)

    assert code(lambda: ENTRY_POINTS[entry_point](engine, "shop.refund", {"euros": "5"})) == expected

    assert RAN == []
    assert len(gate.calls) == 1
    assert observer.kinds() == [("refused", "refund", expected)]
    assert [(each.code, each.rule, each.types) for each in engine.refusals] == [
        (expected, "hook Gate", (int, type(None)))
    ]


@way
@entry_point
@pytest.mark.parametrize("outer", ["twice", "later", "each"])
def test_a_gate_refuses_nested_calls_of_every_entry_point(outer: str, entry_point: str, timeout: float | None) -> None:
    """It receives the number of the outer call; its refusal passes through the outer tool unchanged."""
    gate, observer = Gate(lambda call: "not within" if call.depth > 1 else None), Observer()
    engine = engine_of(gate, observer, timeout=timeout)

    assert code(lambda: ENTRY_POINTS[entry_point](engine, f"shop.{outer}", {"euros": 5})) == "policy.hook"

    assert [name for name, _ in RAN] == [outer]
    nested = [(call.tool, call.depth, call.above) for call in gate.calls]
    assert nested == [(f"shop.{outer}", 1, ()), ("shop.refund", 2, (f"shop.{outer}",))]
    intent, refused, outcome = observer.seen
    assert [each.kind for each in observer.seen] == ["intent", "refused", "outcome"]
    assert (refused.parent, refused.depth) == (intent.call, 2)
    assert (outcome.call, outcome.code) == (intent.call, "policy.hook")


@way
@entry_point
def test_a_gate_receives_the_values_of_the_tool(entry_point: str, timeout: float | None) -> None:
    """Coerced, and with defaults; a gate cannot change them."""

    def spoil(call: Any) -> None:
        call.arguments["items"].clear()
        call.arguments["euros"] = 999

    first, second = Gate(spoil), Gate()
    engine = engine_of(second, first, timeout=timeout)
    items = [1, 2.0, "3"]

    ENTRY_POINTS[entry_point](engine, "shop.refund", {"euros": " 5 ", "items": items})

    assert RAN == [("refund", (5, [1, 2, 3]))]
    assert second.calls[0].arguments == {"euros": 5, "items": [1, 2, 3]}
    assert items == [1, 2.0, "3"]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        second.calls[0].tool = "shop.other"  # type: ignore[misc]


@way
def test_a_gate_receives_its_own_copy_of_the_values(timeout: float | None) -> None:
    """A tool that modifies its arguments does not change it."""
    gate = Gate()
    made = Toolset("m")

    def change(rt: Runtime, items: list[Any]) -> None:
        items[0]["a"] = "changed"

    spec = ToolSpec("change", "m", (ArgSpec("items", ArgType.SLICE_MAP),), return_type=ArgType.NIL)
    made.add(spec, change, ToolPolicy(timeout=timeout))
    Engine(toolsets=[made], plugins="none", hooks=[gate]).call("m.change", ([{"a": 1}],))

    assert gate.calls[0].arguments == {"items": [{"a": 1}]}


@entry_point
def test_a_gate_is_the_last_check_before_approval_and_limits(entry_point: str) -> None:
    """It is not called if the name, the policy or the arguments were refused."""
    approved: list[Any] = []
    gate = Gate(lambda call: "no" if call.arguments["euros"] == 13 else None)
    policy = ExecutionPolicy(
        deny=["shop.twice"], limits=Limits(calls=9),
        approver=lambda request: approved.append(request.arguments["euros"]) or Approval.approve(),
    )  # fmt: skip
    engine = engine_of(gate, approval=True, policy=policy)
    codes = [
        code(lambda name=name, given=given: ENTRY_POINTS[entry_point](engine, f"shop.{name}", given))
        for name, given in (
            ("nothing", {"euros": 1}), ("twice", {"euros": 1}), ("refund", {"euros": "x"}), ("refund", {"euros": 13}),
            ("refund", {"euros": 1}),
        )
    ]  # fmt: skip

    assert codes == ["tool.not_found", "policy.denied", "coercion.format", "policy.hook", "ok"]
    assert [call.arguments["euros"] for call in gate.calls] == [13, 1]
    assert approved == [1]
    assert engine.ledger.spent == {"calls": 1}


@entry_point
def test_a_gate_checks_arguments_that_an_approver_has_edited(entry_point: str) -> None:
    """With the new values after coercion."""
    gate = Gate(lambda call: "no" if call.arguments["euros"] == 13 else None)
    answers = [Approval.modify({"euros": "12"}), Approval.modify({"euros": "13"})]
    policy = ExecutionPolicy(approver=lambda request: answers.pop(0))
    engine = engine_of(gate, approval=True, policy=policy)

    assert code(lambda: ENTRY_POINTS[entry_point](engine, "shop.refund", {"euros": 1})) == "ok"
    assert code(lambda: ENTRY_POINTS[entry_point](engine, "shop.refund", {"euros": 1})) == "policy.hook"

    assert [call.arguments["euros"] for call in gate.calls] == [1, 12, 1, 13]
    assert [values[0] for _, values in RAN] == [12]


# Observers


@way
@entry_point
def test_observers_receive_nested_calls(entry_point: str, timeout: float | None) -> None:
    """Each starts after its outer call, ends before it, and contains its number."""
    observer = Observer()
    engine = engine_of(observer, timeout=timeout)

    ENTRY_POINTS[entry_point](engine, "shop.twice", {"euros": 5})

    assert observer.kinds() == [
        ("intent", "twice", ""), ("intent", "refund", ""), ("outcome", "refund", "ok"), ("intent", "refund", ""),
        ("outcome", "refund", "ok"), ("outcome", "twice", "ok"),
    ]  # fmt: skip
    outer, inner, other = observer.seen[0], observer.seen[1], observer.seen[3]
    assert [each.call for each in observer.seen] == [outer.call, *[inner.call] * 2, *[other.call] * 2, outer.call]
    assert len({outer.call, inner.call, other.call}) == 3
    assert [each.parent for each in observer.seen] == [0, *[outer.call] * 4, 0]
    assert [each.depth for each in observer.seen] == [1, 2, 2, 2, 2, 1]
    assert [len(each.repairs) for each in observer.seen] == [0, 0, 0, 1, 1, 0]
    assert {each.run for each in observer.seen} == {outer.run}


@way
def test_a_refusal_that_a_tool_catches_is_observed(timeout: float | None) -> None:
    """Its outer call succeeds."""
    observer = Observer()
    engine = engine_of(observer, timeout=timeout, policy=ExecutionPolicy(deny=["shop.refund"]))

    assert engine.call("shop.tries", (5,)) == "policy.denied"

    assert observer.kinds() == [
        ("intent", "tries", ""),
        ("refused", "refund", "policy.denied"),
        ("outcome", "tries", "ok"),
    ]


class Broken(Observer):
    """An observer that fails on every record."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    @hookimpl
    def neuroscript_call_started(self, record: CallRecord) -> None:
        self.seen.append(record)
        raise self.error

    @hookimpl
    def neuroscript_call_finished(self, record: CallRecord) -> None:
        self.seen.append(record)
        raise self.error


@way
@entry_point
@pytest.mark.parametrize("error", [ValueError("canary"), SystemExit("canary")], ids=lambda each: type(each).__name__)
def test_an_observer_that_fails_is_logged_once_and_changes_nothing(
    error: BaseException, entry_point: str, timeout: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    """This holds for each hook and outcome, and later observers are notified."""
    broken, observer = Broken(error), Observer()
    engine = engine_of(observer, broken, timeout=timeout)

    with caplog.at_level(logging.DEBUG, "neuroscript"):
        assert code(lambda: ENTRY_POINTS[entry_point](engine, "shop.twice", {"euros": 5})) == "ok"
        assert code(lambda: ENTRY_POINTS[entry_point](engine, "shop.twice", {"euros": "x"})) == "coercion.format"
        assert code(lambda: ENTRY_POINTS[entry_point](engine, "shop.refund", {"euros": 6})) == "ok"

    assert observer.seen == broken.seen and len(observer.seen) == 6 + 1 + 2
    assert [values[0] for _, values in RAN] == [5, 5, 5, 6]
    sentence = "the hook {} of the plugin Broken failed ({}); further failures of it are not logged"
    reported = [record.getMessage() for record in caplog.records if record.name == "neuroscript.audit"]
    assert sorted(reported) == [
        sentence.format(f"neuroscript_call_{kind}", type(error).__name__) for kind in ("finished", "started")
    ]
    assert [record.name for record in caplog.records].count("neuroscript.traceback") == 2


def test_an_engine_reports_its_tools_and_its_end(tmp_path: Any) -> None:
    """Initial tools, tools that are added in any way, and the end of the engine once."""
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


def test_the_end_of_an_engine_lists_running_calls() -> None:
    """Their records follow when they end."""
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
    assert [(each.kind, each.tool) for each in observer.seen] == [("intent", "slow.wait"), ("outcome", "slow.wait")]


def test_an_object_without_hooks_is_refused() -> None:
    """Otherwise a misspelled gate would never be called."""

    class Unmarked:
        def neuroscript_decide(self, call: Any) -> str:
            return "never asked"

    with pytest.raises(PluginError):
        engine_of(Unmarked())
    engine = engine_of(Gate())
    with pytest.raises(PluginError):
        engine.add_hooks(Unmarked())
    assert engine.call("shop.refund", (5,)) == 5
