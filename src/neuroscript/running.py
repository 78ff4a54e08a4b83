"""The drivers that carry out the steps of a line, from sync and from async code, and the Runtime of one call.

A coroutine tool runs on the loop of the caller that awaits it, else on a loop of the engine's own, in a thread. A tool
that waits for something runs on a thread where its caller has to go on. All these threads are daemons: nothing here
keeps a process from ending.

Source: contract sections 4 and 6; reliability.md parts 4.2 and 4.7.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any, Final

import attrs

from neuroscript.argtypes import ArgType
from neuroscript.display import escaped
from neuroscript.errors import CallError, CallTimeout, CoercionError
from neuroscript.line import Body, CallFrame, failure
from neuroscript.values import copied, exact
from neuroscript.walk import RESULT, ROOT, Walk

GRACE: Final = 1.0
"""Seconds that a cancelled coroutine is given to end before it is called abandoned."""

MOST_THREADS: Final = 64
"""How many threads of one engine wait for tools at once; further calls wait for a thread."""

IDLE: Final = 5.0
"""Seconds after which a thread without work ends."""

Steps = Generator[Body, Any, Any]


@attrs.frozen
class Outcome:
    """What came of running something: what it returned, or what it raised."""

    value: Any = None
    error: BaseException | None = None

    def into(self, steps: Steps) -> Body:
        """Hand the outcome to the steps and return what they ask for next; StopIteration holds the result."""
        return steps.send(self.value) if self.error is None else steps.throw(self.error)


def drive(steps: Steps, threads: Threads) -> Any:
    """Carry out the steps of one call for a sync caller and return its result."""
    body = next(steps)
    while True:
        try:
            outcome = _run(body, threads)
        except BaseException:
            steps.close()
            raise
        try:
            body = outcome.into(steps)
        except StopIteration as done:
            return done.value


async def adrive(steps: Steps, threads: Threads) -> Any:
    """Carry out the steps of one call for a caller that awaits it, and return its result."""
    body = next(steps)
    while True:
        try:
            outcome = await _arun(body, threads)
        except BaseException:
            steps.close()
            raise
        try:
            body = outcome.into(steps)
        except StopIteration as done:
            return done.value


def _run(body: Body, threads: Threads) -> Outcome:
    if body.manner == "coroutine":
        return threads.awaited(_awaited(body))
    if body.timeout is None:
        return _called(body)
    return threads.within(body, body.timeout)


async def _arun(body: Body, threads: Threads) -> Outcome:
    return await (_awaited(body) if body.manner == "coroutine" else threads.awaitable(body))


def _called(body: Body) -> Outcome:
    """Call a function; whatever it raises is its outcome, so that it gets past no thread and no future."""
    try:
        return Outcome(body.func(*body.values))
    except BaseException as error:
        return _raised(body, error)


def _raised(body: Body, error: BaseException) -> Outcome:
    """Return what a function raised; an interrupt means the process only where it is raised in the main thread."""
    return Outcome(error=failure(error, body.tool) if isinstance(error, KeyboardInterrupt) else error)


async def _awaited(body: Body) -> Outcome:
    """Await a coroutine function; a cancellation that its caller asked for passes through it."""
    import asyncio

    if body.timeout is not None:
        return await _awaited_within(body, body.timeout)
    try:
        return Outcome(await body.func(*body.values))
    except asyncio.CancelledError as error:
        if _was_asked_to_stop():
            raise
        return Outcome(error=error)
    except BaseException as error:
        return _raised(body, error)


async def _awaited_within(body: Body, seconds: float) -> Outcome:
    import asyncio

    task = asyncio.ensure_future(_awaited(attrs.evolve(body, timeout=None)))
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task}, timeout=GRACE)
        raise
    if done:
        return task.result()
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=GRACE)
    raise _timeout(body, stopped=bool(done))


def _was_asked_to_stop() -> bool:
    import asyncio

    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _timeout(body: Body, *, stopped: bool) -> CallTimeout:
    state = "was stopped" if stopped else "was left behind and may still run"
    text = f"did not end within {body.timeout:g} s and {state}"
    return CallTimeout(text, tool=body.tool, state="stopped" if stopped else "abandoned")


class Variables:
    """What the tools of one caller remember by name: plain values, copied in and out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, Any] = {}

    def get(self, name: str, default: Any) -> Any:
        """Return a copy of what is called *name*, or *default*."""
        value = self._values.get(name, default)
        return default if value is default else copied(value)

    def set(self, name: str, value: object) -> None:
        """Call a copy of *value* by *name*; a `CoercionError` where it is no plain value."""
        self._values[name] = _plain_copy(value)

    def update(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Set *name* to what *change* makes of it. It is called again where somebody else was quicker."""
        while True:
            old = self._values.get(name)
            new = _plain_copy(change(copied(old)))
            with self._lock:
                if self._values.get(name) is old:
                    self._values[name] = new
                    return copied(new)


def _plain_copy(value: object) -> Any:
    walk = Walk(RESULT)
    plain = walk.limited(exact, ArgType.ANY, value, ROOT)
    if walk.noted:
        raise CoercionError(walk.problems, found=walk.noted)
    return plain


class CallRuntime:
    """The Runtime of one call; it is alive while ``_frame`` is set, and the line takes that away when the call ends."""

    __slots__ = ("_frame",)
    _frame: CallFrame | None

    def println(self, *values: object) -> None:
        """Write one line to the process's output, in one piece, control characters escaped."""
        self._alive()
        line = escaped(" ".join(map(str, values)))
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def get_var(self, name: str, default: Any = None) -> Any:
        """Return a copy of the variable *name*, or *default*."""
        return self._alive().engine.variables.get(name, default)

    def set_var(self, name: str, value: Any) -> None:
        """Set the variable *name* to a copy of *value*."""
        self._alive().engine.variables.set(name, value)

    def update_var(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Set the variable *name* to what *change* makes of its value, and return that."""
        return self._alive().engine.variables.update(name, change)

    def call_tool(self, name: str, args: Sequence[Any] = ()) -> Any:
        """Call another tool with arguments in order."""
        frame = self._alive()
        return frame.engine.call_within(frame, name, args, False)

    def call_tool_named(self, name: str, mapping: Mapping[str, Any]) -> Any:
        """Call another tool with arguments by name."""
        frame = self._alive()
        return frame.engine.call_within(frame, name, mapping, True)

    def _alive(self) -> CallFrame:
        if self._frame is None:
            raise CallError("the call has ended, and its runtime with it", code="runtime.closed")
        return self._frame


class Threads:
    """The threads of one engine: one that runs a loop, and some on which tools may wait. They start when needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: Any = None
        self._loop_thread: threading.Thread | None = None
        self._held = 0
        self._workers = 0
        self._free = threading.Semaphore(0)
        self._jobs: Any = None

    def awaited(self, coroutine: Coroutine[Any, Any, Outcome]) -> Outcome:
        """Run a coroutine to its end on the engine's own loop, whether or not a loop runs in this thread."""
        import asyncio

        if self._held or self._is_loop_thread():  # a coroutine tool has called another one, and waits for it
            with self._holding_loop():
                return self._on_own_thread(lambda: asyncio.run(coroutine))
        future = asyncio.run_coroutine_threadsafe(coroutine, self._running_loop())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def within(self, body: Body, seconds: float) -> Outcome:
        """Call a function on a thread of its own and wait for it no longer than *seconds*."""
        outcomes: list[Outcome] = []
        ended = threading.Event()

        def job() -> None:
            outcomes.append(_called(body))
            ended.set()

        with self._holding_loop():
            self._start(job)
            if not ended.wait(seconds):
                raise _timeout(body, stopped=False)
        return outcomes[0]

    async def awaitable(self, body: Body) -> Outcome:
        """Call a function on a thread while the loop of this one goes on."""
        import asyncio

        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()

        def job() -> None:
            outcome = _called(body)
            with suppress(RuntimeError):  # the loop has been closed, and nobody listens any more
                loop.call_soon_threadsafe(_settle, future, outcome)

        (self._submit if body.timeout is None else self._start)(job)
        done, _ = await asyncio.wait({future}, timeout=body.timeout)
        if not done:
            raise _timeout(body, stopped=False)
        return future.result()

    def close(self) -> None:
        """Stop the loop; threads that wait for a tool end with it."""
        with self._lock:
            loop, self._loop, self._loop_thread = self._loop, None, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _is_loop_thread(self) -> bool:
        return threading.current_thread() is self._loop_thread

    @contextmanager
    def _holding_loop(self) -> Iterator[None]:
        """Tell everybody that the loop stands still where it is its own thread that waits."""
        held = self._is_loop_thread()
        self._held += held
        try:
            yield
        finally:
            self._held -= held

    def _on_own_thread(self, run: Callable[[], Outcome]) -> Outcome:
        outcomes: list[Outcome] = []
        thread = self._start(lambda: outcomes.append(run()))
        thread.join()
        return outcomes[0]

    def _start(self, job: Callable[[], object]) -> threading.Thread:
        context = copy_context()
        thread = threading.Thread(target=context.run, args=(job,), name="neuroscript-tool", daemon=True)
        thread.start()
        return thread

    def _submit(self, job: Callable[[], object]) -> None:
        from queue import SimpleQueue

        with self._lock:
            if self._jobs is None:
                self._jobs = SimpleQueue()
            self._jobs.put((copy_context(), job))
            if not self._free.acquire(blocking=False) and self._workers < MOST_THREADS:
                self._workers += 1
                threading.Thread(target=self._work, args=(self._jobs,), name="neuroscript-worker", daemon=True).start()

    def _work(self, jobs: Any) -> None:
        """Do jobs until there is none for a while; ``_free`` counts the workers that wait for one."""
        from queue import Empty

        while True:
            try:
                context, job = jobs.get_nowait()
            except Empty:
                self._free.release()
                try:
                    context, job = jobs.get(timeout=IDLE)
                except Empty:
                    if self._may_leave(jobs):
                        return
                    continue
            context.run(job)

    def _may_leave(self, jobs: Any) -> bool:
        with self._lock:
            if not jobs.empty():  # one came in between, and counts on this worker
                return False
            self._workers -= 1
            self._free.acquire(blocking=False)
            return True

    def _running_loop(self) -> Any:
        import asyncio

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._loop_thread = threading.Thread(
                    target=_run_forever, args=(self._loop,), name="neuroscript-loop", daemon=True
                )
                self._loop_thread.start()
            return self._loop


def _settle(future: Any, outcome: Outcome) -> None:
    if not future.done():
        future.set_result(outcome)


def _run_forever(loop: Any) -> None:
    import asyncio

    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()
