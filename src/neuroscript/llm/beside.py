"""Functions on threads: some at the same time, or one beside a loop that goes on.

All of these threads are daemons: one that nobody waits for any more keeps no process from ending.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import Final, TypeVar

T = TypeVar("T")

LOOK: Final = 0.2
"""Seconds between two looks whether somebody has interrupted a wait."""


def together(acts: Sequence[Callable[[], T]], most: int) -> tuple[T, ...]:
    """Return what functions return that run at the same time, in order.

    Where the wait for them ends early, what has not begun does not begin.

    Args:
        most: How many run at once, at most.

    Raises:
        BaseException: What the first of them that fails raises.
    """
    jobs = deque((Future[T](), copy_context(), act) for act in acts)
    futures = [future for future, _, _ in jobs]

    def work() -> None:
        with suppress(IndexError):  # there is no more
            while True:
                future, context, act = jobs.popleft()
                context.run(_settle, future, act)

    try:
        for _ in range(min(most, len(futures))):
            Thread(target=work, name="neuroscript-calls", daemon=True).start()
        return tuple(map(_result, futures))
    finally:
        jobs.clear()


def _result(future: Future[T]) -> T:
    """Return what comes of a function; an interrupt just before the wait begins is noticed by the next look."""
    while not future.done():
        wait((future,), LOOK)
    return future.result()


async def beside(act: Callable[[], T]) -> T:
    """Return what a function returns that runs on a thread of its own; who gives up does not wait for it."""
    import asyncio

    future = Future[T]()
    Thread(target=copy_context().run, args=(_settle, future, act), name="neuroscript-model", daemon=True).start()
    return await asyncio.wrap_future(future)


def _settle(future: Future[T], act: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        value = act()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(value)
