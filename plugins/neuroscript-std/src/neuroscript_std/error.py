"""Errors as values: a code and a message in a map.

Source: upstream ``pkg/tool/errtools``.
"""

from __future__ import annotations

from typing import Any, Final

from neuroscript import ArgType, CoercionError, Example, ToolFailed, ToolPolicy, Toolset, coerce

PURE: Final = ToolPolicy(effects=("pure",))

toolset = Toolset("error")


@toolset.tool(
    policy=PURE,
    when_to_use="For an error that is handed on as a value; shape.validate fails by itself where data does not fit.",
    examples=(
        Example(("NOT_FOUND", "no such page"), {"code": "NOT_FOUND", "message": "no such page"}),
        Example(("404", "no such page"), {"code": 404, "message": "no such page"}, note="a numeric text is a number"),
        Example((True, "a truth value is no code"), error="error.bad_code"),
    ),
)
def new(code: Any, message: str) -> dict[str, Any]:
    """Make an error value of a code and a message.

    Args:
        code: A text or a number. A numeric text becomes a number, an int where it is whole.
        message: What went wrong, in words.

    Returns:
        A map of ``code`` and ``message``.

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
            raise ToolFailed(f"code: expected a text or a number, got {kind}", code="error.bad_code", retry="model")


def _number_in(text: str) -> str | int | float:
    """Return the number that a text spells, or the text itself where it spells none that 64 bits hold exactly."""
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
