"""Threads for slow work: pages need none of them."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Timer, active_count

import pytest
from starlette.testclient import TestClient
from tests.console.page_client import BASE, PageClient

from neuroscript import Engine, Runtime, ToolPolicy, Toolset
from neuroscript.console import app, work_threads
from neuroscript.console.work_threads import WorkThreads


def test_slow_tools_leave_the_threads_of_pages_free() -> None:
    """A tool that does not wait for anything, so that it needs a thread of its own, can still take long."""
    released, tools = Event(), Toolset("slow")

    @tools.tool(policy=ToolPolicy(effects=("pure",)))
    def think(rt: Runtime) -> bool:
        """Think."""
        return released.wait(60)

    busy = ThreadPoolExecutor()._max_workers + 1
    with (
        Engine(plugins=(), toolsets=[tools]) as engine,
        TestClient(application := app(engine), base_url=BASE, follow_redirects=False) as client,
    ):
        browsers = [PageClient.of(application, client)]
        late = Timer(30, released.set)
        late.start()
        for number in range(busy):
            if number % 16 == 15:
                client.cookies.clear()
                browsers.append(PageClient.of(application, client))
            assert browsers[-1].post("/tools/slow.think/run", **{"$do": "run"}).status_code == 303
        page = browsers[-1].get("/tools")
        was_released = released.is_set()
        released.set()
        late.cancel()

    assert "slow.think" in page
    assert not was_released


def test_slow_tool_of_a_plan_does_not_stop_the_console(tmp_path: Path) -> None:
    """The run has an event loop of its own, because a tool that is pure runs on the loop of its caller."""
    released, tools = Event(), Toolset("slow")

    @tools.tool(policy=ToolPolicy(effects=("pure",)))
    def think(rt: Runtime) -> bool:
        """Think."""
        return released.wait(60)

    (tmp_path / "think.toml").write_text('name = "think"\n[nodes.a]\ntool = "slow.think"\n')
    with (
        Engine(plugins=(), toolsets=[tools]) as engine,
        TestClient(application := app(engine, plans=tmp_path), base_url=BASE, follow_redirects=False) as client,
    ):
        browser = PageClient.of(application, client)
        digest = re.search('name="digest" value="([^"]+)"', browser.get("/plans/files/think.toml"))
        assert digest is not None
        late = Timer(30, released.set)
        late.start()
        run = browser.post("/plans/files/think.toml/run", digest=digest[1], **{"$do": "run"}).headers["location"]
        pages = [browser.get(run), browser.get("/tools")]
        was_released = released.is_set()
        released.set()
        late.cancel()
        (activity,) = next(iter(application.console.visitors)).activities
        assert client.portal is not None
        client.portal.call(activity.wait)

    assert "slow.think" in pages[0]
    assert not was_released
    assert "succeeded" in activity.events[-1].html


def test_cancelled_coroutine_of_a_thread_is_cancelled() -> None:
    """The caller continues when it has ended."""
    steps = []

    async def begin() -> None:
        try:
            steps.append("began")
            await asyncio.sleep(60)
        finally:
            steps.append("cancelled")

    async def work() -> None:
        running = asyncio.create_task(WorkThreads().run_async(begin))
        while not steps:
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        steps.append("continued")

    asyncio.run(work())

    assert steps == ["began", "cancelled", "continued"]


def test_number_of_threads_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelled work continues until it returns, and is counted until then."""
    monkeypatch.setattr(work_threads, "MAX_THREADS", 2)

    async def work() -> tuple[int, bool, list[bool]]:
        threads, released, before = WorkThreads(), Event(), active_count()
        running = [asyncio.create_task(threads.run(released.wait, 60)) for _ in range(4)]
        await asyncio.sleep(0)
        running.pop().cancel()
        running.pop(0).cancel()
        await asyncio.sleep(0)
        started, is_third_done = active_count() - before, running[1].done()
        released.set()
        return started, is_third_done, await asyncio.gather(*running)

    assert asyncio.run(work()) == (2, False, [True, True])


def test_exception_of_the_work_reaches_its_caller() -> None:
    """As if the work had been awaited."""
    with pytest.raises(ZeroDivisionError):
        asyncio.run(WorkThreads().run(lambda: 1 // 0))
