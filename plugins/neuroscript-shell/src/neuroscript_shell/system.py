"""What the machine tells of itself: its environment, its name, its clock; and a pause.

Source: upstream ``pkg/tool/os``, whose getenv reads every variable once it may read one.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolFailed, ToolPolicy, Toolset, ToolSpec

READING: Final = ToolPolicy(capabilities=("env:read:{name}",), effects=("reads", "idempotent"), blocking=False)
NAMING: Final = ToolPolicy(effects=("reads", "idempotent"), blocking=False)
CLOCK: Final = ToolPolicy(effects=("clock",))
WAITING: Final = ToolPolicy(effects=("clock",), blocking=True)

LONGEST_SLEEP: Final = 3600
"""Seconds."""

SLICE: Final = 0.1
"""Seconds of sleep after which is looked whether anybody still waits."""

toolset = Toolset("os")


def _variable(rt: Runtime, name: str, default: str) -> str:
    value = os.environ.get(name)
    return default if value is None else os.fsencode(value).decode("utf-8", "replace")


toolset.add(
    ToolSpec(
        "getenv",
        "os",
        (
            ArgSpec("name", ArgType.STRING, min_length=1, description="The variable, such as LANG."),
            ArgSpec("default", ArgType.STRING, default="", description="What is given where it is not set."),
        ),
        return_type=ArgType.STRING,
        description="Read a variable of the host's environment.",
        when_to_use="For one variable that is granted; os.hostname names the machine without a grant.",
        return_help="Its value, or the default where it is not set; what is not UTF-8 is replaced.",
        examples=(
            Example(("NOBODY_SETS_THIS",), ""),
            Example({"name": "NOBODY_SETS_THIS", "default": "C"}, "C"),
            Example(("",), error="coercion.length"),
        ),
    ),
    _variable,
    READING,
)


@toolset.tool(
    policy=NAMING,
    when_to_use="For the name of this machine; os.getenv reads its environment.",
    examples=(Example(()), Example({}), Example(("x",), error="arg.count")),
)
def hostname(rt: Runtime) -> str:
    """Give the name of the machine in its network.

    Returns:
        The name as the system knows it, with or without a domain.
    """
    return socket.gethostname()


@toolset.tool(
    policy=CLOCK,
    when_to_use="For the time as a number; os.sleep lets time pass.",
    examples=(Example(()), Example({}), Example(("UTC",), error="arg.count")),
)
def now(rt: Runtime) -> float:
    """Give the time of the host's clock.

    Returns:
        Seconds since 1970-01-01 UTC, with a fraction.
    """
    return rt.now()


def _slept(rt: Runtime, duration_seconds: float) -> bool:
    start, told = time.monotonic(), 0
    end = start + duration_seconds
    _require_time(rt, end)
    reserved = rt.spend("sleep", duration_seconds)
    try:
        while (left := end - time.monotonic()) > 0:
            if rt.cancelled:
                raise ToolFailed("nobody waits for the result any more", code="os.cancelled", retry="later")
            time.sleep(min(left, SLICE))
            if (whole := int(time.monotonic() - start)) > told:
                rt.progress(told := whole, duration_seconds)
    finally:
        reserved.settle(min(time.monotonic() - start, duration_seconds))  # by how much it overslept is not its doing
    return True


def _require_time(rt: Runtime, end: float) -> None:
    """Refuse a wait whose end nobody would see; *end* is on the clock of `time.monotonic`, as the deadline is."""
    deadline = rt.deadline
    if deadline is not None and deadline < end:
        text = "duration_seconds: expected an end before the deadline of the call, got one behind it"
        raise ToolFailed(text, code="os.deadline", retry="model")


toolset.add(
    ToolSpec(
        "sleep",
        "os",
        (
            ArgSpec(
                "duration_seconds",
                ArgType.FLOAT,
                minimum=0,
                maximum=LONGEST_SLEEP,
                description="How long to wait, in seconds, at most an hour.",
            ),
        ),
        return_type=ArgType.BOOL,
        description="Wait for some seconds, as the system counts them.",
        when_to_use="For a pause before the next call; os.now tells the time without waiting.",
        return_help="True, when the time is over.",
        examples=(
            Example((0,), True),
            Example(("0.01",), True),
            Example((-1,), error="coercion.bounds"),
        ),
        error_conditions="os.deadline and limit.sleep, before any waiting; os.cancelled.",
    ),
    _slept,
    WAITING,
)
