"""A toolset whose tool has a timeout of its own."""

from __future__ import annotations

import time

from neuroscript import ToolPolicy, Toolset

own = Toolset("own")


@own.tool(policy=ToolPolicy(timeout=0.2))
def sleep(seconds: float) -> float:
    """Sleep."""
    time.sleep(seconds)
    return seconds
