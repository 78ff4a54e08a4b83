"""Tools whose calls are recorded, and the lines of a recording."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from neuroscript import (
    ArgSpec,
    ArgType,
    Engine,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
    bind,
    bind_named,
)
from neuroscript.audit.recording import Recording
from neuroscript.tools.fingerprints import fingerprint

PURE = ToolPolicy(effects=("pure",))
ran: list[str] = []


def lab(give: Callable[[Any], Any] = lambda value: value, description: str = "") -> Toolset:
    """Return tools for every kind of value.

    Args:
        give: The function of ``lab.give``; it is not part of the tool's definition.
    """
    tools = Toolset("lab")

    def add(name: str, args: tuple[ArgSpec, ...], func: Callable[..., Any], **more: Any) -> None:
        policy = more.pop("policy", PURE)
        tools.add(ToolSpec(name, "lab", args, return_nullable=True, **more), func, policy)

    def wipe(rt: Any) -> str:
        ran.append("wipe")
        return "wiped"

    def odd(rt: Any, number: int) -> int:
        if number % 2:
            return number
        raise ToolFailed("it is even", code="lab.even")

    add(
        "give", (ArgSpec("value", ArgType.ANY, required=False),), lambda rt, value: give(value), description=description
    )
    add("odd", (ArgSpec("number", ArgType.INT),), odd)
    add("wipe", (), wipe, policy=ToolPolicy(effects=("deletes",)))
    add("login", (ArgSpec("name", ArgType.STRING), ArgSpec("password", ArgType.STRING, required=False, secret=True)),
        lambda rt, name, password: name)  # fmt: skip
    add(
        "connect",
        (ArgSpec("to", ArgType.MAP, keys=(ArgSpec("host", ArgType.STRING), ArgSpec("key", ArgType.STRING, required=False, secret=True))),),
        lambda rt, to: to["host"],
    )  # fmt: skip
    add("hold", (ArgSpec("thing", ArgType.HANDLE),), lambda rt, thing: thing)
    add("near", (ArgSpec("vector", ArgType.EMBEDDING), ArgSpec("data", ArgType.BLOB)), lambda rt, vector, data: vector)
    add(
        "joined",
        (ArgSpec("separator", ArgType.STRING), ArgSpec("parts", ArgType.STRING, secret=False)),
        lambda rt, separator, *parts: separator.join(parts),
        variadic=True,
    )
    return tools


def engine(tools: Toolset | None = None, **how: Any) -> Engine:
    """Return an engine with the tools of the lab alone."""
    return Engine(toolsets=(lab() if tools is None else tools,), plugins="none", **how)


def record(recording: Recording, lab_engine: Engine, name: str, args: Any = (), **how: Any) -> bool:
    """Make a call, and record it as the engine does after the call."""
    tool = lab_engine.tools[name]
    values = bind_named(tool.spec, args) if isinstance(args, Mapping) else bind(tool.spec, args)
    done = lab_engine.execute(ToolCall(name, args))
    return recording.write(tool, fingerprint(tool), values, done.value, error=done.error, **how)


def recorded(path: Path, *calls: tuple[str, Any], tools: Toolset | None = None) -> list[dict[str, Any]]:
    """Record calls and return the lines."""
    with engine(tools) as lab_engine, Recording(path) as recording:
        for name, args in calls:
            record(recording, lab_engine, name, args)
    return lines(path)


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a recording that are not blank, as a replay reads them."""
    return [json.loads(line) for line in path.read_text().splitlines() if line]


SECRET = "hunter2-93b1"
