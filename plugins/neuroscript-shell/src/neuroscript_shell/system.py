"""The ``os`` tools: environment variables, host name, clock and sleep."""

from __future__ import annotations

import os
import socket
import time
from typing import Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolFailed, ToolPolicy, Toolset, ToolSpec

READING: Final = ToolPolicy(
    capabilities=("env:read:{name}",), effects=("reads", "idempotent"), blocking=False, sources=("private",), sinks=()
)
NAMING: Final = ToolPolicy(effects=("reads", "idempotent"), blocking=False, sources=("private",), sinks=())
CLOCK: Final = ToolPolicy(effects=("clock",))
WAITING: Final = ToolPolicy(effects=("clock",), blocking=True)

MAX_SLEEP_SECONDS: Final = 3600
"""Seconds."""

SLICE: Final = 0.1
"""Seconds of sleep between two checks for cancellation."""

toolset = Toolset("os")


def _variable(rt: Runtime, name: str, default: str) -> str:
    value = os.environ.get(name)
    return default if value is None else os.fsencode(value).decode("utf-8", "replace")


toolset.add(
    ToolSpec(
        "getenv",
        "os",
        (
            ArgSpec("name", ArgType.STRING, min_length=1, description="Name of the variable, such as LANG."),
            ArgSpec(
                "default", ArgType.STRING, default="", description="The value to return if the variable is not set."
            ),
        ),
        return_type=ArgType.STRING,
        description="Get the value of an environment variable.",
        when_to_use="Use it for a variable that the host grants; for the name of the machine, use os.hostname.",
        return_help="The value, or the default if it is not set; bytes that are not UTF-8 are replaced.",
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
    when_to_use="Use it for the name of the machine; for environment variables, use os.getenv.",
    examples=(Example(()), Example({}), Example(("x",), error="arg.count")),
)
def hostname(rt: Runtime) -> str:
    """Get the hostname, the network name of this machine.

    Returns:
        The host name as the system reports it, with or without a domain.
    """
    return socket.gethostname()


@toolset.tool(
    policy=CLOCK,
    when_to_use="Use it for a timestamp to calculate with; to wait, use os.sleep.",
    examples=(Example(()), Example({}), Example(("UTC",), error="arg.count")),
)
def now(rt: Runtime) -> float:
    """Get the current time as a Unix timestamp: seconds since the epoch.

    Returns:
        Seconds since 1970-01-01 UTC, as a float.
    """
    return rt.now()


def _slept(rt: Runtime, duration_seconds: float) -> bool:
    start, reported = time.monotonic(), 0
    end = start + duration_seconds
    _require_time(rt, end)
    reserved = rt.spend("sleep", duration_seconds)
    try:
        while (left := end - time.monotonic()) > 0:
            if rt.cancelled:
                raise ToolFailed("the call was cancelled", code="os.cancelled", retry="later")
            time.sleep(min(left, SLICE))
            if (whole := int(time.monotonic() - start)) > reported:
                rt.progress(reported := whole, duration_seconds)
    finally:
        reserved.settle(min(time.monotonic() - start, duration_seconds))  # oversleeping is not charged to the caller
    return True


def _require_time(rt: Runtime, end: float) -> None:
    """Refuse to sleep past the deadline of the call; *end* and the deadline are on the `time.monotonic` clock."""
    deadline = rt.deadline
    if deadline is not None and deadline < end:
        text = "duration_seconds: expected to end before the deadline of the call, got a longer time"
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
                maximum=MAX_SLEEP_SECONDS,
                description="Seconds to sleep, at most 3600.",
            ),
        ),
        return_type=ArgType.BOOL,
        description="Sleep: pause execution for a number of seconds, like time.sleep.",
        when_to_use="Use it to wait before the next call; to read the clock, use os.now.",
        return_help="True after the time has passed.",
        examples=(
            Example((0,), True),
            Example(("0.01",), True),
            Example((-1,), error="coercion.bounds"),
        ),
        error_conditions="os.deadline and limit.sleep, before it sleeps; os.cancelled.",
    ),
    _slept,
    WAITING,
)
