"""Tools, and entry points that call them, for tests of limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from neuroscript import (
    ArgSpec,
    ArgType,
    CallRecord,
    Engine,
    ExecutionPolicy,
    Host,
    Runtime,
    Session,
    ToolCall,
    Toolset,
    ToolSpec,
)
from neuroscript.policy.limits import Limits

INT, STRING = ArgType.INT, ArgType.STRING


def add(rt: Runtime, a: int) -> int:
    return a


def stream(rt: Runtime, a: int) -> Iterator[int]:
    yield from range(a)


async def awaited(rt: Runtime, a: int) -> int:
    await asyncio.sleep(0)
    return a


def outer(rt: Runtime, a: int) -> Any:
    return rt.call_tool("g.add", (a,))


def deep(rt: Runtime, a: int) -> Any:
    return rt.call_tool("g.deep", (a - 1,)) if a else 0


def pays(rt: Runtime, what: str, amount: str) -> None:
    rt.spend(what, amount)


def settles(rt: Runtime, what: str, amount: str, taken: str) -> None:
    rt.spend(what, amount).settle(taken)


def pays_twice(rt: Runtime, what: str, amount: str) -> None:
    rt.spend(what, amount)
    rt.call_tool("g.pays", (what, amount))


def fail(rt: Runtime, a: int) -> None:
    raise OSError


def sleeps(rt: Runtime, seconds: float) -> None:
    time.sleep(seconds)


def sleeps_within(rt: Runtime, seconds: float) -> Any:
    for _ in range(3):
        rt.call_tool("g.sleeps", (seconds,))


ONE = (ArgSpec("a", INT),)
AMOUNT = (ArgSpec("what", STRING), ArgSpec("amount", STRING))


def tools(**added: Any) -> Toolset:
    """Return the tools, each in the group ``g``; *added* are functions of one number."""
    made = Toolset("g")
    spec_of: dict[Any, tuple[ArgSpec, ...]] = {
        **dict.fromkeys((add, stream, awaited, outer, deep, fail), ONE),
        **dict.fromkeys((pays, pays_twice), AMOUNT),
        settles: (*AMOUNT, ArgSpec("taken", STRING)),
        **dict.fromkeys((sleeps, sleeps_within), (ArgSpec("seconds", ArgType.FLOAT),)),
        **dict.fromkeys(added.values(), ONE),
    }
    names = {func: name for name, func in added.items()}
    for func, args in spec_of.items():
        name = names.get(func, func.__name__)
        made.add(ToolSpec(name, "g", args, return_type=ArgType.ANY, return_nullable=True, stream=func is stream), func)
    return made


def engine_of(limits: Limits | None, *, clock: Callable[[], float] = time.time, **options: Any) -> Engine:
    """Return an engine with the tools under limits."""
    policy = ExecutionPolicy(
        limits=limits, **{key: options.pop(key) for key in ("grants", "approver") if key in options}
    )
    return Engine(toolsets=[tools()], plugins="none", policy=policy, host=Host(clock=clock), **options)


EntryPoint = Callable[[Session, str, tuple[Any, ...]], Any]


async def drained(items: Any) -> list[Any]:
    return [item async for item in items]


def execute(session: Session, name: str, args: tuple[Any, ...]) -> Any:
    """Call as a model does, and raise the error of the result."""
    result = session.execute(ToolCall(name, args))
    if result.error is not None:
        raise result.error
    return result.value


ENTRY_POINTS: dict[str, EntryPoint] = {
    "call": lambda session, name, args: session.call(name, args),
    "call_named": lambda session, name, args: session.call_named(name, _named(session, name, args)),
    "acall": lambda session, name, args: asyncio.run(session.acall(name, args)),
    "execute": execute,
    "stream": lambda session, name, args: list(session.stream(name, args)),
    "astream": lambda session, name, args: asyncio.run(drained(session.astream(name, args))),
    "timed": lambda session, name, args: session.call(name, args, timeout=60),
}

entry_point = pytest.mark.parametrize("entry_point", ENTRY_POINTS)


def _named(session: Session, name: str, args: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip((arg.name for arg in session.infos[name].spec.args), args, strict=False))


class Failing:
    """A sink that can be full."""

    def __init__(self, *, intents: bool = True) -> None:
        self.is_full, self.intents = False, intents

    def write(self, record: CallRecord) -> None:
        if self.is_full and record.kind == "intent":
            raise OSError

    def close(self) -> None:
        """Do nothing."""
