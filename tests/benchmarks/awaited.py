"""Minimum times of awaited statements: batches of all of them in turn, on one running loop.

A statement that uses a thread takes one of two very different times, depending on the scheduler, so its goal is far from
the measured time.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping
from itertools import repeat
from textwrap import indent
from time import perf_counter
from typing import Any, Final

from .harness import BATCH, TRIES, Key, Seconds, Statement, quiet_memory

LOOP: Final = """
async def batch(count):
    started = clock()
    for _ in repeat(None, count):
{code}
    return clock() - started
"""


def fastest(statements: Mapping[Key, Statement], *, rounds: int = 30) -> dict[Key, Seconds]:
    """Return the minimum time of one execution of each statement; an awaitable one contains ``await`` itself.

    Both times are wall times, because a statement may run on several threads.
    """
    return asyncio.run(_fastest(statements, rounds))


async def _fastest(statements: Mapping[Key, Statement], rounds: int) -> dict[Key, Seconds]:
    batches = {name: _batch(statement) for name, statement in statements.items()}
    counts = {name: await _count(batch) for name, batch in batches.items()}
    least = dict.fromkeys(statements, float("inf"))
    with quiet_memory():
        for _ in range(rounds):
            for name, batch in batches.items():
                least[name] = min(least[name], await batch(counts[name]) / counts[name])
            gc.collect()
    return {name: Seconds(wall, wall) for name, wall in least.items()}


def _batch(statement: Statement) -> Any:
    names: dict[str, Any] = {**statement.names, "clock": perf_counter, "repeat": repeat}
    exec(LOOP.format(code=indent(statement.code, "        ")), names)
    return names["batch"]


async def _count(batch: Any) -> int:
    count = 1
    while (taken := min([await batch(count) for _ in range(TRIES)])) < BATCH:
        count = max(2 * count, int(count * BATCH / max(taken, 1e-6)))
    return count
