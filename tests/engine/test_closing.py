"""Closing an engine: running calls, idle threads and the end of the process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import pytest
from tests.engine.waiting_tools import engine_of, until

from neuroscript import (
    ArgSpec,
    ArgType,
    CallError,
    Engine,
    Runtime,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
)
from neuroscript.calls.steps import Invocation
from neuroscript.calls.threads import MAX_THREADS, Job, Threads

# Closing an engine


def in_thread(run: Callable[[], Any]) -> list[Any]:
    """Run a function on a thread, and return the list that will contain its result or error."""
    found: list[Any] = []

    def catch() -> None:
        try:
            found.append(run())
        except BaseException as error:
            found.append(error)

    threading.Thread(target=catch, daemon=True).start()
    return found


def test_close_waits_and_reports_abandoned_calls(never: threading.Event) -> None:
    """Five kinds of calls are in flight; some end within the grace period."""
    started = threading.Semaphore(0)

    def short(rt: Runtime) -> str:
        started.release()
        time.sleep(0.15)
        return "done"

    def long(rt: Runtime) -> None:
        started.release()
        never.wait()

    async def coroutine(rt: Runtime) -> str:
        started.release()
        await asyncio.sleep(0.15)
        return "done"

    async def forever(rt: Runtime) -> None:
        started.release()
        await asyncio.sleep(600)

    tools = Toolset("g")
    for func in (short, long, coroutine, forever):
        tools.add(ToolSpec(func.__name__, "g"), func)
    tools.add(ToolSpec("nested", "g"), lambda rt: rt.call_tool("g.short"))
    tools.add(ToolSpec("waiting", "g"), short, ToolPolicy(blocking=True))
    engine = Engine(toolsets=[tools], plugins="none")
    session = engine.session()
    ending = [
        in_thread(lambda: engine.call("g.short")),
        in_thread(lambda: session.call("g.nested")),
        in_thread(lambda: engine.call("g.coroutine")),
        in_thread(lambda: engine.call("g.short", timeout=60)),
        in_thread(lambda: asyncio.run(session.acall("g.waiting"))),
    ]
    staying = [
        in_thread(lambda: engine.call("g.long")),
        in_thread(lambda: engine.call("g.long", timeout=60)),
        in_thread(lambda: engine.call("g.forever")),
    ]
    for _ in range(8):
        assert started.acquire(timeout=10)

    left = engine.close(2)

    assert left == ("g.forever", "g.long", "g.long")
    assert ending == [["done"]] * 5
    until(lambda: staying[2])
    assert isinstance(staying[2][0], CallError) and (staying[2][0].code, staying[2][0].retry) == (
        "engine.closed",
        "never",
    )
    assert engine.close() == ()
    for caller in (engine, session):
        with pytest.raises(CallError) as caught:
            caller.call("g.short")
        assert (caught.value.code, caught.value.retry) == ("engine.closed", "never")


def test_endless_coroutine_tool_does_not_block_close() -> None:
    """The loop of the engine ends, and the caller receives an error."""
    started = threading.Event()

    async def stubborn(rt: Runtime) -> None:
        try:
            started.set()
            await asyncio.sleep(600)
        finally:
            await asyncio.sleep(600)

    engine = engine_of(stubborn=stubborn)
    outcome = in_thread(lambda: engine.call("g.stubborn"))
    assert started.wait(10)

    assert engine.close(0) == ("g.stubborn",)
    until(lambda: outcome)
    assert isinstance(outcome[0], CallError) and (outcome[0].code, outcome[0].retry) == ("engine.closed", "never")


def test_stream_of_a_closed_engine_ends() -> None:
    """The next item is refused, because its event loop is gone."""

    async def numbers(rt: Runtime) -> AsyncIterator[int]:
        for number in range(1000):
            yield number

    tools = Toolset("g")
    tools.add(ToolSpec("numbers", "g", return_type=ArgType.INT, stream=True), numbers)
    engine = Engine(toolsets=[tools], plugins="none")
    items = engine.stream("g.numbers")
    assert next(items) == 0

    assert engine.close(0) == ("g.numbers",)
    until(lambda: not engine._shared.threads._loops)
    with pytest.raises(CallError) as caught:
        list(items)

    assert (caught.value.code, caught.value.retry) == ("engine.closed", "never")


def test_closing_engine_refuses_new_calls_at_once(never: threading.Event) -> None:
    """While it waits for calls in flight, it refuses all new calls, including nested ones."""
    started = threading.Event()
    codes: list[tuple[str, str]] = []

    def outer(rt: Runtime) -> None:
        started.set()
        until(lambda: rt.cancelled)
        try:
            rt.call_tool("g.inner")
        except CallError as error:
            codes.append((error.code, error.retry))

    engine = engine_of(outer=outer, inner=lambda rt: 1)
    in_thread(lambda: engine.call("g.outer"))
    started.wait(10)

    assert engine.close(10) == ()
    assert codes == [("engine.closed", "never")]


def test_abandoned_call_loses_its_runtime(never: threading.Event) -> None:
    """This includes calls made directly on a thread of the host."""
    started = threading.Event()
    found: list[Any] = []

    def wait(rt: Runtime) -> Any:
        started.set()
        never.wait()
        found.append(rt.cancelled)
        return rt.get_var("x")

    engine = engine_of(wait=wait)
    outcome = in_thread(lambda: engine.call("g.wait"))
    started.wait(10)

    assert engine.close(0) == ("g.wait",)
    never.set()

    until(lambda: outcome)
    assert found == [True]
    assert isinstance(outcome[0], ToolFailed)


@pytest.mark.alone
def test_tool_that_closes_its_engine_does_not_wait_for_itself() -> None:
    """The call that runs ``close`` is not in flight."""
    engines: list[Engine] = []
    engine = engine_of(t=lambda rt: engines[0].close())
    engines.append(engine)
    started = time.monotonic()

    assert engine.call("g.t") == []  # no call was abandoned

    assert time.monotonic() - started < 4


def test_async_close_lets_the_loop_continue() -> None:
    """``async with`` waits for calls on the same loop, which need the loop to end."""

    async def slow(rt: Runtime) -> str:
        await asyncio.sleep(0.1)
        return "done"

    async def main() -> Any:
        async with engine_of(slow=slow) as engine:
            task = asyncio.ensure_future(engine.acall("g.slow"))
            await asyncio.sleep(0.01)
        return await task

    assert asyncio.run(main()) == "done"


# Idle threads


@pytest.mark.slow
def test_threads_of_cancelled_calls_end_when_idle() -> None:
    """Thousands of cancellations use at most 64 threads, which end while the engine is open."""

    async def main() -> None:
        for _ in range(60):
            tasks = [asyncio.create_task(engine.acall("g.nap")) for _ in range(50)]
            await asyncio.sleep(0.0005)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    before = threading.active_count()
    tools = Toolset("g")
    tools.add(ToolSpec("nap", "g"), lambda rt: time.sleep(0.001), ToolPolicy(blocking=True))
    with Engine(toolsets=[tools], plugins="none") as engine:
        asyncio.run(main())
        most = threading.active_count() - before

        until(lambda: threading.active_count() <= before, seconds=30)
        assert 1 <= most <= MAX_THREADS
        assert engine._shared.threads.abandoned == 0
        assert asyncio.run(engine.acall("g.nap")) is None


class PausingQueue(SimpleQueue[Any]):
    """A queue that pauses the first worker right after it found no work, and the others until then."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.meanwhile: Callable[[], None] | None = meanwhile
        self.taken, self.is_waited_for = threading.Event(), threading.Event()
        self.first: threading.Thread | None = None

    def get_nowait(self) -> Any:
        self.first = self.first or threading.current_thread()
        if threading.current_thread() is not self.first:
            self.taken.wait(10)
        try:
            return super().get_nowait()
        except Empty:
            meanwhile, self.meanwhile = self.meanwhile, None
            if meanwhile is not None:
                meanwhile()
            raise

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if threading.current_thread() is not self.first:
            self.is_waited_for.set()
        return super().get(block, timeout)


def test_call_taken_by_an_idle_thread_does_not_hide_a_later_call(never: threading.Event) -> None:
    """The thread that takes it counts as busy, so later calls get their own threads."""
    threads = Threads()
    running: list[int] = []

    def hold(number: int) -> None:
        running.append(number)
        queue.taken.set()
        never.wait()

    def submit(func: Callable[..., Any], *values: int) -> None:
        threads._submit(Job(threads, Invocation("g.hold", func, values, "waits")))

    queue = threads._jobs = PausingQueue(lambda: submit(hold, 1))
    submit(lambda: None)
    assert queue.is_waited_for.wait(10)  # the first thread has taken the call, and the second is idle
    for number in (2, 3, 4):
        submit(hold, number)

    until(lambda: len(running) == 4)
    assert sorted(running) == [1, 2, 3, 4]


# Many calls


def descriptors() -> int:
    opened = Path("/proc/self/fd")
    return len([*opened.iterdir()]) if opened.exists() else 0


@pytest.mark.slow
def test_ten_thousand_concurrent_calls_lose_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sync, waiting and async tools run together; afterwards the numbers of threads and descriptors are unchanged."""
    monkeypatch.setattr("neuroscript.calls.threads.IDLE_SECONDS", 0.2)  # seconds

    async def coroutine(rt: Runtime, n: int) -> int:
        await asyncio.sleep(0)
        return n

    tools = Toolset("g")
    arg = (ArgSpec("n", ArgType.INT),)
    tools.add(ToolSpec("plain", "g", arg), lambda rt, n: n)
    tools.add(ToolSpec("waits", "g", arg), lambda rt, n: n, ToolPolicy(blocking=True))
    tools.add(ToolSpec("coroutine", "g", arg), coroutine)
    names = ("g.plain", "g.waits", "g.coroutine")
    threads, files = threading.active_count(), descriptors()

    async def main() -> list[Any]:
        async with Engine(toolsets=[tools], plugins="none") as engine:
            return await asyncio.gather(*(engine.acall(names[n % 3], [n]) for n in range(10_000)))

    assert asyncio.run(main()) == list(range(10_000))
    until(lambda: threading.active_count() <= threads and descriptors() <= files, 30)


def test_process_exits_without_waiting_for_abandoned_tools() -> None:
    """Three tools sleep for ten minutes, and the process exits long before that."""
    program = """
        import asyncio, time
        from neuroscript import CallTimeout, Engine, ToolPolicy, ToolSpec, Toolset

        tools = Toolset("g")
        tools.add(ToolSpec("sleep", "g"), lambda rt: time.sleep(600), ToolPolicy(timeout=0.1, blocking=True))
        engine = Engine(toolsets=[tools], plugins="none")
        for call in (lambda: engine.call("g.sleep"), lambda: asyncio.run(engine.acall("g.sleep")),
                     lambda: [*engine.stream("g.sleep")]):
            try:
                call()
            except CallTimeout as error:
                print(error.state)
        print("end", flush=True)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["abandoned"] * 3 + ["end"], "")
