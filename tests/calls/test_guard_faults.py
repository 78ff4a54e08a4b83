"""Guards that fail in every way: the call is refused and leaves nothing behind."""

from __future__ import annotations

import threading
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from tests.calls.faults import CANARY, RAISED, raising
from tests.calls.faulty_engines import (
    ENTRY_POINTS,
    GATES,
    MANNERS,
    Bench,
    Part,
    Row,
    Setting,
    by_approver,
    cell,
    share_of_cells,
)

from neuroscript import (
    ArgumentError,
    CallError,
    ExecutionPolicy,
    LimitError,
    PolicyError,
)
from neuroscript.approval.request import Approval, ApprovalRequest

# An engine with one broken component

ON_THIS_THREAD = ("call", "call_named", "execute", "stream", "nested")


# Guards


def text_of(error: BaseException) -> str:
    """Return everything that an error says about itself."""
    return f"{error} {error!r} {error.args}"


@pytest.mark.slow
@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize("gate", GATES)
def test_failing_guard_refuses_and_leaves_nothing_behind(gate: str, entry_point: str) -> None:
    """The function does not run, the code gives the reason, a record is stored, and no value of the call appears."""
    for fault, manner in share_of_cells(GATES[gate].faults, [*GATES].index(gate), [*ENTRY_POINTS].index(entry_point)):
        with cell(fault, manner):
            refuses_and_leaves_nothing_behind(GATES[gate], fault, manner, entry_point)


def refuses_and_leaves_nothing_behind(row: Row, fault: str, manner: str, entry_point: str) -> None:
    is_nested = "nested" in entry_point
    refused = "g.outer" if is_nested and row.outer else "g.t"
    part = Part(row.faults[fault])
    bench = Bench(row.gate(part), manner)
    with bench.engine as engine:
        with pytest.raises((PolicyError, LimitError)) as caught:
            bench.call(entry_point)
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
        assert bench.call(entry_point) == f"{CANARY}!"
        assert bench.ran == [CANARY]
        assert bench.counts()["calls"] - before == 1 + is_nested
        assert bench.counts()["concurrency"] == 0


@pytest.mark.parametrize("entry_point", ["call", "stream"])
@pytest.mark.parametrize(
    ("gate", "fault", "check"),
    [
        ("approver", "KeyError", "approver"),
        ("hook", "KeyError", "hook Deciding"),
        ("template", "KeyError", "needs"),
        ("clock of an audit", "ValueError", "clock"),
        ("clock of a rate", "SystemExit", "limits"),
    ],
)
def test_refusal_contains_the_name_of_the_check_that_failed(
    gate: str, fault: str, check: str, entry_point: str
) -> None:
    bench = Bench(GATES[gate].gate(Part(RAISED[fault])), "plain")
    with bench.engine as engine, pytest.raises(PolicyError) as caught:
        ENTRY_POINTS[entry_point](engine, CANARY)

    assert str(caught.value) == f"g.t: denied because a check failed ({check}, {fault})"
    assert [caught.value.rule, *(each.rule for each in engine.refusals)] == [check, check]


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_failing_guards_leave_no_thread(entry_point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads end after their engines are closed and the idle time is over."""
    monkeypatch.setattr("neuroscript.calls.threads.IDLE_SECONDS", 0.1)  # seconds
    before = set(threading.enumerate())
    for gate, fault in product(GATES.values(), ("ValueError", "SystemExit")):
        with Bench(gate.gate(Part(RAISED[fault])), "coroutine").engine as engine:
            with suppress(BaseException):
                ENTRY_POINTS[entry_point](engine, CANARY)
    for each in set(threading.enumerate()) - before:
        each.join(10)
        assert not each.is_alive(), each.name


@pytest.mark.parametrize("entry_point", ON_THIS_THREAD)
@pytest.mark.parametrize("gate", GATES)
def test_interrupt_propagates_through_every_guard_on_the_main_thread(gate: str, entry_point: str) -> None:
    """It is neither an answer nor a fault; the function does not run, and nothing remains."""
    part = Part(raising(KeyboardInterrupt))
    bench = Bench(GATES[gate].gate(part), "plain")
    with bench.engine as engine:
        if "await" in gate or "async" in gate:
            with pytest.raises(PolicyError):  # on the thread of the loop it is not an interrupt by the user
                bench.call(entry_point)
        else:
            with pytest.raises(KeyboardInterrupt):
                bench.call(entry_point)
        assert bench.ran == []

        part.broken = False
        assert bench.call(entry_point) == f"{CANARY}!"
        assert bench.counts()["concurrency"] == 0
        assert not engine._running


# Arguments changed by an approver

NO_ARGUMENTS: dict[str, Any] = {
    "nothing": None,
    "a number": 5,
    "a string": CANARY,
    "a list": [CANARY],
    "no arguments": {},
    "another argument": {"y": CANARY},
    "one too many": {"x": "a", "y": CANARY},
    "another type": {"x": [CANARY]},
    "an object": {"x": object()},
    "a name that is none": {5: CANARY},
}


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize("arguments", NO_ARGUMENTS)
def test_invalid_arguments_from_an_approver_refuse_the_call(arguments: str, entry_point: str) -> None:
    """The error blames the approver, and the caller's own arguments are not used instead."""
    for manner in MANNERS:
        part = Part(lambda: Approval.modify(NO_ARGUMENTS[arguments]))
        bench = Bench(by_approver(part), manner)
        with bench.engine:
            with pytest.raises(CallError) as caught:
                bench.call(entry_point)
            assert isinstance(caught.value, (ArgumentError, PolicyError)) or "nested" in entry_point
            assert bench.ran == []
            assert CANARY not in text_of(caught.value)

            part.broken = False
            assert bench.call(entry_point) == f"{CANARY}!"
            assert bench.counts()["concurrency"] == 0


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_approvers_that_modify_forever_refuse_the_call(entry_point: str) -> None:
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
            bench.call(entry_point)
        assert (caught.value.code, caught.value.retry) == ("policy.check_failed", "host")
        assert CANARY not in text_of(caught.value)
        assert [each.code for each in engine.refusals] == ["policy.check_failed"]
    assert bench.ran == []
    assert next(counter) < 100
