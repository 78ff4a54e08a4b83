"""An async reader of streams."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any


async def gathered(items: AsyncIterator[Any], most: int = 1000) -> list[Any]:
    """Read a stream to its end, or close it after *most* items."""
    found: list[Any] = []
    async for item in items:
        found.append(item)
        if len(found) == most:
            await items.aclose()  # type: ignore[attr-defined]
            break
    return found
