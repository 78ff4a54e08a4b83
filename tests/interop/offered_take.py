"""A tool that records its arguments, for adapters that pass the same arguments to native functions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from neuroscript import Engine, ToolPolicy, Toolset

SEEN: list[Any] = []
"""What the functions below were called with."""


def take(count: int, tags: list[str] | None = None) -> int:
    """Take things out of the shop.

    Args:
        count: How many.
        tags: What is written on them.
    """
    SEEN.append((count, tags))
    return count


def engine_of(needs: ToolPolicy | None = None, **options: Any) -> Engine:
    """Return an engine with ``shop.take`` and an empty record."""
    SEEN.clear()
    shop = Toolset("shop")
    shop.tool(policy=needs or ToolPolicy())(take)
    return Engine(toolsets=[shop], plugins="none", **options)


async def is_cancelled(calling: Callable[[Engine], Awaitable[Any]]) -> bool:
    """Return whether the task that calls ``slow.wait`` ends as cancelled; what the tool receives is in `SEEN`.

    Args:
        calling: Calls it through the adapter.
    """
    SEEN.clear()
    started, slow = asyncio.Event(), Toolset("slow")

    @slow.tool()
    async def wait() -> None:
        """Wait."""
        try:
            started.set()
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            SEEN.append("cancelled")
            raise

    with Engine(toolsets=[slow], plugins="none") as engine:
        task = asyncio.ensure_future(calling(engine))
        await asyncio.wait_for(started.wait(), 10)
        task.cancel()
        await asyncio.wait([task], timeout=10)
    return task.cancelled()
