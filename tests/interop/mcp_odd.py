"""Tools with unusual results, errors and strings, which must all reach a client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from neuroscript import Runtime, ToolFailed

SURROGATE = "a\ud800b"


def register(registrar: Any) -> None:
    """Register all tools."""
    tools = registrar.toolset("odd")

    @tools.tool()
    def not_a_number(rt: Runtime) -> float:
        return float("nan")

    @tools.tool()
    def endless(rt: Runtime) -> list[float]:
        return [float("inf"), float("-inf"), 1.0]

    @tools.tool()
    def huge(rt: Runtime) -> int:
        return 10**6_000

    @tools.tool()
    def beyond(rt: Runtime) -> int:
        return 2**70

    @tools.tool()
    def surrogate(rt: Runtime) -> str:
        return SURROGATE

    @tools.tool()
    def surrogate_within(rt: Runtime) -> dict[str, Any]:
        return {SURROGATE: [SURROGATE, b"\xff", float("nan"), 10**6_000]}

    @tools.tool()
    def surrogate_said(rt: Runtime) -> str:
        raise ToolFailed(SURROGATE)

    @tools.tool()
    def surrogate_told(rt: Runtime) -> str:
        rt.progress(1, 2, SURROGATE)
        rt.logger.warning("%s", SURROGATE)
        return "told"

    @tools.tool()
    def keys(rt: Runtime) -> Any:
        return {1: "a", "1": "b", None: "c", 2.5: "d"}

    @tools.tool()
    def deep(rt: Runtime) -> Any:
        value: Any = 1
        for _ in range(400):
            value = [value]
        return value

    @tools.tool()
    def large(rt: Runtime) -> str:
        return "x" * 3_000_000

    @tools.tool()
    def controls(rt: Runtime) -> str:
        return "\x00\x1b[2J\u2028\r\n\ufeff"

    @tools.tool()
    def streams(rt: Runtime) -> Iterator[float]:
        yield 1.0
        yield float("nan")

    @tools.tool()
    def exits(rt: Runtime) -> str:
        raise SystemExit(3)

    @tools.tool()
    def interrupts(rt: Runtime) -> str:
        raise KeyboardInterrupt

    @tools.tool()
    def ends(rt: Runtime) -> str:
        raise GeneratorExit

    @tools.tool()
    async def exits_on_the_loop(rt: Runtime) -> str:
        raise SystemExit(3)

    @tools.tool()
    async def cancels_itself(rt: Runtime) -> str:
        raise asyncio.CancelledError

    @tools.tool()
    def overflows(rt: Runtime) -> int:
        def again() -> int:
            return again()

        return again()
