"""Engines with a few tools."""

from __future__ import annotations

from typing import Any

from neuroscript import (
    Engine,
    Toolset,
)


def tools_of(**functions: Any) -> Toolset:
    """Return a toolset ``g`` read from the annotations of these functions."""
    tools = Toolset("g")
    for name, func in functions.items():
        tools.tool(name=name)(func)
    return tools


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def engine_of(tools: Toolset | None = None, **options: Any) -> Engine:
    """Return an engine with these tools."""
    return Engine(toolsets=[tools or tools_of(add=add)], plugins="none", **options)
