"""Threads for slow work, so that tools and jobs leave the threads that render pages free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Event, Thread
from typing import Any, Final, ParamSpec, TypeVar

import attrs

MAX_THREADS: Final = 64
"""Maximum number of threads of one console, including those whose work was cancelled and has not returned yet."""

CANCEL_SECONDS: Final = 5.0
"""Seconds to wait for a coroutine that was cancelled; a tool that blocks its event loop delays it."""

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
            outcome: Callable[[], None]
            try:
                outcome = partial(ended.set_result, context.run(work, *args, **options))
            except BaseException as error:
                outcome = partial(ended.set_exception, error)
            with suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(finish, outcome)

        Thread(target=run, name="neuroscript-console", daemon=True).start()
        return await ended

    async def run_async(self, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of a coroutine that runs on an event loop of its own, which its tools may block.

        If the caller is cancelled, the coroutine is cancelled too.
        """
        tasks: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []
        is_cancelled = Event()

        async def run() -> T:
            tasks.append((asyncio.get_running_loop(), asyncio.current_task()))
            if is_cancelled.is_set():
                raise asyncio.CancelledError
            return await begin()

        running = asyncio.create_task(self.run(lambda: asyncio.run(run())))
        running.add_done_callback(lambda task: task.cancelled() or task.exception())  # it may end after its caller
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            is_cancelled.set()
            for loop, task in tasks:
                with suppress(RuntimeError):  # it has ended just now
                    loop.call_soon_threadsafe(task.cancel if task else loop.stop)
            await asyncio.wait({running}, timeout=CANCEL_SECONDS)
            running.cancel()
            raise
