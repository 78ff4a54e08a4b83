"""Timeouts, cancellation and closing an engine: their effects on a call and on its tool."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import pytest

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CallError,
    CallTimeout,
    Engine,
    ExecutionPolicy,
    Host,
    LimitError,
    MemoryAudit,
    Runtime,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
)
from neuroscript.calls.steps import Invocation
from neuroscript.calls.threads import MAX_THREADS, Job, Threads


def engine_of(**funcs: Callable[..., Any]) -> Engine:
    """Return an engine with a tool ``g.NAME`` for each function, which takes only the Runtime."""
    tools = Toolset("g")
    for name, func in funcs.items():
        tools.add(ToolSpec(name, "g"), func)
    return Engine(toolsets=[tools], plugins="none")


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """An event for which a tool can wait; it is set when the test ends."""
    event = threading.Event()
    yield event
    event.set()


def until(condition: Callable[[], Any], seconds: float = 10.0) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


# Timeouts of a call


@pytest.mark.parametrize("door", ["call", "call_named", "acall", "acall_named", "execute", "stream", "astream"])
def test_each_entry_point_takes_a_timeout(never: threading.Event, door: str) -> None:
    """The caller returns; a sync tool is abandoned, and its Runtime stops working."""
    kept: list[Runtime] = []

    def wait(rt: Runtime) -> None:
        kept.append(rt)
        never.wait()

    engine = engine_of(wait=wait)

    async def awaited() -> Any:
        match door:
            case "acall":
                return await engine.acall("g.wait", timeout=0.1)
            case "acall_named":
                return await engine.acall_named("g.wait", {}, timeout=0.1)
            case _:
                return [item async for item in engine.astream("g.wait", timeout=0.1)]

    def called() -> Any:
        match door:
            case "call":
                return engine.call("g.wait", timeout=0.1)
            case "call_named":
                return engine.call_named("g.wait", {}, timeout=0.1)
            case "execute":
                raise engine.execute(ToolCall("g.wait"), timeout=0.1).error  # type: ignore[misc]
            case "stream":
                return [*engine.stream("g.wait", timeout=0.1)]
            case _:
                return asyncio.run(awaited())

    with pytest.raises(CallTimeout, match=r"g\.wait: did not end within 0\.1 s and was abandoned") as caught:
        called()

    assert caught.value.state == "abandoned"
    assert not never.is_set()
    assert kept[0].cancelled
    with pytest.raises(CallError) as refused:
        kept[0].set_var("x", 1)
    assert (refused.value.code, refused.value.retry) == ("runtime.closed", "never")


@pytest.mark.parametrize(
    "timeout", [0, -1, float("nan"), float("inf"), pytest.param(10**400, id="huge"), "1", True, None]
)
def test_timeout_is_a_positive_number_of_seconds(timeout: Any) -> None:
    """None means no limit; other values are refused before the tool runs."""
    engine = engine_of(t=lambda rt: 1)

    if timeout is None:
        assert engine.call("g.t", timeout=None) == 1
    else:
        with pytest.raises(ArgumentError, match="timeout: expected a positive number of seconds, got"):
            engine.call("g.t", timeout=timeout)


def test_shorter_timeout_applies(never: threading.Event) -> None:
    """The candidates are the tool's policy and the caller's timeout."""
    tools = Toolset("g")
    tools.add(ToolSpec("t", "g"), lambda rt: never.wait(), ToolPolicy(timeout=0.05))
    engine = Engine(toolsets=[tools], plugins="none")

    with pytest.raises(CallTimeout, match=r"within 0\.05 s"):
        engine.call("g.t", timeout=60)


def through(rt: Runtime, path: list[str]) -> Any:
    """Call the first tool of a path with the rest of the path."""
    first, *rest = path
    return rt.call_tool(f"g.{first}", [rest] if rest else [])


def test_tool_knows_its_deadline() -> None:
    """A nested tool knows it too; without a timeout it is None."""
    tools = Toolset("g")
    tools.add(ToolSpec("t", "g"), lambda rt: rt.deadline)
    tools.add(ToolSpec("long", "g"), lambda rt: rt.deadline, ToolPolicy(timeout=600))
    tools.add(ToolSpec("through", "g", (ArgSpec("path", ArgType.SLICE_STRING),)), through)
    engine = Engine(toolsets=[tools], plugins="none")
    now = time.monotonic()

    for path in (["t"], ["through", "t"], ["through", "through", "long"]):
        assert now + 59 < engine.call("g.through", [path], timeout=60) < now + 70
    assert engine.call("g.through", [["t"]]) is None
    assert now + 590 < engine.call("g.through", [["long"]])


def test_nested_tool_of_an_abandoned_call_can_do_nothing(never: threading.Event) -> None:
    """Its Runtime stops working with that of the outer tool."""
    codes: list[tuple[str, str]] = []

    def inner(rt: Runtime) -> None:
        never.wait()
        try:
            rt.set_var("x", 1)
        except CallError as error:
            codes.append((error.code, error.retry))

    engine = engine_of(inner=inner, outer=lambda rt: rt.call_tool("g.inner"))

    with pytest.raises(CallTimeout):
        engine.call("g.outer", timeout=0.1)
    never.set()

    until(lambda: codes)
    assert codes == [("runtime.closed", "never")]


def test_abandoned_tool_writes_no_file(never: threading.Event, tmp_path: Path) -> None:
    """Its Runtime and everything obtained from it stop working while it still waits."""
    refused: list[tuple[str, str]] = []
    done = threading.Event()

    def write(rt: Runtime) -> None:
        files = rt.fs
        never.wait()
        for use in (lambda: files.write_text("a", "late"), lambda: rt.fs.write_text("a", "late")):
            try:
                use()
            except CallError as error:
                refused.append((error.code, error.retry))
        done.set()

    tools = Toolset("g")
    tools.add(ToolSpec("write", "g"), write, ToolPolicy(capabilities=("fs:write:a",)))
    policy = ExecutionPolicy(grants=["fs:write:*"])
    engine = Engine(toolsets=[tools], plugins="none", host=Host(sandbox_dir=tmp_path), policy=policy)

    with pytest.raises(CallTimeout) as caught:
        engine.call("g.write", timeout=0.2)

    assert (caught.value.state, never.is_set(), done.is_set()) == ("abandoned", False, False)
    never.set()
    assert done.wait(10)
    assert refused == [("runtime.closed", "never")] * 2
    assert [*tmp_path.iterdir()] == []


def test_long_sync_tool_can_check_for_cancellation(never: threading.Event) -> None:
    """It reads ``cancelled`` between two pieces of work, and ends."""
    ended = threading.Event()

    def work(rt: Runtime) -> None:
        while not rt.cancelled:
            time.sleep(0.001)
        ended.set()

    engine = engine_of(work=work)

    with suppress(CallTimeout):  # which of the two notices the timeout first is not specified
        engine.call("g.work", timeout=0.05)

    assert ended.wait(10)
    until(lambda: engine._world.threads.abandoned == 0)


def test_abandoned_threads_are_limited(never: threading.Event) -> None:
    """The limit is eight; further calls that might be abandoned are refused until one of them ends."""
    engine = engine_of(wait=lambda rt: never.wait(), quick=lambda rt: 1)
    for _ in range(8):
        with pytest.raises(CallTimeout):
            engine.call("g.wait", timeout=0.01)

    for refused in (
        lambda: engine.call("g.wait", timeout=0.01),
        lambda: asyncio.run(engine.acall("g.quick", timeout=1)),
    ):
        with pytest.raises(LimitError) as caught:
            refused()
        assert (caught.value.code, caught.value.retry) == ("limit.abandoned", "later")
    assert engine.call("g.quick") == 1
    never.set()
    until(lambda: engine._world.threads.abandoned == 0)
    assert engine.call("g.quick", timeout=10) == 1


@pytest.mark.parametrize("door", ["stream", "astream"])
def test_stream_without_a_free_thread_fails_and_is_recorded(never: threading.Event, door: str) -> None:
    """The error and the record contain its progress, and its generator is closed even if it is referenced elsewhere."""
    audit, kept = MemoryAudit(), []

    def numbers(rt: Runtime) -> Iterator[int]:
        kept.append(each for each in range(5))
        return kept[0]

    toolset = Toolset("g")
    toolset.add(ToolSpec("numbers", "g", stream=True), numbers)
    toolset.add(ToolSpec("wait", "g"), lambda rt: never.wait())
    engine = Engine(toolsets=[toolset], plugins="none", audit=audit)

    def fill() -> None:
        for _ in range(8):
            with pytest.raises(CallTimeout):
                engine.call("g.wait", timeout=0.01)

    async def read() -> None:
        items = engine.astream("g.numbers", timeout=20)
        await anext(items)
        fill()
        await anext(items)

    with pytest.raises(LimitError) as caught:
        if door == "astream":
            asyncio.run(read())
        items = engine.stream("g.numbers", timeout=20)
        next(items)
        fill()
        next(items)

    record = audit.records[-1]
    assert "g.numbers: 8 abandoned calls still run (after 1 item)" == str(caught.value)
    assert ("limit.abandoned", 1) == (record.code, record.spent["items"])
    assert kept[0].gi_frame is None


def test_cancelled_call_without_a_thread_never_starts(never: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its caller already received the timeout or the cancellation."""
    monkeypatch.setattr("neuroscript.calls.threads.MAX_THREADS", 1)
    began, done = threading.Event(), []

    def hold(rt: Runtime) -> None:
        began.set()
        never.wait()

    tools = Toolset("g")
    for name, func in {
        "hold": hold,
        "note": lambda rt: done.append("note"),
        "last": lambda rt: done.append("last"),
    }.items():
        tools.add(ToolSpec(name, "g"), func, ToolPolicy(blocking=True))
    engine = Engine(toolsets=[tools], plugins="none")

    async def calls() -> None:
        first = asyncio.ensure_future(engine.acall("g.hold"))
        await asyncio.to_thread(began.wait, 10)
        given_up, last = (asyncio.ensure_future(engine.acall(name)) for name in ("g.note", "g.last"))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait({given_up})
        never.set()
        await asyncio.gather(first, last)

    asyncio.run(calls())

    assert ["last"] == done
    assert 0 == engine._world.threads.abandoned


def test_cancelled_await_abandons_a_sync_tool(never: threading.Event) -> None:
    """The tool cannot be stopped, but it is notified, counted, and its Runtime is revoked."""
    started = threading.Event()
    kept: list[Runtime] = []

    def wait(rt: Runtime) -> None:
        kept.append(rt)
        started.set()
        never.wait()

    tools = Toolset("g")
    tools.add(ToolSpec("wait", "g"), wait, ToolPolicy(blocking=True))
    engine = Engine(toolsets=[tools], plugins="none")

    async def main() -> None:
        task = asyncio.ensure_future(engine.acall("g.wait"))
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert kept[0].cancelled
    assert engine._world.threads.abandoned == 1


def test_interrupt_frees_the_waiting_caller(never: threading.Event) -> None:
    """The interrupt propagates to the caller; the tool is abandoned and counted."""
    kept: list[Runtime] = []

    def wait(rt: Runtime) -> None:
        kept.append(rt)
        never.wait()

    def interrupt() -> None:
        until(lambda: kept)
        time.sleep(0.05)  # until the main thread waits
        os.kill(os.getpid(), signal.SIGINT)

    engine = engine_of(wait=wait)
    threading.Thread(target=interrupt).start()

    with pytest.raises(KeyboardInterrupt):
        engine.call("g.wait", timeout=60)

    assert kept[0].cancelled
    assert engine._world.threads.abandoned == 1


def test_timeout_race_has_one_outcome() -> None:
    """The outcome is the result or the timeout, and no thread remains counted."""
    tools = Toolset("g")
    tools.add(
        ToolSpec("t", "g", (ArgSpec("s", ArgType.FLOAT),), return_type=ArgType.INT), lambda rt, s: time.sleep(s) or 1
    )
    engine = Engine(toolsets=[tools], plugins="none")
    outcomes = {"done": 0, "late": 0}

    for index in range(400):
        try:
            assert engine.call("g.t", [0.002], timeout=0.0015 + index % 20 * 0.0001) == 1
            outcomes["done"] += 1
        except CallTimeout:
            outcomes["late"] += 1

    assert sum(outcomes.values()) == 400
    until(lambda: engine._world.threads.abandoned == 0)


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
    until(lambda: not engine._world.threads._loops)
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
        assert engine._world.threads.abandoned == 0
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
