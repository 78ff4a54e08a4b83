"""Tools of every kind, and engines with variables for their injected arguments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from neuroscript import (
    ArgSpec,
    ArgType,
    CallError,
    Engine,
    Example,
    Host,
    Runtime,
    Toolset,
    ToolSpec,
)


def sample() -> Toolset:
    """Return a set of tools with all kinds of functions, each of which gives back what it got."""
    tools = Toolset("crm")

    def find(rt: Runtime, tenant: str, name: str, limit: int) -> list[Any]:
        return [tenant, name, limit]

    tools.add(
        ToolSpec(
            "find",
            "crm",
            (
                ArgSpec("tenant", ArgType.STRING, min_length=2),
                ArgSpec("name", ArgType.STRING),
                ArgSpec("limit", ArgType.INT, default=10, minimum=1, maximum=99),
            ),
            return_type=ArgType.SLICE_ANY,
            examples=(
                Example(("acme", "x"), ["acme", "x", 10]),
                Example({"tenant": "acme", "name": "x", "limit": 3}, ["acme", "x", 3]),
                Example(("acme", "x", 500), error="coercion.bounds"),
                Example(("acme",), error="arg.missing"),
                Example(("a", "x"), error="coercion.length"),
                Example(("gone", "x"), error="tool.failed"),
            ),
        ),
        find,
    )

    @tools.tool()
    async def awaited(tenant: str, name: str) -> str:
        """Give both."""
        await asyncio.sleep(0)
        return f"{tenant}/{name}"

    @tools.tool()
    def letters(tenant: str, name: str) -> Iterator[str]:
        """Give letters."""
        yield from tenant + name

    return tools


def engine_of(tools: Toolset, **options: Any) -> Engine:
    return Engine(toolsets=[tools], plugins="none", **options)


def with_variables(**values: Any) -> Host:
    return Host(variables=values)


def refused_by(call: Callable[[], object]) -> CallError:
    """Return the error of a call."""
    with pytest.raises(CallError) as caught:
        call()
    return caught.value


def through_steps(engine: Any, name: str, args: Any) -> Any:
    """Return the result of a call that goes through the steps of the line, not through its compiled form."""
    found = list(engine.stream(name, args))
    return found if name.endswith("letters") else found[0]


SOURCES = ["value", "variable", "state", "resolver"]
