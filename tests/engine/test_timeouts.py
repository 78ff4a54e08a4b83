"""Timeouts and cancellation of calls: their effects on a call and on its tool."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from tests.engine.waiting_tools import engine_of, until

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
    ToolPolicy,
    Toolset,
    ToolSpec,
)


@pytest.mark.parametrize("entry_point", ["call", "call_named", "acall", "acall_named", "execute", "stream", "astream"])
def test_each_entry_point_takes_a_timeout(never: threading.Event, entry_point: str) -> None:
    """The caller returns; a sync tool is abandoned, and its Runtime stops working."""
    kept: list[Runtime] = []

    def wait(rt: Runtime) -> None:
        kept.append(rt)
        never.wait()

    engine = engine_of(wait=wait)

    async def awaited() -> Any:
        match entry_point:
            case "acall":
                return await engine.acall("g.wait", timeout=0.1)
            case "acall_named":
                return await engine.acall_named("g.wait", {}, timeout=0.1)
            case _:
                return [item async for item in engine.astream("g.wait", timeout=0.1)]

    def called() -> Any:
        match entry_point:
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
    until(lambda: engine._shared.threads.abandoned == 0)


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
    until(lambda: engine._shared.threads.abandoned == 0)
    assert engine.call("g.quick", timeout=10) == 1


@pytest.mark.parametrize("entry_point", ["stream", "astream"])
def test_stream_without_a_free_thread_fails_and_is_recorded(never: threading.Event, entry_point: str) -> None:
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
        if entry_point == "astream":
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
    assert 0 == engine._shared.threads.abandoned


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
    assert engine._shared.threads.abandoned == 1


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
    assert engine._shared.threads.abandoned == 1


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
    until(lambda: engine._shared.threads.abandoned == 0)


# Threads of calls with a timeout


def thread_tools(never: threading.Event) -> Engine:
    """Return an engine with a tool that names its thread, one that sets a context variable, and one that never ends."""

    def mark(rt: Runtime) -> None:
        MARK.set("set by a tool")

    return engine_of(
        name=lambda rt: threading.get_ident(),
        mark=mark,
        read=lambda rt: MARK.get(),
        hang=lambda rt: never.wait(),
    )


MARK: ContextVar[str] = ContextVar("MARK", default="")


def test_calls_with_a_timeout_share_a_thread(never: threading.Event) -> None:
    engine = thread_tools(never)

    found = {engine.call("g.name", timeout=60) for _ in range(20)}

    assert len(found) < 5  # a thread that has not become idle yet takes no call
    assert threading.get_ident() not in found


def test_an_abandoned_thread_takes_no_further_call_until_it_ends(never: threading.Event) -> None:
    engine = thread_tools(never)
    first = engine.call("g.name", timeout=60)
    with pytest.raises(CallTimeout):
        engine.call("g.hang", timeout=0.05)

    second = engine.call("g.name", timeout=60)
    never.set()
    until(lambda: engine._shared.threads.abandoned == 0)
    assert first != second
    assert {engine.call("g.name", timeout=60) for _ in range(20)} & {first, second}


def test_context_variables_of_a_tool_do_not_reach_the_next_call(never: threading.Event) -> None:
    engine = thread_tools(never)
    engine.call("g.mark", timeout=60)

    assert engine.call("g.read", timeout=60) == ""
    token = MARK.set("set by the caller")
    try:
        assert engine.call("g.read", timeout=60) == "set by the caller"
    finally:
        MARK.reset(token)


def test_many_threads_call_with_a_timeout_at_once(never: threading.Event) -> None:
    """Every call has a thread of its own while it runs, and every result reaches its caller."""
    barrier = threading.Barrier(20)

    def meet(rt: Runtime, n: int) -> int:
        barrier.wait(20)
        return n

    tools = Toolset("g")
    tools.add(ToolSpec("meet", "g", (ArgSpec("n", ArgType.INT),), return_type=ArgType.INT), meet)
    with Engine(toolsets=[tools], plugins="none") as engine, ThreadPoolExecutor(20) as pool:
        for _ in range(5):
            assert [*pool.map(lambda n: engine.call("g.meet", [n], timeout=60), range(20))] == [*range(20)]


def test_idle_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuroscript.calls.threads.IDLE_SECONDS", 0.05)
    used: list[threading.Thread] = []
    engine = engine_of(note=lambda rt: used.append(threading.current_thread()))
    for _ in range(3):
        engine.call("g.note", timeout=60)
        used[-1].join(10)
        assert not used[-1].is_alive()

    assert not engine._shared.threads._idle


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_starts_its_own_threads(never: threading.Event) -> None:
    engine = thread_tools(never)
    engine.call("g.name", timeout=60)

    pid = os.fork()
    if pid == 0:
        try:
            engine.call("g.name", timeout=10)
            os._exit(0)
        finally:
            os._exit(1)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_an_interrupted_start_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread has its first job when it starts."""
    monkeypatch.setattr("neuroscript.calls.threads.IDLE_SECONDS", 0.05)
    engine, started = engine_of(rest=lambda rt: None), []
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        started.append(thread)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.call("g.rest", timeout=60)
    started[0].join(10)
    assert not started[0].is_alive()


def test_a_thread_whose_caller_was_interrupted_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller took the thread and gave it nothing."""
    monkeypatch.setattr("neuroscript.calls.threads.IDLE_SECONDS", 0.2)
    monkeypatch.setattr("neuroscript.calls.threads.LOST_SECONDS", 0.05)
    used: list[threading.Thread] = []
    engine = engine_of(note=lambda rt: used.append(threading.current_thread()))
    engine.call("g.note", timeout=60)
    idle = engine._shared.threads._idle
    until(lambda: idle)
    idle.pop()

    used[0].join(10)
    assert not used[0].is_alive()


def test_a_call_does_not_wait_for_the_finalizers_of_another_one(never: threading.Event) -> None:
    finalizing, end = threading.Event(), threading.Event()

    class Slow:
        def __del__(self) -> None:
            finalizing.set()
            end.wait(20)

    held = ContextVar[Any]("held")
    engine = engine_of(nap=lambda rt: time.sleep(0.2), name=lambda rt: threading.get_ident())

    def request() -> None:
        held.set(Slow())
        with suppress(CallTimeout):
            engine.call("g.nap", timeout=0.05)
        held.set(None)

    caller = threading.Thread(target=request)
    caller.start()
    caller.join()
    assert finalizing.wait(20)  # on the thread of the abandoned call
    try:
        assert engine.call("g.name", timeout=10)
    finally:
        end.set()


def test_the_error_of_an_abandoned_call_holds_no_result() -> None:
    class Result:
        """What the tool returns too late."""

    made: list[Any] = []

    def late(rt: Runtime) -> Any:
        time.sleep(0.1)
        result = Result()
        made.append(weakref.ref(result))
        return result

    engine = engine_of(late=late)
    error = engine.execute(ToolCall("g.late"), timeout=0.02).error
    assert isinstance(error, CallTimeout)
    error.__traceback__ = None
    until(lambda: engine._shared.threads.abandoned == 0)
    until(lambda: gc.collect() >= 0 and made[0]() is None)
