"""The threads of one engine: some run event loops for coroutine tools, others run blocking tools.

All of them are daemons, so none keeps the process from ending. A thread cannot be killed; one whose caller has stopped
waiting is abandoned and counted, and only a few abandoned threads may run.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

from neuroscript.calls.drivers import Outcome, call_function, timeout_outcome
from neuroscript.calls.steps import GRACE_SECONDS, CallerGone, Invocation, engine_closed_error
from neuroscript.errors import LimitError

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future
    from contextvars import Context
    from queue import SimpleQueue

    Jobs = SimpleQueue[tuple[Context, "Job"]]

MAX_THREADS: Final = 64
"""Maximum number of threads of one engine that run blocking tools; further calls wait for a thread."""

MAX_ABANDONED_THREADS: Final = 8
"""Maximum number of abandoned threads of one engine that still run."""

POLL_SECONDS: Final = 1.0
"""Seconds between two checks whether a loop still runs."""

LEAST_SECONDS: Final = 0.005
"""Seconds that a function gets at least if its time is not over, because passing it to a thread takes time."""

LOST_SECONDS: Final = 60.0
"""Seconds that a thread waits for a job whose caller has reserved the thread and may have been interrupted."""

IDLE_SECONDS: Final = 5.0
"""Seconds after which an idle thread ends, so that a burst of cancelled calls does not leave threads for long."""


def stopped_outcome() -> Outcome:
    """Return the outcome of a tool that was stopped with the engine."""
    return Outcome(error=CallerGone(engine_closed_error()))


class LoopThread:
    """A thread that runs an event loop, so that coroutine tools can be called from anywhere.

    Attributes:
        blocking_calls: How many sync calls run in the loop's own thread, and block the loop.
    """

    def __init__(self) -> None:
        import asyncio

        self.loop = asyncio.new_event_loop()
        self.blocking_calls = 0
        self._is_over = False
        self.thread = threading.Thread(target=self._run, name="neuroscript-loop", daemon=True)
        self.thread.start()

    def outcome(self, func: Callable[[], Coroutine[Any, Any, Outcome]]) -> Outcome:
        """Run a coroutine function to its end and return its outcome; an interrupt of the caller cancels it."""
        import asyncio
        from concurrent.futures import Future

        future: Future[Outcome] = Future()
        tasks: list[asyncio.Task[Outcome]] = []

        def start() -> None:
            tasks.append(self.loop.create_task(func()))
            tasks[0].add_done_callback(lambda task: future.set_result(_outcome_of(task)))

        def cancel() -> None:
            for task in tasks:
                task.cancel()
            if not tasks:
                future.set_result(stopped_outcome())

        try:
            outcome = self._wait(future) if self._call(start) else stopped_outcome()
        except BaseException as error:
            if self._call(cancel):
                with suppress(BaseException):  # the caller may interrupt this wait, too
                    future.result(GRACE_SECONDS)
            return Outcome(error=CallerGone(error))
        was_cancelled = isinstance(outcome.error, CallerGone) and isinstance(
            outcome.error.error, asyncio.CancelledError
        )
        return stopped_outcome() if was_cancelled else outcome

    def _wait(self, future: Future[Outcome]) -> Outcome:
        while True:
            try:
                return future.result(POLL_SECONDS)
            except TimeoutError:  # a future does not notice that its loop has ended
                if not self.thread.is_alive() and not future.done():
                    return stopped_outcome()

    def _call(self, func: Callable[[], object]) -> bool:
        """Call a function on the loop, and return whether the loop has not been closed."""
        try:
            self.loop.call_soon_threadsafe(func)
        except RuntimeError:
            return False
        return True

    def close(self) -> None:
        """Cancel what still runs on the loop, and stop it."""
        self._call(self._cancel)

    def _cancel(self) -> None:
        import asyncio

        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.call_soon(self.loop.call_later, 0.05, self._stop)

    def _stop(self) -> None:
        self._is_over = True
        self.loop.stop()

    def _run(self) -> None:
        import asyncio

        asyncio.set_event_loop(self.loop)
        try:
            while not self._is_over:
                with suppress(SystemExit, KeyboardInterrupt):  # raised by a task of a tool; asyncio passes them on
                    self.loop.run_forever()
        finally:
            self.loop.close()


def _outcome_of(task: asyncio.Task[Outcome]) -> Outcome:
    if task.cancelled():
        return stopped_outcome()
    error = task.exception()
    return task.result() if error is None else Outcome(error=CallerGone(error))


class Threads:
    """The threads of one engine, which start when they are needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loops: list[LoopThread] = []
        self._workers = 0
        self._free = threading.Semaphore(0)
        self._jobs: Jobs | None = None
        self._idle: deque[Jobs] = deque()
        self._process = os.getpid()
        self.abandoned = 0

    def loop(self) -> LoopThread:
        """Return a loop that is not blocked by a coroutine tool which called a sync method of the engine."""
        own = threading.current_thread()
        with self._lock:
            for each in self._loops:
                if each.thread is not own and not each.blocking_calls:
                    return each
            self._loops.append(LoopThread())
            return self._loops[-1]

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Mark the loop of this thread, if it has one, as blocked."""
        own = threading.current_thread()
        loop = next((each for each in self._loops if each.thread is own), None)
        if loop is None:
            yield
            return
        loop.blocking_calls += 1
        try:
            yield
        finally:
            loop.blocking_calls -= 1

    def within(self, body: Invocation, seconds: float) -> Outcome:
        """Call a function on a thread that has nothing else to do, and wait for it no longer than *seconds*."""
        if seconds <= 0:
            return timeout_outcome(body, stopped=True)
        try:
            job = Job(self, body)
        except LimitError as error:
            return Outcome(error=error)
        with self.waiting() if self._loops else nullcontext():
            self._start(job)
            try:
                ended = job.wait(max(seconds, LEAST_SECONDS))
            except BaseException as error:
                job.leave()
                return Outcome(error=CallerGone(error))
        return job.outcome if ended or not job.leave() else timeout_outcome(body, job.has_ended, stopped=False)

    async def awaitable(self, body: Invocation) -> Outcome:
        """Call a function on a thread while the event loop of the caller runs on."""
        import asyncio

        if body.timeout is not None and body.timeout <= 0:
            return timeout_outcome(body, stopped=True)

        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def settle() -> None:
            if not future.done():
                future.set_result(None)

        def tell() -> None:
            with suppress(RuntimeError):  # the loop has been closed, and the caller with it
                loop.call_soon_threadsafe(settle)

        try:
            job = Job(self, body, tell)
        except LimitError as error:
            return Outcome(error=error)
        (self._submit if body.timeout is None else self._start)(job)
        try:
            done, _ = await asyncio.wait({future}, timeout=body.timeout and max(body.timeout, LEAST_SECONDS))
        except asyncio.CancelledError as error:
            job.leave()
            return Outcome(error=CallerGone(error))
        return job.outcome if done or not job.leave() else timeout_outcome(body, job.has_ended, stopped=False)

    def close(self) -> None:
        """Cancel what runs on the loops and stop them, without waiting."""
        with self._lock:
            loops, self._loops = self._loops, []
        for each in loops:
            each.close()

    def __del__(self) -> None:
        self.close()

    def refuse_when_full(self, tool: str) -> None:
        """Raise a `LimitError` if too many abandoned threads run."""
        if self.abandoned >= MAX_ABANDONED_THREADS:
            text = f"{MAX_ABANDONED_THREADS} abandoned calls still run"
            raise LimitError(text, tool=tool, code="limit.abandoned", retry="later")

    def _start(self, job: Job) -> None:
        """Run a job at once: on a thread that is idle, or on a new one."""
        if self._process != os.getpid():  # threads do not survive a fork
            self._idle, self._process = deque(), os.getpid()
        context = copy_context()
        try:
            self._idle.pop().put((context, job))
        except IndexError:
            _serve_on_thread(self._idle, context, job)

    def _submit(self, job: Job) -> None:
        from queue import SimpleQueue

        with self._lock:
            if self._jobs is None:
                self._jobs = SimpleQueue()
            self._jobs.put((copy_context(), job))
            if not self._free.acquire(blocking=False) and self._workers < MAX_THREADS:
                self._workers += 1
                threading.Thread(target=self._work, args=(self._jobs,), name="neuroscript-worker", daemon=True).start()

    def _work(self, jobs: Jobs) -> None:
        """Run jobs until there has been none for `IDLE_SECONDS` seconds; ``_free`` counts the idle workers.

        A worker is counted only while no job is queued, under the lock under which jobs are queued. Otherwise it could
        take a job that was queued for a new worker and still count as idle, and a later job would have no worker.
        """
        from queue import Empty

        while True:
            try:
                context, job = jobs.get_nowait()
            except Empty:
                with self._lock:
                    if not jobs.empty():
                        continue
                    self._free.release()
                try:
                    context, job = jobs.get(timeout=IDLE_SECONDS)
                except Empty:
                    if self._may_leave(jobs):
                        return
                    continue
            context.run(job)

    def _may_leave(self, jobs: Jobs) -> bool:
        with self._lock:
            if not jobs.empty():  # a job was queued meanwhile, and needs this worker
                return False
            self._workers -= 1
            self._free.acquire(blocking=False)
            return True

    def count_abandoned(self, more: int) -> None:
        """Count threads that were abandoned, and those of them that have ended."""
        with self._lock:
            self.abandoned += more


def _serve_on_thread(idle: deque[Jobs], context: Context, job: Job) -> None:
    thread = threading.Thread(target=_serve, args=(idle, [(context, job)]), name="neuroscript-tool", daemon=True)
    del context, job
    thread.start()


def _serve(idle: deque[Jobs], first: list[tuple[Context, Job]]) -> None:
    """Run a job, and others until there has been none for `IDLE_SECONDS` seconds.

    Args:
        idle: The queues of the threads that take another job; the operations of a deque are atomic.
        first: The first job, which is taken out, because what it holds must not live until the next one.
    """
    from queue import Empty, SimpleQueue

    jobs: Jobs = SimpleQueue()
    context, job = first.pop()
    try:
        while True:
            context.run(job)
            del context, job
            idle.append(jobs)  # after the finalizers of the job, which may take time
            try:
                context, job = jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                try:
                    idle.remove(jobs)
                    return
                except ValueError:  # a job is on its way, unless its caller was interrupted
                    context, job = jobs.get(timeout=LOST_SECONDS)
    except Empty:
        return
    finally:  # another thread may raise an exception in this one
        with suppress(ValueError):
            idle.remove(jobs)
        with suppress(Empty):
            _serve_on_thread(idle, *jobs.get_nowait())


class Flag:
    """A value that is set once."""

    __slots__ = ("is_set",)

    def __init__(self) -> None:
        self.is_set = False

    def value(self) -> bool:
        """Return whether it is set."""
        return self.is_set


class Job:
    """A function that a thread runs, and its outcome."""

    def __init__(self, threads: Threads, body: Invocation, tell: Callable[[], object] | None = None) -> None:
        if not body.is_last:
            threads.refuse_when_full(body.tool)
        self.outcome = Outcome()
        self._flag = Flag()
        self._running = threading.Lock()
        self._running.acquire()
        self._threads = threads
        self._body = body
        self._tell = tell
        self._lock = threading.Lock()
        self._left = False

    def __call__(self) -> None:
        if not self._left or self._body.is_last:  # the caller has given up before the function began
            self.outcome = call_function(self._body)
        with self._lock:
            self._flag.is_set = True
            left = self._left
        self._running.release()
        if left:
            self._threads.count_abandoned(-1)
        elif self._tell is not None:
            self._tell()

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the function, and return whether it has ended; call it once."""
        return self._running.acquire(timeout=min(seconds, threading.TIMEOUT_MAX))

    @property
    def has_ended(self) -> Callable[[], bool]:
        """Returns whether the function has ended. Errors store it, so it does not hold the job."""
        return self._flag.value

    def leave(self) -> bool:
        """Abandon the function, and return whether it still runs."""
        with self._lock:
            if self._flag.is_set:
                return False
            self._left = True
        self._threads.count_abandoned(1)
        return True
