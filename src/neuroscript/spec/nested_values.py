"""The specs of the parts of a value, and the values within an exact value, each with its spec.

A value of a union may be described by several alternatives; each that accepts it counts, because callers of this
module look for secrets and handles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from neuroscript.coercion.types import ELEMENTS, VALUES, ArgType
from neuroscript.coercion.unions import is_exactly
from neuroscript.spec.tool_spec import ELEMENT_FIELDS, ArgSpec


def nested_values(arg: ArgSpec, value: Any) -> Iterator[tuple[ArgSpec, Any]]:
    """Yield the values directly within an exact value, except missing ones, each with its spec.

    For a union these are the value itself, once for each alternative that accepts it.
    """
    if arg.any_of:
        yield from ((each, value) for each in accepting_alternatives(arg, value))
    elif type(value) is list:
        yield from _items(arg, value)
    elif type(value) is dict:
        yield from _entries(arg, value)


def accepting_alternatives(arg: ArgSpec, value: Any) -> tuple[ArgSpec, ...]:
    """Return the alternatives of a union that accept an exact value, or all of them if that cannot be determined."""
    accepting = tuple(each for each in arg.any_of if is_exactly(each, value))
    return accepting or arg.any_of


def _items(arg: ArgSpec, values: list[Any]) -> Iterator[tuple[ArgSpec, Any]]:
    if arg.items is not None:
        yield from ((arg.items, each) for each in values)
    elif arg.prefix_items:
        yield from zip(arg.prefix_items, values, strict=False)
    elif arg.keys:
        for each in values:
            if type(each) is dict:
                yield from _keyed(arg, each)


def _entries(arg: ArgSpec, values: dict[Any, Any]) -> Iterator[tuple[ArgSpec, Any]]:
    yield from _keyed(arg, values)
    if arg.key_spec is None and arg.value_spec is None:
        return
    declared = {key.name for key in arg.keys}
    for key, each in values.items():
        if key in declared:
            continue
        if arg.key_spec is not None:
            yield arg.key_spec, key
        if arg.value_spec is not None:
            yield arg.value_spec, each


def _keyed(arg: ArgSpec, values: dict[Any, Any]) -> Iterator[tuple[ArgSpec, Any]]:
    return ((key, values[key.name]) for key in arg.keys if key.name in values)


def item_of(arg: ArgSpec) -> ArgSpec:
    """Return the spec of each item of a list that is not a tuple; `any` for a value of type `any`."""
    if arg.items is not None:
        return arg.items
    rules = {name: getattr(arg, name) for name in ELEMENT_FIELDS}
    return ArgSpec("item", ELEMENTS[arg.type], **rules) if arg.type in ELEMENTS else ANY_PART


def bound_order(arg: ArgSpec, *, is_least: bool) -> tuple[float, bool] | None:
    """Return a bound of a number in a form that is greater for greater bounds, or None without a bound.

    Above the same number, more than it is greater than at least it; below it, less than it is less than at most it.
    """
    inclusive, exclusive = arg.minimum, arg.exclusive_minimum
    if not is_least:
        inclusive, exclusive = arg.maximum, arg.exclusive_maximum
    if exclusive is not None:
        return exclusive, is_least
    return None if inclusive is None else (inclusive, not is_least)


def value_of(arg: ArgSpec) -> ArgSpec:
    """Return the spec of each value of a map that has no key spec of its own."""
    if arg.value_spec is not None:
        return arg.value_spec
    return ArgSpec("value", VALUES[arg.type]) if arg.type in VALUES else ANY_PART


def key_of(arg: ArgSpec) -> ArgSpec:
    """Return the spec of each key of a map."""
    if arg.key_spec is not None:
        return arg.key_spec
    return ANY_KEY if arg.type is ArgType.MAP_ANY_ANY else TEXT_KEY


ANY_PART: Final = ArgSpec("item", ArgType.ANY)
ANY_KEY: Final = ArgSpec("key", ArgType.ANY)
TEXT_KEY: Final = ArgSpec("key", ArgType.STRING)
