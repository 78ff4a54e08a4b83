"""Ratios of times that are stable on a busy machine: minima of short batches, with all statements interleaved.

A batch of 1.5 ms is shorter than a scheduler's time slice, so some batches of every statement run undisturbed, and their
minimum is the statement's own time. Ratios of minima from one run repeat to half a percent, while ratios of means differ
by a quarter.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter, process_time
from timeit import Timer
from typing import Any, Final, NamedTuple, TypeVar

Key = TypeVar("Key")

BATCH: Final = 0.0015
"""Seconds that one batch takes, or one execution if that is longer."""

LONG: Final = 0.001
"""Seconds above which an execution is interrupted too often for its wall time to count."""

GAIN: Final = 0.003
"""The relative improvement of a minimum that continues the search for a smaller one."""


TRIES: Final = 5
"""How often a batch is timed to find its size.

A first execution that compiles something, or one that is interrupted, would make it far too small.
"""


class Statement(NamedTuple):
    """Code as a string, because a lambda around it costs more than some calls, and the names that it may use."""

    code: str
    names: Mapping[str, Any]


class Seconds(NamedTuple):
    """The minimum time of one execution: in wall time, and in CPU time of this process."""

    wall: float
    process: float


class Batch:
    """A statement that is executed often enough to take `BATCH` seconds, and its minima so far."""

    def __init__(self, statement: Statement) -> None:
        self._timer = Timer(statement.code, timer=_both_clocks, globals=dict(statement.names))
        self._count = 1
        while (wall := min(self._timed().real for _ in range(TRIES))) < BATCH:
            self._count = max(2 * self._count, int(self._count * BATCH / max(wall, 1e-6)))
        self.least = Seconds(float("inf"), float("inf"))

    def run(self) -> bool:
        """Execute the batch once and return whether it improved the minimum by at least `GAIN`."""
        now, before = self._timed() / self._count, self.least
        self.least = Seconds(min(before.wall, now.real), min(before.process, now.imag))
        return any(new < old * (1 - GAIN) for new, old in zip(self.least, before, strict=True))

    def _timed(self) -> complex:
        taken: Any = self._timer.timeit(self._count)  # of the timer's type, so it is complex
        return complex(taken)


def _both_clocks() -> Any:
    """Return the time on two clocks as one number, which timeit can subtract."""
    return complex(perf_counter(), process_time())


def fastest(
    statements: Mapping[Key, Statement], *, patience: int = 30, most: int = 600, seed: int = 0
) -> dict[Key, Seconds]:
    """Return the minimum time of one execution of each statement.

    Args:
        statements: Under any key; each round executes one batch of each, in a random order.
        patience: The number of rounds without a gain after which the search ends.
        most: The maximum number of rounds.
    """
    order = random.Random(seed)
    batches = {name: Batch(statement) for name, statement in statements.items()}
    shuffled, idle = list(batches.values()), 0
    with quiet_memory():
        for _ in range(most):
            order.shuffle(shuffled)
            gains = [batch.run() for batch in shuffled]
            idle = 0 if any(gains) else idle + 1
            if idle == patience:
                break
            gc.collect()
    return {name: batch.least for name, batch in batches.items()}


@contextmanager
def quiet_memory() -> Iterator[None]:
    """Disable the garbage collector, and freeze the existing objects; objects frozen before stay frozen."""
    were_frozen = gc.get_freeze_count() > 0
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        if not were_frozen:
            gc.unfreeze()


def ratio(ours: Seconds, theirs: Seconds) -> float:
    """Return the ratio of *ours* to *theirs*, on the clock that fits the longer of the two."""
    if max(ours.wall, theirs.wall) >= LONG:
        return ours.process / theirs.process
    return ours.wall / theirs.wall
