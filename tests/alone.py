"""Run tests that measure alone, across all processes of the test run.

These tests are marked ``alone``, because a busy neighbor would change the measured time, ratio or count. In pytest-xdist
workers, a marked test runs alone, and all others run concurrently. The marked ones run last, so that the workers wait
for each other only once.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

RUNNING = Path(__file__)
"""The lock of running tests. Its file already exists, so nothing is left behind, and the lock ends with its process."""

QUEUE = RUNNING.parent
"""The lock of the next test to start, so tests that may run together do not starve one that runs alone."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the marked tests behind the others."""
    if hasattr(config, "workerinput"):
        items.sort(key=is_alone)


def is_alone(item: pytest.Item) -> bool:
    """Return whether a test is marked."""
    return item.get_closest_marker("alone") is not None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test with its fixtures when it is its turn."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    with turn(alone=is_alone(item)):
        return (yield)


@contextmanager
def turn(*, alone: bool) -> Iterator[None]:
    """Hold the lock, alone or shared."""
    from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock

    queue, running = (os.open(path, os.O_RDONLY) for path in (QUEUE, RUNNING))
    try:
        flock(queue, LOCK_EX)
        flock(running, LOCK_EX if alone else LOCK_SH)
        flock(queue, LOCK_UN)
        yield
    finally:
        for each in (running, queue):
            flock(each, LOCK_UN)  # a process that the test forked may still hold the descriptor
            os.close(each)
