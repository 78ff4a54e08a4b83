"""The ``var`` tools: the variables of the caller's session, which persist between its calls."""

from __future__ import annotations

from typing import Any, Final

from neuroscript import Example, Runtime, ToolPolicy, Toolset

READING: Final = ToolPolicy(effects=("reads", "idempotent"), blocking=False, sources=(), sinks=())
SETTING: Final = ToolPolicy(effects=("writes", "idempotent"), blocking=False, sources=(), sinks=())
"""Variables stay in the session, and carry the labels of their values."""

toolset = Toolset("var")


@toolset.tool(
    policy=READING,
    when_to_use="Use it for a value stored earlier or provided by the host; for all names, use var.list.",
    examples=(
        Example(("no such name",), None),
        Example({"name": "no such name", "default": [0]}, [0]),
        Example((1,), error="coercion.type"),
    ),
)
def get(rt: Runtime, name: str, default: Any | None = None) -> Any:
    """Get the stored value of a variable.

    Args:
        name: Name of the variable; case-sensitive.
        default: The value to return if the variable does not exist.

    Returns:
        A copy of the value or of the default.
    """
    return rt.get_var(name, default)


@toolset.tool(
    name="set",
    policy=SETTING,
    when_to_use=(
        "Use it to store a value for later calls in the session; to update it from its old value, use var.change."
    ),
    examples=(
        Example(("greeting", "hello"), None),
        Example({"name": "rows", "value": [{"id": 1}, None]}, None),
        Example(("greeting",), error="arg.missing"),
    ),
)
def put(rt: Runtime, name: str, value: Any | None) -> None:
    """Set a variable: assign a value and store it, replacing any existing value.

    Args:
        name: Name of the variable; case-sensitive.
        value: The value; a copy is stored.

    Raises:
        ToolFailed: var.constant, if the host provides a constant of that name.
    """
    rt.set_var(name, value)


@toolset.tool(
    name="list",
    policy=READING,
    when_to_use="Use it to see which variables exist; to read one, use var.get.",
    examples=(
        Example(()),
        Example({}),
        Example(("greeting",), error="arg.count"),
    ),
)
def names(rt: Runtime) -> list[str]:
    """List the names of all variables defined in the session, including the host's constants.

    Returns:
        The names, sorted.
    """
    return list(rt.variables)
