"""Sync and async calls of an engine, with timeouts and cancellation."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import time
from typing import Any

import pytest
from tests.engine.simple_engines import add, engine_of, tools_of

from neuroscript import (
    CallError,
    CallTimeout,
    Runtime,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
    tool,
)

WAITS = ToolPolicy(effects=("reads",))


# Sync and async


async def slow(rt: Runtime, a: int) -> int:
    """Wait a moment."""
    await asyncio.sleep(0.01)
    return a


def test_coroutine_tool_is_called_from_sync_code() -> None:
    """It runs on the engine's own loop, which starts on demand."""
    with engine_of(tools_of(slow=slow)) as engine:
        assert [engine.call("g.slow", ("1",)), engine.call_named("g.slow", {"a": 2})] == [1, 2]
        assert engine.execute(ToolCall("g.slow", {"a": "3"})).value == 3


def test_coroutine_tool_is_called_from_sync_code_inside_a_running_loop() -> None:
    """The call blocks the caller's loop but succeeds."""

    async def main() -> int:
        result: int = engine.call("g.slow", (5,))
        return result

    with engine_of(tools_of(slow=slow)) as engine:
        assert asyncio.run(main()) == 5


def test_coroutine_tool_may_call_another_one() -> None:
    """The nested calls start on the engine's loop, several levels deep."""

    async def outer(rt: Runtime, depth: int) -> int:
        await asyncio.sleep(0)
        inner: int = rt.call_tool("g.outer", (depth - 1,)) if depth else 0
        return inner + 1

    with engine_of(tools_of(outer=outer)) as engine:
        assert engine.call("g.outer", (5,)) == 6
        assert asyncio.run(engine.acall("g.outer", (5,))) == 6


def test_coroutine_tool_may_reach_another_one_through_a_thread() -> None:
    """The engine's loop is blocked while its thread waits, so the inner call must not need it."""
    tools = tools_of(slow=slow)

    @tools.tool(policy=ToolPolicy(timeout=5))
    def between(rt: Runtime) -> int:
        """Call a coroutine tool from a thread of one's own."""
        result: int = rt.call_tool("g.slow", (7,))
        return result

    @tools.tool()
    async def outer(rt: Runtime) -> int:
        """Call a tool that has a time limit."""
        await asyncio.sleep(0)
        result: int = rt.call_tool("g.between")
        return result

    with engine_of(tools) as engine:
        assert engine.call("g.outer") == 7


def test_acall_returns_what_call_returns() -> None:
    """Results and errors are equal for plain, waiting and coroutine tools."""
    tools = tools_of(add=add, slow=slow)

    @tools.tool(policy=WAITS)
    def waiting(a: int) -> int:
        """Wait for something."""
        return 10 // a

    async def both(name: str, given: Any) -> list[Any]:
        named = isinstance(given, dict)
        ways = (engine.call_named, engine.acall_named) if named else (engine.call, engine.acall)
        outcomes = []
        for way in ways:
            try:
                answered = way(name, given)
                outcomes.append(await answered if asyncio.iscoroutine(answered) else answered)
            except CallError as error:
                outcomes.append((type(error), str(error)))
        return outcomes

    with engine_of(tools) as engine:
        for name, given in (
            ("g.add", ("1", 2)),
            ("g.add", {"a": "x"}),
            ("g.slow", ("1",)),
            ("g.slow", {"a": "x"}),
            ("g.waiting", {"a": "5"}),
            ("g.waiting", (0,)),
            ("g.nothing", ()),
        ):
            first, second = asyncio.run(both(name, given))

            assert first == second


def test_waiting_tool_does_not_block_the_loop() -> None:
    """It runs on a thread, with the caller's context variables."""
    name = contextvars.ContextVar("name", default="")
    started = threading.Event()
    release = threading.Event()
    tools = Toolset("g")

    @tools.tool(policy=WAITS)
    def wait() -> str:
        """Wait for a word."""
        started.set()
        release.wait(10)
        return name.get()

    async def main() -> Any:
        name.set("caller")
        task = asyncio.create_task(engine.acall("g.wait"))
        while not started.is_set():
            await asyncio.sleep(0.001)
        release.set()
        return await task

    with engine_of(tools) as engine:
        assert asyncio.run(main()) == "caller"


class Unusual(BaseException):
    """An exception outside ``Exception`` and the engine's errors."""


@pytest.mark.parametrize("raised", [StopIteration, StopAsyncIteration, SystemExit, asyncio.CancelledError, Unusual])
@pytest.mark.parametrize("manner", ["plain", "waiting", "coroutine"])
def test_no_exception_of_a_tool_hangs_or_kills_its_awaiting_caller(raised: type[BaseException], manner: str) -> None:
    """StopIteration in a future would hang its caller, and SystemExit in a task would end the loop."""
    tools = Toolset("g")

    def fail() -> None:
        """Fail."""
        raise raised

    async def afail() -> None:
        """Fail."""
        raise raised

    tools.tool(name="fail", policy=WAITS if manner == "waiting" else ToolPolicy())(
        afail if manner == "coroutine" else fail
    )

    async def main() -> Any:
        with pytest.raises(ToolFailed) as caught:
            await asyncio.wait_for(engine.acall("g.fail"), 5)
        return caught.value

    with engine_of(tools) as engine:
        turned = manner == "coroutine" and raised in (StopIteration,)  # Python does this itself
        name = "RuntimeError" if turned else raised.__name__

        assert f"g.fail: the tool failed ({name})" == str(asyncio.run(main()))


@pytest.mark.parametrize("manner", ["waiting", "timed", "coroutine"])
def test_interrupt_raised_by_a_tool_on_another_thread_is_a_failure(manner: str) -> None:
    """Only an interrupt of the main thread ends the program."""
    tools = Toolset("g")

    def fail() -> None:
        """Fail."""
        raise KeyboardInterrupt

    async def afail() -> None:
        """Fail."""
        raise KeyboardInterrupt

    policy = {"waiting": WAITS, "timed": ToolPolicy(timeout=30)}.get(manner, ToolPolicy())
    tools.tool(name="fail", policy=policy)(afail if manner == "coroutine" else fail)

    with engine_of(tools) as engine, pytest.raises(ToolFailed) as caught:
        asyncio.run(engine.acall("g.fail")) if manner == "waiting" else engine.call("g.fail")

    assert "g.fail: the tool failed (KeyboardInterrupt)" == str(caught.value)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_exit_in_a_task_of_a_tool_is_a_tool_failure(error: type[BaseException]) -> None:
    """asyncio would let it end the whole loop, which other calls use."""
    tools = Toolset("g")

    async def fail() -> None:
        raise error

    loops: set[threading.Thread] = set()

    @tools.tool()
    async def within() -> None:
        """Fail in a task."""
        loops.add(threading.current_thread())
        await asyncio.create_task(fail())

    @tools.tool()
    async def one() -> int:
        """Return 1."""
        return 1

    with engine_of(tools) as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call("g.within")

        assert f"g.within: the tool failed ({error.__name__})" == str(caught.value)
        assert 1 == engine.call("g.one")
        (loop,) = loops
    loop.join(10)
    assert not loop.is_alive()


def test_requested_cancellation_propagates() -> None:
    """It reaches the tool, whose finally blocks run, and its Runtime stops working."""
    ended: list[Any] = []

    async def forever(rt: Runtime) -> None:
        """Wait forever."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(rt)

    async def main() -> None:
        task = asyncio.create_task(engine.acall("g.forever"))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with engine_of(tools_of(forever=forever)) as engine:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(main())

    (rt,) = ended
    with pytest.raises(CallError):
        rt.get_var("x")


def test_cancelled_error_of_a_tool_is_a_failure_outside_a_task() -> None:
    """A framework may run the steps of a coroutine itself, in a callback of its event loop."""

    async def cancelled(rt: Runtime) -> None:
        raise asyncio.CancelledError

    found: list[BaseException] = []

    def step() -> None:
        try:
            engine.acall("g.cancelled").send(None)
        except BaseException as error:
            found.append(error)

    async def main() -> None:
        asyncio.get_running_loop().call_soon(step)
        await asyncio.sleep(0.01)

    with engine_of(tools_of(cancelled=cancelled)) as engine:
        asyncio.run(main())

    assert [(type(each), str(each)) for each in found] == [
        (ToolFailed, "g.cancelled: the tool failed (CancelledError)")
    ]


def test_coroutine_tool_is_stopped_at_its_timeout() -> None:
    """It is cancelled, and its finally blocks run."""
    ended: list[int] = []
    tools = Toolset("g")

    @tools.tool(policy=ToolPolicy(timeout=0.05))
    async def forever() -> None:
        """Wait forever."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    with engine_of(tools) as engine:
        for run in (lambda: engine.call("g.forever"), lambda: asyncio.run(engine.acall("g.forever"))):
            with pytest.raises(CallTimeout) as caught:
                run()

            assert "g.forever: did not end within 0.05 s and was stopped" == str(caught.value)
            assert ("stopped", "call.timeout", "later") == (caught.value.state, caught.value.code, caught.value.retry)
    assert ended == [1, 1]


def test_sync_tool_is_abandoned_at_its_timeout() -> None:
    """A thread cannot be stopped: the caller returns, and the Runtime stops working."""
    release = threading.Event()
    kept: list[Any] = []
    tools = Toolset("g")

    @tools.tool(policy=ToolPolicy(timeout=0.05))
    def forever(rt: Runtime) -> None:
        """Wait forever."""
        kept.append(rt)
        release.wait(30)

    with engine_of(tools) as engine:
        for run in (lambda: engine.call("g.forever"), lambda: asyncio.run(engine.acall("g.forever"))):
            with pytest.raises(CallTimeout) as caught:
                run()

            assert "g.forever: did not end within 0.05 s and was abandoned and may still run" == str(caught.value)
            assert caught.value.state == "abandoned"
            with pytest.raises(CallError) as refused:
                kept[-1].set_var("x", 1)
            assert (refused.value.code, refused.value.retry) == ("runtime.closed", "never")
    release.set()


def test_tool_that_ends_in_time_is_unaffected_by_its_timeout() -> None:
    """Its result and error are the same as without a timeout."""
    tools = Toolset("g")

    @tools.tool(policy=ToolPolicy(timeout=30))
    def quick(a: int) -> int:
        """Divide."""
        return 10 // a

    @tools.tool(policy=ToolPolicy(timeout=30))
    async def aquick(a: int) -> int:
        """Divide."""
        return 10 // a

    with engine_of(tools) as engine:
        for name in ("g.quick", "g.aquick"):
            assert [engine.call(name, (5,)), asyncio.run(engine.acall(name, (5,)))] == [2, 2]
            with pytest.raises(ToolFailed):
                engine.call(name, (0,))


def test_many_awaited_calls_lose_no_result_and_leave_no_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There are more calls than threads; idle threads end on their own."""
    monkeypatch.setattr("neuroscript.calls.threads.IDLE_SECONDS", 0.2)  # seconds
    tools = Toolset("g")

    @tools.tool(policy=WAITS)
    def waiting(a: int) -> int:
        """Wait a moment."""
        time.sleep(0.001)
        return a

    async def main() -> list[Any]:
        return await asyncio.gather(*(engine.acall("g.waiting", (index,)) for index in range(1000)))

    before = threading.active_count()
    with engine_of(tools) as engine:
        assert asyncio.run(main()) == list(range(1000))
        assert threading.active_count() - before <= 64
    deadline = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_closed_engine_refuses_calls() -> None:
    tools = tools_of(add=add, slow=slow)
    with engine_of(tools) as engine:
        assert engine.call("g.add", (1, 2)) == 3.0
        assert engine.call("g.slow", (1,)) == 1

    for run in (
        lambda: engine.call("g.add", (1, 2)),
        lambda: engine.call_named("g.add", {}),
        lambda: asyncio.run(engine.acall("g.add", (1, 2))),
    ):
        with pytest.raises(CallError) as caught:
            run()

        assert ("the engine is closed", "engine.closed", "never") == (
            str(caught.value),
            caught.value.code,
            caught.value.retry,
        )
    result = engine.execute(ToolCall("g.add"))
    assert (result.error.code, result.error.retry) == ("engine.closed", "never")  # type: ignore[union-attr]
    engine.close()


def test_awaited_calls_one_after_the_other_share_threads() -> None:
    before = set(threading.enumerate())
    started: set[threading.Thread] = set()
    tools = Toolset("g")
    tools.add(ToolSpec("t", "g"), lambda rt: started.update(threading.enumerate()), ToolPolicy(blocking=True))

    async def main() -> None:
        for _ in range(20):
            await engine.acall("g.t")
            await asyncio.sleep(0.002)

    with engine_of(tools) as engine:
        asyncio.run(main())

    assert 1 <= len(started - before) <= 10


def test_engine_is_an_async_context_manager() -> None:
    async def main() -> Any:
        async with engine_of() as engine:
            return await engine.acall("g.add", (1, 2))

    assert asyncio.run(main()) == 3.0


def test_unreferenced_engine_is_collected() -> None:
    """No global refers to it, and the thread with its loop ends too."""
    import weakref

    engine = engine_of()
    engine.register(tool(slow, group="g"))
    engine.call("g.add", (1, 2))
    engine.call("g.slow", (1,))
    thread = engine._shared.threads.loop().thread
    gone = weakref.ref(engine)
    del engine
    gc.collect()

    assert gone() is None
    thread.join(10)
    assert not thread.is_alive()


def test_calls_continue_while_tools_are_registered() -> None:
    """A call sees a complete snapshot, before or after the registration."""
    engine = engine_of()
    failures: list[BaseException] = []

    def calling() -> None:
        try:
            for _ in range(3000):
                assert engine.call("G.add", (1, 2)) == 3.0
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=calling) for _ in range(4)]
    for thread in threads:
        thread.start()
    for index in range(200):
        engine.register(tools_of(**{f"new{index}": add}))
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(engine.tools) == 201
