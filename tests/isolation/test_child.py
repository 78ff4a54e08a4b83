"""Forked children that report what a function returns, however they and their own forks end."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from neuroscript.isolation import child
from neuroscript.isolation.child import in_child

pytestmark = pytest.mark.forks


@pytest.fixture
def fork_waiting() -> Iterator[Callable[[], None]]:
    """Return a function that forks a process that has open what its parent has; it ends after the test."""
    reading, writing = os.pipe()

    def fork() -> None:
        if not os.fork():
            os.close(writing)
            select.select([reading], [], [], 20)
            os._exit(0)

    yield fork
    os.close(writing)
    os.close(reading)


def end_by_signal() -> str:
    os.kill(os.getpid(), signal.SIGTERM)
    return "not reached"


def test_report_is_whole() -> None:
    assert in_child(lambda: "a" * 300_000) == "a" * 300_000
    assert in_child(str) == ""


def test_fork_of_a_child_does_not_delay_its_report(fork_waiting: Callable[[], None]) -> None:
    def report() -> str:
        fork_waiting()
        return "done"

    began = time.monotonic()
    assert in_child(report) == "done"
    assert time.monotonic() - began < 10


def test_end_of_a_child_is_reported(monkeypatch: pytest.MonkeyPatch, fork_waiting: Callable[[], None]) -> None:
    def end_with_fork() -> str:
        fork_waiting()
        return end_by_signal()

    def wait() -> str:
        time.sleep(20)
        return "not reached"

    def close_and_wait() -> str:
        os.closerange(3, 256)
        return wait()

    began = time.monotonic()
    assert in_child(end_by_signal) == "the process ended by SIGTERM"
    assert in_child(lambda: os._exit(3)) == "the process ended with exit code 3"
    monkeypatch.setattr(child, "MAX_SECONDS", 0.3)
    assert in_child(end_with_fork) == "the process ended by SIGTERM"
    assert in_child(close_and_wait) == "the process ended by SIGKILL"
    assert in_child(wait) == "the process ended by SIGKILL"
    assert time.monotonic() - began < 15
