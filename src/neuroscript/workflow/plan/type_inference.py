"""Static types of references: the type of a part of a value, and which types can be passed where."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from neuroscript.coercion.constraints import coerce
from neuroscript.coercion.types import CHOICE_TYPES, ELEMENTS, LENGTH_TYPES, NONE_TYPES, TYPES, VALUES, ArgType
from neuroscript.errors import ArgumentError
from neuroscript.spec.nested_values import item_of, value_of
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.workflow.plan.references import is_index

UNKNOWN: Final = frozenset({*ArgType, None} - CHOICE_TYPES - LENGTH_TYPES)
"""Types that allow no static check."""


def type_at(kind: ArgType, path: Sequence[str | int]) -> ArgType | None:
    """Return the type at *path* within a value of a type; `NIL` if no value can have that path."""
    for number, step in enumerate(path):
        if kind in NONE_TYPES:
            return ArgType.NIL
        if kind in UNKNOWN:
            return None
        inner = VALUES.get(kind) or (ELEMENTS.get(kind) if is_index(step) else None)
        if inner is None:
            return ArgType.NIL if kind is not ArgType.EMBEDDING or number < len(path) - 1 else ArgType.FLOAT
        kind = inner
    return kind


def part_at(arg: ArgSpec, path: Sequence[str | int]) -> ArgType | None:
    """Return the type at *path* within a value that a spec describes; `NIL` if no value can have that path."""
    if not path:
        return arg.type
    if arg.any_of:
        found = {part_at(each, path) for each in arg.any_of} - {ArgType.NIL}
        return (found.pop() if len(found) == 1 else None) if found else ArgType.NIL
    if not arg.has_parts:
        return type_at(arg.type, path)
    step, rest = path[0], path[1:]
    if arg.type in VALUES:
        return _entry_at(arg, step, rest)
    if arg.type not in ELEMENTS or not is_index(step):
        return ArgType.NIL
    if arg.prefix_items:
        index, count = int(step), len(arg.prefix_items)
        return part_at(arg.prefix_items[index], rest) if -count <= index < count else ArgType.NIL
    return part_at(item_of(arg), rest)


def _entry_at(arg: ArgSpec, step: str | int, rest: Sequence[str | int]) -> ArgType | None:
    key = next((key for key in arg.keys if key.name == str(step)), None)
    if key is not None:
        return part_at(key, rest)
    is_open = arg.extra_keys or not arg.keys or arg.value_spec is not None
    return part_at(value_of(arg), rest) if is_open else ArgType.NIL


def sample_values(kind: ArgType) -> tuple[Any, ...]:
    """Return sample values of a type. Every type that accepts any value of the type accepts one of them."""
    row = TYPES[kind]
    if kind is ArgType.STRING:
        return (*row.samples, *(each.example.strip('"') for each in TYPES.values()))
    if kind in ELEMENTS:
        return ([],)
    return ({},) if kind in VALUES else (*row.samples, *row.rare_samples)


@cache
def can_fit(source: ArgType, target: ArgType) -> bool:
    """Return whether some value of a type is accepted where another type is declared."""
    if target in UNKNOWN or source == target:
        return True
    return any(_is_accepted(sample, target) for sample in sample_values(source))


def can_fit_rule(source: ArgType, target: ArgSpec) -> bool:
    """Return whether some value of a type may be accepted by a spec; the samples are no strings in a format."""
    if not target.format:
        return can_fit(source, target.type)
    return source is ArgType.STRING or any(_is_accepted(sample, target) for sample in sample_values(source))


def _is_accepted(sample: Any, target: ArgType | ArgSpec) -> bool:
    try:
        coerce(sample, target)
    except ArgumentError:
        return False
    return True
