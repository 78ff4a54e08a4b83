"""Whether every result that one spec describes was also described by another: the check of changed results.

When in doubt, the answer is no. Descriptions and secrets do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from neuroscript.coercion.types import ELEMENTS, NONE_TYPES, VALUES, ArgType, returns_subset
from neuroscript.errors import UNSET
from neuroscript.spec.nested_values import bound_order, item_of, key_of, value_of
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec
from neuroscript.tools.fingerprints import canonical_text


def result_of(spec: ToolSpec) -> ArgSpec:
    """Return the spec of a tool's result, also if its type says everything; a void result is nil."""
    if spec.returns is not None:
        return spec.returns
    kind = ArgType.NIL if spec.return_type is ArgType.VOID else spec.return_type
    return ArgSpec("result", kind, nullable=spec.return_nullable)


def is_narrower(new: ArgSpec, old: ArgSpec) -> bool:
    """Return whether every exact value of *new* is an exact value of *old*."""
    return (not _may_be_none(new) or _may_be_none(old)) and all(_checks(new, old))


def _checks(new: ArgSpec, old: ArgSpec) -> Iterator[bool]:
    """Yield the result of each check of the values other than None; the later ones rely on the earlier ones.

    Only a union as a whole may be None, even if one of its alternatives is ``any``.
    """
    if new.any_of:
        yield all(all(_checks(each, old)) for each in new.any_of)
    elif old.any_of:
        yield any(all(_checks(new, each)) for each in old.any_of)
    else:
        yield returns_subset(new.type, old.type)
        yield not old.format or old.format == new.format
        yield not old.unique_items or new.unique_items
        yield _is_within_bounds(new, old)
        yield from _part_checks(new, old)


def _may_be_none(arg: ArgSpec) -> bool:
    return arg.nullable or arg.type in NONE_TYPES or (arg.type is ArgType.ANY and not arg.any_of)


def _is_within_bounds(new: ArgSpec, old: ArgSpec) -> bool:
    least, most = ([bound_order(each, is_least=is_least) for each in (new, old)] for is_least in (True, False))
    if not (_is_tighter(*least, is_least=True) and _is_tighter(*most, is_least=False)):
        return False
    count = len(new.prefix_items) or None
    shortest, longest = (new.min_length, new.max_length) if count is None else (count, count)
    return _is_tighter(shortest, old.min_length, is_least=True) and _is_tighter(longest, old.max_length, is_least=False)


def _is_tighter(new: Any, old: Any, *, is_least: bool) -> bool:
    """Return whether a limit of one side allows no more than another one; None is no limit."""
    return old is None or (new is not None and (new >= old if is_least else new <= old))


def _part_checks(new: ArgSpec, old: ArgSpec) -> Iterator[bool]:
    if new.type in ELEMENTS:
        yield _has_narrower_items(new, old)
    elif new.type in VALUES:
        yield is_narrower(key_of(new), key_of(old))
        yield _has_narrower_values(new, old)
    elif old.choices:
        before = {*map(canonical_text, old.choices)}
        yield bool(new.choices) and {*map(canonical_text, new.choices)} <= before


def _has_narrower_items(new: ArgSpec, old: ArgSpec) -> bool:
    if old.prefix_items:
        pairs = list(zip(new.prefix_items, old.prefix_items, strict=False))
        is_same_length = len(new.prefix_items) == len(old.prefix_items)
        return is_same_length and all(is_narrower(after, before) for after, before in pairs)
    items = new.prefix_items or (item_of(new),)
    return all(is_narrower(each, item_of(old)) for each in items)


def _has_narrower_values(new: ArgSpec, old: ArgSpec) -> bool:
    after, before = ({key.name: key for key in arg.keys} for arg in (new, old))
    is_open, was_open = (arg.extra_keys or not arg.keys or arg.value_spec is not None for arg in (new, old))
    for name, key in after.items():
        if name in before:
            if not (_is_present(key) or not _is_present(before[name])) or not _is_narrower_key(key, before[name]):
                return False
        elif not (was_open and _is_narrower_key(key, value_of(old))):
            return False
    for name, key in before.items():
        if name not in after and (_is_present(key) or (is_open and not is_narrower(value_of(new), key))):
            return False
    return not is_open or (was_open and is_narrower(value_of(new), value_of(old)))


def _is_present(key: ArgSpec) -> bool:
    """Return whether each map has the key, if only by its default."""
    return bool(key.required) or key.default is not UNSET


def _is_narrower_key(new: ArgSpec, old: ArgSpec) -> bool:
    """Return whether a key holds only values of another spec; an optional key may hold None."""
    may_be_none = new.nullable or (not new.required and new.default in (UNSET, None))
    accepts_none = _may_be_none(old) or not old.required
    return (not may_be_none or accepts_none) and is_narrower(_without_none(new), _without_none(old))


def _without_none(arg: ArgSpec) -> ArgSpec:
    return attrs.evolve(arg, nullable=False, required=True, default=UNSET) if arg.type not in NONE_TYPES else arg
