"""What came of a call, as Smith's trace holds it.

Source: seed-systems.md rows SM-51 to SM-54.

Where a value holds something that JSON has no word for.

Source: Smith's document, sections 3 and 9: parameters are serializable, outputs are JSON; seed-systems.md row SM-33.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from neuroscript.coercion.context import Where, place, type_name
from neuroscript.coercion.json_schema import LONG_NUMBER, STRANGE, size_faults
from neuroscript.coercion.plain_data import plain
from neuroscript.errors import CallError, CallTimeout
from neuroscript.io.text import shown
from neuroscript.runtime.interfaces import ToolResult


def payload_of(result: ToolResult) -> dict[str, Any]:
    """Return the payload of a result: a map with a ``status`` as it is, anything else below ``result``.

    An error is told in its own words, of what a tool raised the type and the text; a timeout in Smith's.

    >>> payload_of(ToolResult("", "smith.weather", "sunny"))
    {'status': 'success', 'result': 'sunny'}
    >>> payload_of(ToolResult("", "smith.weather", {"status": "success", "temp": 3}))
    {'status': 'success', 'temp': 3}
    """
    if result.error is not None:
        return {"status": "error", "error": _told(result.error)}
    value = plain(result.value)
    if isinstance(value, dict) and "status" in value:
        return value
    return {"status": "success", "result": value}


def _told(error: CallError) -> str:
    if isinstance(error, CallTimeout) and error.seconds is not None:
        return f"Execution timed out ({error.seconds:g}s)"
    return str(error)


BITS: Final = 4096
"""How long a whole number may be; of longer ones Python makes no text at last, and others read none."""


def unspeakable(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Yield each place of a value that JSON can not hold, and what stands there; never a value.

    Tuples are lists. What holds itself is looked at once.

    Args:
        name: What the value itself is called.

    >>> list(unspeakable({"a": [1, {2}], "b": (None, "c")}, "result"))
    [("result['a'][1]", 'set')]
    """
    rest: list[tuple[Where, object]] = [((None, name), value)]
    seen: set[int] = set()
    while rest:
        where, each = rest.pop()
        match each:
            case None | bool() | str():
                continue
            case int() if int.bit_length(each) <= BITS:
                continue
            case int():
                yield place(where), "a number of too many digits"
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


def oversize(value: object) -> str:
    """Return why a value is too deep or too large to be looked at any further, or ``""``; one that holds itself is.

    >>> oversize([1, {2}]), oversize([[]] * 60_000)
    ('', 'more than 50000 values or 1048576 characters')
    """
    return next((fault.removeprefix("#: ") for fault in size_faults(value) if fault not in (LONG_NUMBER, STRANGE)), "")


def shown_key(key: object) -> str:
    """Return a key as an error names it: a text escaped and cut, of anything else the type."""
    return shown(key) if isinstance(key, str) else type_name(key)
