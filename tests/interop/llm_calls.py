"""An engine and calls for the tests of the tools of ``llm``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuroscript import Engine, ToolPolicy, Toolset, from_function

GIF = b"GIF89a\x01\x00\x01\x00"


WRONG = (
    "Error: error coercion.format: count: expected int, got str (a string must be a decimal integer, such as 42). "
    "Fix the arguments and call again."
)
"""What a model reads where it has written no number."""


NOTHING = ToolPolicy()


def engine_of(*functions: Callable[..., Any], needs: ToolPolicy = NOTHING, **options: Any) -> Engine:
    """Return an engine whose tools are these functions, in the group ``g``."""
    tools = tuple(from_function(each, group="g", policy=needs) for each in functions)
    return Engine(toolsets=[Toolset("g", tools)], plugins="none", **options)


def times(text: str, count: int) -> str:
    """Repeat a string."""
    return text * count
