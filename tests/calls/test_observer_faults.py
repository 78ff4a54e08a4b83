"""Observers that fail in every way: the call is unaffected."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from tests.calls.faults import CANARY, NO_APPROVAL, RAISED
from tests.calls.faulty_engines import (
    ENTRY_POINTS,
    GATES,
    Bench,
    Part,
    Setting,
    Sink,
    by_clock,
    by_clock_of_a_rate,
    by_clock_of_an_observer,
    cell,
    cells,
    share_of_cells,
)

from neuroscript import (
    ArgumentError,
)
from neuroscript.approval.request import Approval
from neuroscript.runtime.records import CallRecord
from neuroscript.tools.hookspecs import hookimpl

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
    "hook for the start of a call": lambda part: hooks_of(part, "started"),
    "hook for the end of a call": lambda part: hooks_of(part, "finished"),
    "hook for a new tool": lambda part: hooks_of(part, "registered"),
    "hook for the end of the engine": lambda part: hooks_of(part, "closed"),
    "sink that is not required, at the beginning": lambda part: Setting(
        {"audit": Sink(intent=part), "audit_required": "none"}
    ),
    "sink that is not required, at the end": lambda part: Setting(
        {"audit": Sink(outcome=part), "audit_required": "none"}
    ),
    "sink that is required, at the end": lambda part: Setting({"audit": Sink(outcome=part), "audit_required": "all"}),
    "sink that is closed": lambda part: Setting({"audit": [Sink(closing=part), Sink()]}),
}


@pytest.mark.slow
@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize("observer", OBSERVERS)
def test_failing_observer_changes_nothing(observer: str, entry_point: str) -> None:
    """The result or error of the tool is unchanged, and the log line contains no value."""
    places = [*OBSERVERS].index(observer), [*ENTRY_POINTS].index(entry_point)
    for fault, manner in share_of_cells(RAISED, *places):
        with cell(fault, manner):
            changes_nothing(OBSERVERS[observer], fault, manner, entry_point)


def changes_nothing(observer: Observer, fault: str, manner: str, entry_point: str) -> None:
    part = Part(RAISED[fault])
    bench = Bench(observer(part), manner)
    with bench.engine as engine:
        for _ in range(2):
            assert bench.call(entry_point) == f"{CANARY}!"
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
        for entry_point in ENTRY_POINTS:
            assert bench.call(entry_point) == f"{CANARY}!"
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


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize("clock", CLOCKS)
def test_unusual_clock_time_is_not_a_fault(clock: str, entry_point: str) -> None:
    """Records contain the time as it is; durations come from another clock."""
    for gate in (by_clock, by_clock_of_an_observer, by_clock_of_a_rate):
        sinks: list[Sink] = []
        setting = attrs.evolve(gate(Part(lambda: None)), clock=CLOCKS[clock])
        if "audit" in setting.options:
            sinks.append(setting.options["audit"])
        bench = Bench(setting, "plain")
        with bench.engine:
            assert bench.call(entry_point) == f"{CANARY}!"
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
