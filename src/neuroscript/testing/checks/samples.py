"""Sample values of each declared type: common ones, and difficult ones that tools often mishandle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from neuroscript.coercion.constraints import coerce
from neuroscript.coercion.string_formats import FORMATS
from neuroscript.coercion.types import ELEMENTS, TYPES, ArgType
from neuroscript.errors import CallError
from neuroscript.spec.tool_spec import ArgSpec

CANARY: Final = "canary-7f3a9c51-" * 5
"""A string that occurs nowhere else, longer than names in errors can be, so that it appears in full only if leaked."""

CANARIES: Final[Mapping[ArgType, Any]] = {
    ArgType.STRING: CANARY,
    ArgType.BLOB: CANARY.encode(),
    ArgType.ANY: CANARY,
    ArgType.MAP: {CANARY: CANARY},
}
"""The canary as a value of the types that can hold it."""

WRONG: Final[tuple[Any, ...]] = (object(), {object()}, float("nan"), 10**70 + 1, "\ud800", [object()], (object(),))
"""Values that no argument accepts."""


def valid_samples(arg: ArgSpec, *, hard: bool = False) -> Iterator[Any]:
    """Yield values that an argument accepts; *hard* ones are rare."""
    yield from (value for value in _of(arg, hard) if takes(arg, value))


def takes(arg: ArgSpec, value: object) -> bool:
    """Return whether an argument accepts a value, ignoring None."""
    if value is None:
        return False
    try:
        coerce(value, arg, mode="strict" if arg.type is ArgType.STRING else "lax")
    except CallError:
        return False
    return True


def type_samples(kind: ArgType, hard: bool) -> list[Any]:
    """Return the common or the rare samples of a type; lists and maps hold samples of their items and values."""
    row = TYPES[kind]
    if hard:
        found = [*row.rare_samples]
    else:
        found = [*row.samples, *([CANARIES[kind]] if kind in CANARIES else [])]
    if found:
        return found
    if row.element is not None:
        elements = type_samples(row.element, hard)
        return [[], *([each] for each in elements), elements]
    return [{}, *({"a": each} for each in type_samples(row.value, hard))] if row.value is not None else []


def _of(arg: ArgSpec, hard: bool) -> Iterable[Any]:
    if arg.choices:
        return ()
    if arg.is_refined:
        return _refined(arg, hard)
    if arg.keys:
        return _maps(arg)
    return type_samples(arg.type, hard)


def _refined(arg: ArgSpec, hard: bool) -> Iterable[Any]:
    """Return values for a spec with items, keys and values of their own, alternatives or a format."""
    if arg.any_of:
        return [value for each in arg.any_of for value in _each(each, hard)]
    if arg.format:
        samples = FORMATS[arg.format].samples
        return samples[2:] if hard else (*samples[:2], *decimals_within(arg))
    if arg.prefix_items:
        firsts = [next(iter(_each(each, False)), None) for each in arg.prefix_items]
        return ([*firsts[:index], value, *firsts[index + 1 :]]
                for index, each in enumerate(arg.prefix_items) for value in _each(each, hard))  # fmt: skip
    if arg.type in ELEMENTS:
        items = _each(arg.items, hard) if arg.items is not None else type_samples(arg.element, hard)
        return ([], *([each] for each in items), items)
    return _entries(arg, hard)


def decimals_within(arg: ArgSpec) -> list[str]:
    """Return the bounds of a decimal and numbers near and between them; exclusive bounds exclude some of them."""
    lows, highs = (arg.minimum, arg.exclusive_minimum), (arg.maximum, arg.exclusive_maximum)
    low, high = (next((Decimal(repr(each)) for each in pair if each is not None), None) for pair in (lows, highs))
    if low is not None and high is not None:
        return [str(low), str(high), str((low + high) / 2)]
    if low is not None:
        return [str(low), str(low + 1)]
    return [] if high is None else [str(high), str(high - 1)]


def _entries(arg: ArgSpec, hard: bool) -> Iterator[dict[Any, Any]]:
    declared = next(_maps(arg)) if arg.keys else {}
    yield declared
    key = "a" if arg.key_spec is None else next(iter(_each(arg.key_spec, False)), "a")
    for value in type_samples(ArgType.ANY, hard) if arg.value_spec is None else _each(arg.value_spec, hard):
        yield {**declared, key: value}


def _each(arg: ArgSpec, hard: bool) -> list[Any]:
    """Return values for a nested spec, and None if it is nullable."""
    values = [*arg.choices, *(value for value in _of(arg, hard) if takes(arg, value))]
    return [*values, None] if arg.nullable else values


def _maps(arg: ArgSpec) -> Iterator[Any]:
    made = {key.name: next(_values(key), None) for key in arg.keys if key.required}
    yield [made] if arg.type is ArgType.SLICE_MAP else made


def _values(arg: ArgSpec) -> Iterator[Any]:
    yield from arg.choices
    yield from valid_samples(arg)
