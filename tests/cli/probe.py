"""A toolset with a tool for each way in which a command can end, and the command with only that toolset.

``python -m tests.cli.probe WORD …`` is ``neuroscript WORD …`` in a process of its own.
"""

from __future__ import annotations

import functools
import sys
import time
from typing import Any

from neuroscript import ArgSpec, ArgType, Engine, Example, Runtime, ToolFailed, ToolPolicy, Toolset, ToolSpec
from neuroscript.cli import main

probe = Toolset("probe")


@probe.tool()
def echo(text: str) -> str:
    """Return a string unchanged."""
    return text


@probe.tool()
def tags(names: list[str], sep: str = "-", limit: int | None = None) -> dict[str, Any]:
    """Return the arguments unchanged."""
    return {"names": names, "sep": sep, "limit": limit}


@probe.tool()
def nothing() -> None:
    """Return None."""


@probe.tool()
def data() -> bytes:
    """Return bytes."""
    return b"\x00\xff"


@probe.tool()
def said(rt: Runtime, text: str) -> str:
    """Print a string, and return it."""
    rt.println(text)
    return text


@probe.tool()
def mutters(text: str) -> str:
    """Print a string without flushing it, and fail."""
    print(text, end="")
    raise ToolFailed("it muttered")


@probe.tool()
def fails(code: str) -> str:
    """Fail in the requested way."""
    if code == "bug":
        raise ValueError("a secret value")
    if code == "return":
        return 5  # type: ignore[return-value]
    raise ToolFailed(f"it failed\nwith \x1b[31m{code}", code="probe.failed", retry="later")


@probe.tool(policy=ToolPolicy(requires_trust=True))
def trusted(text: str) -> str:
    """Require trust."""
    return text


@probe.tool(policy=ToolPolicy(timeout=0.01))
def slow() -> str:
    """Take longer than the timeout."""
    time.sleep(0.5)
    return "late"


@probe.tool()
def waits(seconds: float) -> str:
    """Print that it has started, and wait.

    Args:
        seconds: How long to wait, in seconds; this is a long description, so that the help has to wrap it at the
            width of the terminal.
    """
    print("waiting", flush=True)
    time.sleep(seconds)
    return "waited"


@probe.tool()
def deep(rt: Runtime) -> Any:
    """Call itself until it exceeds a limit."""
    return rt.call_tool("probe.deep")


def _joined(rt: Runtime, sep: str, *parts: str) -> str:
    return sep.join(parts)


def _odd(rt: Runtime, *values: str | None) -> list[str | None]:
    return [*values]


probe.add(
    ToolSpec(
        "joined",
        "probe",
        (ArgSpec("sep", ArgType.STRING), ArgSpec("parts", ArgType.STRING)),
        variadic=True,
        return_type=ArgType.STRING,
    ),
    _joined,
)
probe.add(
    ToolSpec(
        "odd",
        "probe",
        tuple(ArgSpec(name, ArgType.STRING, required=False) for name in ("a", "a=b", "-c", "--json")),
        return_type=ArgType.SLICE_ANY,
    ),
    _odd,
)
probe.add(
    ToolSpec(
        "danger",
        "probe",
        (
            ArgSpec(
                "options",
                ArgType.MAP,
                default={"size": 1},
                keys=(ArgSpec("size", ArgType.INT, default=1, minimum=1, maximum=9, description="How large\x1b[2J."),),
                description="What \x1b[31mto do\u202e.",
            ),
        ),
        return_type=ArgType.ANY,
        return_nullable=True,
        description="Say what \x1b[2J cannot be said\u202e.",
        when_to_use="Never; probe.echo is better.",
        return_help="What it was given.",
        error_conditions="probe.danger.",
        examples=(
            Example(({"size": "2"},), {"size": 2}, note="a number as text"),
            Example(([],), error="coercion.type"),
        ),
    ),
    lambda rt, options: options,
    ToolPolicy(capabilities=("fs:read:data/**",), requires_approval=True, effects=("reads",), timeout=2.5),
)

engine = functools.partial(Engine, toolsets=(probe,), plugins="none")

if __name__ == "__main__":
    sys.exit(main(make_engine=engine))
