"""Where a value holds something that JSON has no word for.

Source: Smith's document, sections 3 and 9: parameters are serializable, outputs are JSON; seed-systems.md row SM-33.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from neuroscript.display import shown
from neuroscript.foreign import LONG_NUMBER, STRANGE, size_faults
from neuroscript.walk import Where, place, type_name

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
