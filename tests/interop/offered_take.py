"""A tool that notes what has arrived, for adapters that hand functions of their own the same arguments."""

from __future__ import annotations

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
    """Return an engine with ``shop.take``, and nothing seen yet."""
    SEEN.clear()
    shop = Toolset("shop")
    shop.tool(policy=needs or ToolPolicy())(take)
    return Engine(toolsets=[shop], plugins="none", **options)
