"""A check that a class does not change the values on which the capabilities of a call depend.

Capabilities are checked for the exact values of a call. A validator or a constructor of a class that the function
receives could replace a path or a URL afterwards, so the instance is compared with the exact values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from neuroscript.coercion.constraints import coerce_present
from neuroscript.coercion.context import INVALID, RESULT, ROOT, CoercionPass
from neuroscript.errors import ArgumentError, Problem
from neuroscript.spec.instances import Convert, plain_default
from neuroscript.spec.tool_spec import ArgSpec

KeyPath = tuple[str, ...]

UNCHANGED: Final = "a value that its class leaves as it is, because a capability of this call depends on it"


def checked_maker(arg: ArgSpec, make: Convert, tool: str, paths: Sequence[KeyPath]) -> Callable[[Any], Any]:
    """Return a function that creates an instance like *make*, and refuses one that changed a value.

    Args:
        paths: The keys within the argument that capability templates name. The last may be an attribute of a URL.

    Raises:
        ArgumentError: From the returned function, for each value that changed.
    """

    def checked(value: Any) -> Any:
        instance = make(value)
        plain = plain_default(arg, instance)
        problems = [
            Problem(
                f"{arg.name}{''.join(f'[{key!r}]' for key in path)}", "coercion.class", UNCHANGED, "a changed value"
            )
            for path in paths
            if [*_exact_parts(arg, plain, path)] != [*_exact_parts(arg, value, path)]
        ]
        if problems:
            raise ArgumentError(problems, tool)
        return instance

    return checked


def _exact_parts(arg: ArgSpec, value: Any, path: KeyPath) -> Iterator[Any]:
    """Yield each value at a path as an exact value with its type; `INVALID` for one that no longer fits."""
    key = next((key for key in arg.keys if path and key.name == path[0]), None)
    maps = arg if key is not None or arg.items is None else arg.items
    key = key or next((key for key in maps.keys if path and key.name == path[0]), None)
    if key is not None:
        for each in value if isinstance(value, (list, tuple)) else [value]:
            inner = each.get(key.name) if isinstance(each, dict) else None
            yield from _exact_parts(key, inner, path[1:])
    elif value is None:
        yield None
    else:
        walk = CoercionPass(RESULT)
        exact = walk.limited(coerce_present, arg, value, ROOT)
        yield INVALID if walk.noted else (type(exact), exact)
