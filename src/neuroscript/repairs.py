"""What was converted on the way to a tool, as types and places: a host sees what its model keeps getting wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from neuroscript.errors import LISTED
from neuroscript.runtime import Repair
from neuroscript.scalars import flattened
from neuroscript.spec import ToolSpec
from neuroscript.walk import Where, place, type_name

_ALL: Final = slice(None)

KEYS: Final = frozenset({str, int, float, bool, bytes, type(None)})
"""The types of keys that run no code of a caller when they are looked up."""


def repairs(spec: ToolSpec, given: Any, values: tuple[Any, ...]) -> tuple[Repair, ...]:
    """Return one `Repair` for each value among *given* that the caller wrote in another type than the tool receives.

    Args:
        given: The arguments as they were bound, a list, a tuple or a dict.
        values: What `bind` made of them.

    Returns:
        At most `LISTED` repairs.
    """
    if issubclass(type(given), dict):
        return tuple(islice(_by_name(spec, given, values), LISTED))
    items = list.__getitem__(given, _ALL) if issubclass(type(given), list) else tuple.__getitem__(given, _ALL)
    return tuple(islice(_in_order(spec, items, values), LISTED))


def _by_name(spec: ToolSpec, given: dict[Any, Any], values: tuple[Any, ...]) -> Iterator[Repair]:
    before = _plain_keys(given)
    for name, after in spec.by_name(values).items():
        if name in before:
            yield from _converted((None, name), before[name], after)


def _in_order(spec: ToolSpec, given: Sequence[Any], values: tuple[Any, ...]) -> Iterator[Repair]:
    last = len(spec.args) - 1
    for index, (before, after) in enumerate(zip(given, values, strict=False)):
        where: Where = (None, spec.args[min(index, last)].name)
        yield from _converted((where, index - last) if spec.variadic and index >= last else where, before, after)


def _converted(where: Where, before: Any, after: Any) -> Iterator[Repair]:
    """Yield what differs in type, with its place, which is written out only then."""
    if type(before) is not type(after):
        yield Repair(place(where), type_name(before), type_name(after))
    elif type(after) is list:
        for index, (old, new) in enumerate(zip(before, after, strict=False)):
            if type(old) is not type(new) or type(new) in (list, dict):
                yield from _converted((where, index), old, new)
    elif type(after) is dict:
        old_keys = _plain_keys(before)
        for key, new in after.items():
            if key in old_keys:
                yield from _converted((where, key), old_keys[key], new)


def _plain_keys(value: dict[Any, Any]) -> dict[Any, Any]:
    """Return a dict with the keys that a caller wrote as exact values, and none of another type."""
    if type(value) is dict and not [key for key in value if type(key) is not str]:
        return value
    pairs = [(flattened(key), each) for key, each in dict.items(value)]
    return {key: each for key, each in pairs if type(key) in KEYS}
