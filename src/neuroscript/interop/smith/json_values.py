"""JSON values in Smith: results in the format of its trace, and checks for values that JSON cannot represent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from neuroscript.coercion.context import Where, place, type_name
from neuroscript.coercion.plain_data import to_plain
from neuroscript.coercion.schema_inspection import LONG_NUMBER, NOT_JSON, size_faults
from neuroscript.errors import CallError, CallTimeout
from neuroscript.io.text import quote_untrusted
from neuroscript.runtime.interfaces import ToolResult


def payload_of(result: ToolResult) -> dict[str, Any]:
    """Return the payload of a result: a map with a ``status`` unchanged, any other value under ``result``.

    An error is reported with its message; a failure in a tool with its type and text, and a timeout in Smith's wording.

    >>> payload_of(ToolResult("", "smith.weather", "sunny"))
    {'status': 'success', 'result': 'sunny'}
    >>> payload_of(ToolResult("", "smith.weather", {"status": "success", "temp": 3}))
    {'status': 'success', 'temp': 3}
    """
    if result.error is not None:
        return {"status": "error", "error": _error_text(result.error)}
    value = to_plain(result.value)
    if isinstance(value, dict) and "status" in value:
        return value
    return {"status": "success", "result": value}


def _error_text(error: CallError) -> str:
    if isinstance(error, CallTimeout) and error.seconds is not None:
        return f"Execution timed out ({error.seconds:g}s)"
    return str(error)


MAX_INTEGER_BITS: Final = 4096
"""Maximum size of an integer, in bits; Python converts no larger ones to text, and other parsers may reject them."""


def iter_non_json(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Yield each place of a value that JSON cannot represent, and what it contains; never a value.

    Tuples count as lists. A recursive container is visited once.

    Args:
        name: The name of the value itself.

    >>> list(iter_non_json({"a": [1, {2}], "b": (None, "c")}, "result"))
    [("result['a'][1]", 'set')]
    """
    rest: list[tuple[Where, object]] = [((None, name), value)]
    seen: set[int] = set()
    while rest:
        where, each = rest.pop()
        match each:
            case None | bool() | str():
                continue
            case int() if int.bit_length(each) <= MAX_INTEGER_BITS:
                continue
            case int():
                yield place(where), "a number with too many digits"
            case float() if math.isfinite(each):
                continue
            case float():
                yield place(where), "a number that is not finite"
            case dict() | list() | tuple() if id(each) in seen:
                continue
            case dict():
                seen.add(id(each))
                yield from ((place(where), f"{type_name(key)} as a key") for key in each if not isinstance(key, str))
                rest.extend(reversed([((where, key), part) for key, part in each.items()]))
            case list() | tuple():
                seen.add(id(each))
                rest.extend(reversed([((where, index), part) for index, part in enumerate(each)]))
            case _:
                yield place(where), type_name(each)


def size_problem(value: object) -> str:
    """Return why a value is too deep or too large to process, or ``""``; a recursive value is too deep.

    >>> size_problem([1, {2}]), size_problem([[]] * 60_000)
    ('', 'more than 50000 values or 1048576 characters')
    """
    return next((fault.removeprefix("#: ") for fault in size_faults(value) if fault not in (LONG_NUMBER, NOT_JSON)), "")


def shown_key(key: object) -> str:
    """Return a key for an error: a string escaped and truncated, any other key as its type."""
    return quote_untrusted(key) if isinstance(key, str) else type_name(key)
