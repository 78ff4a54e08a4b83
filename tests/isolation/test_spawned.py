"""Workers that are processes of their own, as on macOS and Windows, where none can be forked from a zygote."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from tests.isolation.test_workers import (
    closed_during_a_call,
    engine,
    eventually,
    running,
    started_by_a_killed_host,
)
from tests.isolation.test_workers import processes as processes_of

from neuroscript import CallError, CallTimeout, Engine, ToolFailed
from neuroscript.isolation import processes

SPAWNED = b"isolation/spawned.py"
"""What the workers run."""


@pytest.fixture(autouse=True)
def spawned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "FORKS", False)


@pytest.fixture
def isolated() -> Iterator[Engine]:
    with engine() as made:
        yield made


def test_worker_is_reused_and_has_no_launcher(isolated: Engine) -> None:
    assert [isolated.call("working.count") for _ in range(3)] == [1, 2, 3]
    assert processes_of() == []
    assert len(spawned_processes()) == 1


def test_each_call_has_a_new_process_without_reuse() -> None:
    with engine(reuse=False) as made:
        assert [made.call("working.count") for _ in range(2)] == [1, 1]


@pytest.mark.parametrize("name", ["working.loop", "working.hold_interpreter"])
def test_call_is_killed_at_its_deadline(isolated: Engine, name: str) -> None:
    isolated.call("working.count")
    with pytest.raises(CallTimeout) as caught:
        isolated.call(name, timeout=0.2)
    assert caught.value.state == "killed"
    assert not eventually(spawned_processes)
    assert isolated.call("working.count") == 1


def test_kill_ends_what_the_tool_has_started() -> None:
    """Where there are process groups, and as long as it stays in its own."""
    with engine(grants=("shell:exec:sleep",)) as made:
        pid = made.call("working.leave_program")
        assert running([pid]) == [pid]
    assert not eventually(running, [pid])


@pytest.mark.parametrize(
    ("how", "reported"), [("exit", "exit code 7"), ("segfault", "SIGSEGV"), ("abort", "SIGABRT|SIGSEGV")]
)
def test_end_of_a_worker_is_named(isolated: Engine, how: str, reported: str) -> None:
    with pytest.raises(ToolFailed, match=reported) as caught:
        isolated.call("working.end", [how])
    assert (caught.value.code, caught.value.retry) == ("isolation.died", "never")
    assert isolated.call("working.count") == 1


def test_close_ends_running_calls_and_all_processes() -> None:
    made = engine()
    made.call("working.count")
    assert closed_during_a_call(made) == [CallError]
    assert not eventually(spawned_processes)


def test_nothing_is_left_when_the_host_is_killed() -> None:
    first = "from neuroscript.isolation import processes\nprocesses.FORKS = False\n"
    started = started_by_a_killed_host(first, SPAWNED)
    assert len(started) == 1
    assert not eventually(running, started)


def test_descriptors_and_processes_are_returned(isolated: Engine) -> None:
    def once() -> None:
        with engine() as made:
            made.call("working.count")
            with pytest.raises(ToolFailed):
                made.call("working.end", ["exit"])

    once()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    once()
    assert not eventually(lambda: list(range(before, len(os.listdir("/proc/self/fd")))))
    assert not eventually(spawned_processes)


def test_missing_layer_that_is_required_starts_nothing(isolated: Engine) -> None:
    """There is no PID namespace without a zygote."""
    with engine(require=("pidns",)) as made, pytest.raises(ToolFailed, match="pidns") as caught:
        made.call("working.count")
    assert (caught.value.code, caught.value.retry) == ("isolation.unavailable", "host")


def spawned_processes() -> list[int]:
    return processes_of(name=SPAWNED)
