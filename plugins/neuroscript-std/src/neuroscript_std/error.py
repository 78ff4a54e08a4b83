"""The ``error`` tools: errors as values, a map of a code and a message."""

from __future__ import annotations

from typing import Any, Final

from neuroscript import ArgType, CoercionError, Example, ToolFailed, ToolPolicy, Toolset, coerce

PURE: Final = ToolPolicy(effects=("pure",))

toolset = Toolset("error")


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to return an error as data; it does not fail the call. To check data, use shape.validate.",
    examples=(
        Example(("NOT_FOUND", "no such page"), {"code": "NOT_FOUND", "message": "no such page"}),
        Example(
            ("404", "no such page"), {"code": 404, "message": "no such page"}, note="a numeric string becomes a number"
        ),
        Example((True, "a boolean is not a code"), error="error.bad_code"),
    ),
)
def new(code: Any, message: str) -> dict[str, Any]:
    """Create an error object from a code and a message.

    Args:
        code: A string or a number; a numeric string is converted to an int or a float.
        message: Description of the error.

    Returns:
        A map with the keys ``code`` and ``message``.

    Raises:
        ToolFailed: error.bad_code.
    """
    return {"code": _exact_code(code), "message": message}


def _exact_code(code: Any) -> str | int | float:
    match code:
        case str():
            return _number_in(code)
        case int() | float() if type(code) is not bool:
            return code
        case _:
            kind = type(code).__name__
            raise ToolFailed(f"code: expected a string or a number, got {kind}", code="error.bad_code", retry="model")


def _number_in(text: str) -> str | int | float:
    """Convert a numeric string, or return the string itself if 64 bits cannot represent it exactly."""
    number = _read(text, ArgType.FLOAT)
    if number is None or not number.is_integer():
        return text if number is None else number
    for spelling in (text, number):
        whole = _read(spelling, ArgType.INT)
        if whole is not None:
            return int(whole)
    return text


def _read(spelling: str | float, kind: ArgType) -> float | None:
    try:
        number: float = coerce(spelling, kind)
    except CoercionError:
        return None
    return number
