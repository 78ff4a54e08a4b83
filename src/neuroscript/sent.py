"""A call as it is sent: arguments that may be JSON text, and the seconds that it may take.

Source: contract section 1, ToolCall.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import float_info
from typing import Any

from neuroscript.checks import is_number
from neuroscript.errors import ArgumentError, Problem
from neuroscript.jsontext import NotJSON, parsed
from neuroscript.spec import ToolSpec
from neuroscript.walk import LAX, SizeLimits, type_name


def seconds_of(timeout: Any) -> float:
    if not is_number(timeout) or not 0 < timeout <= float_info.max:
        problem = Problem("timeout", "arg.type", "seconds above 0", type_name(timeout))
        raise ArgumentError([problem])
    return float(timeout)


def arguments_of(given: Any, tool: str, sizes: SizeLimits = LAX.sizes) -> Any:
    """Return the arguments of a call as a dict, a list or a tuple; a blank text and None stand for none.

    Args:
        sizes: How many values JSON text may hold; the object or array around all of them does not count.

    Raises:
        ArgumentError: It is a text that is no JSON, or JSON of something else.
    """
    if given is None or (isinstance(given, str) and not given.strip()):
        return {}
    if not isinstance(given, str):
        return given
    try:
        decoded = parsed(given, sizes.nodes + 1)
    except NotJSON as error:
        raise ArgumentError([_problem(error, sizes)], tool=tool) from None
    if not isinstance(decoded, (dict, list)):
        problem = Problem("", "arg.type", "a JSON object or array of arguments", type_name(decoded))
        raise ArgumentError([problem], tool=tool)
    return decoded


def _problem(error: NotJSON, sizes: SizeLimits) -> Problem:
    if error.code == "limit.nodes":
        return Problem("", error.code, f"at most {sizes.nodes} values in one call", "more")
    return Problem("", error.code, "arguments as JSON", "str", error.hint)


def by_name(spec: ToolSpec, values: Sequence[Any]) -> dict[str, Any] | None:
    """Return values in order as a caller would send them by name, or None where there are too many of them.

    Those of a variadic argument are a list; those that are left out stay so.
    """
    names = [arg.name for arg in spec.args]
    if len(values) <= len(names) - spec.variadic:
        return dict(zip(names, values, strict=False))
    if not spec.variadic:
        return None
    count = len(names) - 1
    return {**dict(zip(names, values[:count], strict=False)), names[-1]: list(values[count:])}
