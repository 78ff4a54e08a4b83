"""Threads for slow work, so that tools and jobs leave the threads that render pages free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import Final, ParamSpec, TypeVar

import attrs

MAX_THREADS: Final = 64
"""Maximum number of threads of one console, including those whose work was cancelled and has not returned yet."""

P = ParamSpec("P")
T = TypeVar("T")


@attrs.define(eq=False)
class WorkThreads:
    """Runs slow work, each piece on a thread of its own, which does not keep the process from ending."""

    _free: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(MAX_THREADS), repr=False)

    async def run(self, work: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        """Return the result of a function that runs on a thread, in the context of the caller.

        If the caller is cancelled, the function continues, and its thread is counted until it returns.
        """
        await self._free.acquire()
        loop, context = asyncio.get_running_loop(), copy_context()
        ended: asyncio.Future[T] = loop.create_future()

        def finish(set_outcome: Callable[[], None]) -> None:
            self._free.release()
            if not ended.done():
                set_outcome()

        def run() -> None:
            try:
                result = context.run(work, *args, **options)
            except BaseException as error:
                outcome = lambda error=error: ended.set_exception(error)  # noqa: E731
            else:
                outcome = lambda: ended.set_result(result)  # noqa: E731
            with suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(finish, outcome)

        Thread(target=run, name="neuroscript-console", daemon=True).start()
        return await ended
