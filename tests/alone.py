"""A test that measures runs while no other does, in however many processes the tests run.

What measures is marked ``alone``: beside a busy neighbour it would find another time, ratio or count. In the workers of
pytest-xdist each test takes its turn: one that is marked by itself, the others together.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOM = Path(__file__)
"""Locked by whoever runs. It is there, so nothing is left behind; and what is locked is free when its process ends."""

QUEUE = ROOM.parent
"""Locked by the next to come in, so that those who share the room do not pass by one who wants it alone."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test, with its fixtures, in its turn."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    with turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)


@contextmanager
def turn(*, alone: bool) -> Iterator[None]:
    """Be in the room, alone or with others."""
    from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock

    queue, room = (os.open(path, os.O_RDONLY) for path in (QUEUE, ROOM))
    try:
        flock(queue, LOCK_EX)
        flock(room, LOCK_EX if alone else LOCK_SH)
        flock(queue, LOCK_UN)
        yield
    finally:
        for each in (room, queue):
            flock(each, LOCK_UN)  # what a test has forked may hold the descriptor, too
            os.close(each)
