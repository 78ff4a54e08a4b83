"""Tools, hooks and entry points for tests of hooks in an engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.engine.error_codes import code

from neuroscript import (
    ArgSpec,
    ArgType,
    CallRecord,
    Engine,
    Runtime,
    Session,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
    hookimpl,
)
from neuroscript.runtime.records import PendingCall

RAN: list[tuple[str, Any]] = []
"""What has run, with what it was given."""


def shop(timeout: float | None = None, *, approval: bool = False) -> Toolset:
    """Return tools that record their runs; with a *timeout* their call pipelines are not compiled."""
    made = Toolset("shop")
    items = ArgSpec("items", ArgType.SLICE_INT, required=False)
    args = (ArgSpec("euros", ArgType.INT), items)

    def refund(rt: Runtime, euros: int, items: list[int] | None) -> int:
        RAN.append(("refund", (euros, items)))
        return euros

    def twice(rt: Runtime, euros: int, items: list[int] | None) -> Any:
        RAN.append(("twice", (euros, items)))
        return [rt.call_tool("shop.refund", (euros,)), rt.call_tool_named("shop.refund", {"euros": str(euros)})]

    def each(rt: Runtime, euros: int, items: list[int] | None) -> Iterator[Any]:
        RAN.append(("each", (euros, items)))
        for number in range(euros):
            yield rt.call_tool("shop.refund", (number,))

    async def later(rt: Runtime, euros: int, items: list[int] | None) -> Any:
        RAN.append(("later", (euros, items)))
        await asyncio.sleep(0)
        return rt.call_tool("shop.refund", (euros,))

    def tries(rt: Runtime, euros: int, items: list[int] | None) -> str:
        RAN.append(("tries", (euros, items)))
        return code(lambda: rt.call_tool("shop.refund", (euros,)))

    for func in (refund, twice, each, later, tries):
        needs = ToolPolicy(timeout=timeout, requires_approval=approval and func is refund)
        spec = ToolSpec(func.__name__, "shop", args, return_type=ArgType.ANY, stream=func is each)
        made.add(spec, func, needs)
    return made


def engine_of(*hooks: object, timeout: float | None = None, approval: bool = False, **options: Any) -> Engine:
    """Return an engine with the tools, after clearing the record."""
    RAN.clear()
    return Engine(toolsets=[shop(timeout, approval=approval)], plugins="none", hooks=hooks, **options)


async def _drained(items: Any) -> list[Any]:
    return [item async for item in items]


def execute(session: Session, name: str, given: dict[str, Any]) -> Any:
    """Call as a model does, and raise the error of the result."""
    result = session.execute(ToolCall(name.replace(".", "__"), given))
    if result.error is not None:
        raise result.error
    return result.value


EntryPoint = Callable[[Any, str, dict[str, Any]], Any]

ENTRY_POINTS: dict[str, EntryPoint] = {
    "call": lambda session, name, given: session.call(name, [*given.values()]),
    "call_named": lambda session, name, given: session.call_named(name, given),
    "acall": lambda session, name, given: asyncio.run(session.acall(name, [*given.values()])),
    "acall_named": lambda session, name, given: asyncio.run(session.acall_named(name, given)),
    "execute": execute,
    "stream": lambda session, name, given: list(session.stream(name, given)),
    "astream": lambda session, name, given: asyncio.run(_drained(session.astream(name, given))),
    "timed": lambda session, name, given: session.call_named(name, given, timeout=60),
    "session": lambda engine, name, given: engine.session().call_named(name, given),
}

entry_point = pytest.mark.parametrize("entry_point", ENTRY_POINTS)
way = pytest.mark.parametrize("timeout", [None, 60.0], ids=["compiled", "steps"])


class Gate:
    """A hook that stores its calls, and answers with a function."""

    def __init__(self, answer: Callable[[PendingCall], Any] = lambda call: None) -> None:
        self.calls: list[PendingCall] = []
        self.answer = answer

    @hookimpl
    def neuroscript_decide(self, call: PendingCall) -> Any:
        self.calls.append(call)
        return self.answer(call)


class Observer:
    """A hook that stores each record in order."""

    def __init__(self) -> None:
        self.seen: list[CallRecord] = []
        self.tools: list[tuple[str, str]] = []
        self.left: list[tuple[str, ...]] = []

    @hookimpl
    def neuroscript_call_started(self, record: CallRecord) -> None:
        self.seen.append(record)

    @hookimpl
    def neuroscript_call_finished(self, record: CallRecord) -> None:
        self.seen.append(record)

    @hookimpl
    def neuroscript_tool_registered(self, tool: Any, origin: str) -> None:
        self.tools.append((tool.spec.full_name, origin))

    @hookimpl
    def neuroscript_engine_closed(self, left: tuple[str, ...]) -> None:
        self.left.append(left)

    def kinds(self) -> list[tuple[str, str, str]]:
        """Return the kind, the tool without its group, and the code of each record."""
        return [(each.kind, each.tool.removeprefix("shop."), each.code) for each in self.seen]
