"""Sample values of each declared type: common ones, and difficult ones that tools often mishandle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from neuroscript.coercion.constraints import coerce
from neuroscript.coercion.string_formats import FORMATS
from neuroscript.coercion.types import ELEMENTS, ArgType
from neuroscript.errors import CallError
from neuroscript.spec.tool_spec import ArgSpec

CANARY: Final = "canary-7f3a9c51-" * 5
"""A string that occurs nowhere else, longer than names in errors can be, so that it appears in full only if leaked."""

COMMON: Final[dict[ArgType, tuple[Any, ...]]] = {
    ArgType.STRING: ("", "a", CANARY, "two words", "é\U0001f600", "5", "[1]"),
    ArgType.INT: (0, 1, -1, 3),
    ArgType.FLOAT: (0.0, 1.0, -1.0, 2.5),
    ArgType.BOOL: (True, False),
    ArgType.BLOB: (b"", b"abc", CANARY.encode()),
    ArgType.EMBEDDING: ([1.0, 2.5],),
    ArgType.HANDLE: ("nothing-0",),
    ArgType.NODEID: ("N_none",),
    ArgType.ENTITYID: ("E_none",),
    ArgType.ANY: (0, "a", CANARY, [1], {"a": 1}),
    ArgType.MAP: ({}, {"a": 1}, {CANARY: CANARY}),
}
"""Common values."""

HARD: Final[dict[ArgType, tuple[Any, ...]]] = {
    ArgType.STRING: (
        *("\x00", "../../etc/passwd", "-rf", "$(id)", "%s%n{0}", "\r\n\x1b[31m", "\u202eabc", "\ufeff", "'\"\\"),
        *("a" * 10_000, "(((((", "9" * 400),
    ),
    ArgType.INT: (2**31, 2**53 + 1, 2**63 - 1, -(2**63)),
    ArgType.FLOAT: (-0.0, 5e-324, 1.7e308, -1.7e308),
    ArgType.BLOB: (b"\xff\xfe\x00", bytes(range(256))),
    ArgType.EMBEDDING: ([],),
    ArgType.HANDLE: ("a" * 128,),
    ArgType.NODEID: ("N_" + "a" * 100,),
    ArgType.ENTITYID: ("E_" + "a" * 100, {"id": "E_1"}),
    ArgType.ANY: (None, "\x00", 2**63 - 1, 1.7e308, [], {}, [[[[[]]]]], [None], b"\xff"),
    ArgType.MAP: ({"": None}, {"a": {"b": {"c": []}}}, {"__class__": 1, "$base64": "?"}),
}
"""Rare values that a tool has to handle."""

WRONG: Final[tuple[Any, ...]] = (object(), {object()}, float("nan"), 10**70 + 1, "\ud800", [object()], (object(),))
"""Values that no argument accepts."""


def valid_samples(arg: ArgSpec, *, hard: bool = False) -> Iterator[Any]:
    """Yield values that an argument accepts; *hard* ones are rare."""
    yield from (value for value in _of(arg, HARD if hard else COMMON) if takes(arg, value))


def takes(arg: ArgSpec, value: object) -> bool:
    """Return whether an argument accepts a value, ignoring None."""
    if value is None:
        return False
    try:
        coerce(value, arg, mode="strict" if arg.type is ArgType.STRING else "lax")
    except CallError:
        return False
    return True


def _of(arg: ArgSpec, table: dict[ArgType, tuple[Any, ...]]) -> Iterable[Any]:
    if arg.choices:
        return ()
    if arg.is_refined:
        return _refined(arg, table)
    if arg.keys:
        return _maps(arg)
    if arg.type in table:
        return table[arg.type]
    if arg.type in ELEMENTS:
        elements = table.get(arg.element, ())
        return ([], *([each] for each in elements), list(elements))
    if arg.type.value.startswith("map_"):
        element = ArgType(arg.type.value.rpartition("_")[2])
        return ({}, *({"a": each} for each in table.get(element, ())))
    return ()


def _refined(arg: ArgSpec, table: dict[ArgType, tuple[Any, ...]]) -> Iterable[Any]:
    """Return values for a spec with items, keys and values of their own, alternatives or a format."""
    if arg.any_of:
        return [value for each in arg.any_of for value in _each(each, table)]
    if arg.format:
        samples = FORMATS[arg.format].samples
        return samples[:2] if table is COMMON else samples[2:]
    if arg.prefix_items:
        firsts = [next(iter(_each(each, COMMON)), None) for each in arg.prefix_items]
        return ([*firsts[:index], value, *firsts[index + 1 :]]
                for index, each in enumerate(arg.prefix_items) for value in _each(each, table))  # fmt: skip
    if arg.type in ELEMENTS:
        items = _each(arg.items, table) if arg.items is not None else [*table.get(arg.element, ())]
        return ([], *([each] for each in items), items)
    return _entries(arg, table)


def _entries(arg: ArgSpec, table: dict[ArgType, tuple[Any, ...]]) -> Iterator[dict[Any, Any]]:
    declared = next(_maps(arg)) if arg.keys else {}
    yield declared
    key = "a" if arg.key_spec is None else next(iter(_each(arg.key_spec, COMMON)), "a")
    for value in table[ArgType.ANY] if arg.value_spec is None else _each(arg.value_spec, table):
        yield {**declared, key: value}


def _each(arg: ArgSpec, table: dict[ArgType, tuple[Any, ...]]) -> list[Any]:
    """Return values for a nested spec, and None if it is nullable."""
    values = [*arg.choices, *(value for value in _of(arg, table) if takes(arg, value))]
    return [*values, None] if arg.nullable else values


def _maps(arg: ArgSpec) -> Iterator[Any]:
    made = {key.name: next(_values(key), None) for key in arg.keys if key.required}
    yield [made] if arg.type is ArgType.SLICE_MAP else made


def _values(arg: ArgSpec) -> Iterator[Any]:
    yield from arg.choices
    yield from valid_samples(arg)
