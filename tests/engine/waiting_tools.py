"""Engines with tools that wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from neuroscript import (
    Engine,
    Toolset,
    ToolSpec,
)


def engine_of(**funcs: Callable[..., Any]) -> Engine:
    """Return an engine with a tool ``g.NAME`` for each function, which takes only the Runtime."""
    tools = Toolset("g")
    for name, func in funcs.items():
        tools.add(ToolSpec(name, "g"), func)
    return Engine(toolsets=[tools], plugins="none")


def until(condition: Callable[[], Any], seconds: float = 10.0) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)
