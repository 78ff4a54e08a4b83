"""The caller's variables: values by name, kept from one call to the next as long as its session lasts.

Source: contract section 4, ``get_var`` and ``set_var``.
"""

from __future__ import annotations

from typing import Any, Final

from neuroscript import Example, Runtime, ToolPolicy, Toolset

READING: Final = ToolPolicy(effects=("reads", "idempotent"), blocking=False)
SETTING: Final = ToolPolicy(effects=("writes", "idempotent"), blocking=False)

toolset = Toolset("var")


@toolset.tool(
    policy=READING,
    when_to_use="For a value that was set earlier, or that the host lends; var.list tells which there are.",
    examples=(
        Example(("no such name",), None),
        Example({"name": "no such name", "default": [0]}, [0]),
        Example((1,), error="coercion.type"),
    ),
)
def get(rt: Runtime, name: str, default: Any | None = None) -> Any:
    """Give the value of a variable.

    Args:
        name: What it is called; case matters.
        default: What is given where there is no variable of that name.

    Returns:
        A copy of the value, or of the default.
    """
    return rt.get_var(name, default)


@toolset.tool(
    name="set",
    policy=SETTING,
    when_to_use="To keep a value for later calls of the same session; var.get gives it back.",
    examples=(
        Example(("greeting", "hello"), None),
        Example({"name": "rows", "value": [{"id": 1}, None]}, None),
        Example(("greeting",), error="arg.missing"),
    ),
)
def put(rt: Runtime, name: str, value: Any | None) -> None:
    """Set a variable, whether or not there is one of that name.

    Args:
        name: What it is called; case matters.
        value: The value, of which a copy is kept.

    Raises:
        ToolFailed: var.constant, where the host lends a constant of that name.
    """
    rt.set_var(name, value)


@toolset.tool(
    name="list",
    policy=READING,
    when_to_use="For the names that there are; var.get gives the value of one.",
    examples=(
        Example(()),
        Example({}),
        Example(("greeting",), error="arg.count"),
    ),
)
def names(rt: Runtime) -> list[str]:
    """List the variables and the host's constants.

    Returns:
        Their names, sorted.
    """
    return list(rt.variables)
