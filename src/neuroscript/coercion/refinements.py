"""Coercion by rules that refine their type: items, keys and values by specs of their own, sets, formats and unions.

`constraints.coerce_present` calls `coerce_refined` for these rules; the checks of bounds and choices follow there.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from neuroscript.coercion.constraints import coerce_map, coerce_trailing, match_names
from neuroscript.coercion.context import INVALID, LENGTH, UNKNOWN, CoercionPass, KeyItself, Where, type_name
from neuroscript.coercion.scalars import Rejection
from neuroscript.coercion.string_formats import read_format
from neuroscript.coercion.types import ELEMENTS, ArgType
from neuroscript.coercion.values import (
    adapt,
    bytes_in,
    coerce_any_key,
    coerce_element,
    items_of,
    pairs_of,
    put_entry,
    string_keyed,
)

if TYPE_CHECKING:
    from neuroscript.coercion.rule_text import Rule

UNIQUE: Final = Rejection("coercion.duplicate", "unique items", "remove the repeated items")
NULL: Final = Rejection("coercion.null_element", "")


def coerce_refined(walk: CoercionPass, rule: Rule, value: Any, where: Where) -> Any:
    """Return the exact value for a refined rule, or `INVALID`. *value* is not None."""
    if rule.any_of:
        from neuroscript.coercion.unions import coerce_union

        return coerce_union(walk, rule, value, where)
    if rule.format:
        return _text(walk, rule, value, where)
    if rule.type in ELEMENTS:
        return _sequence(walk, rule, value, where)
    pairs = pairs_of(walk, rule.type, value, where)
    return INVALID if pairs is INVALID else walk.within(where, _entries, rule, pairs)


def _text(walk: CoercionPass, rule: Rule, value: Any, where: Where) -> Any:
    value = adapt(walk, value)
    walk.charge(where, value)
    result = read_format(rule.format, value, walk.terms.mode)
    if type(result) is Rejection:
        return walk.note(where, result, type(value))
    walk.spend(where, 1, bytes_in(result))
    return result


def _sequence(walk: CoercionPass, rule: Rule, value: Any, where: Where) -> Any:
    cls, mode = type(value), walk.terms.mode
    is_set = rule.unique_items and mode != "strict" and (cls is set or cls is frozenset)
    if is_set or (mode == "result" and cls is deque):
        value = [*value]
    items = items_of(walk, rule.type, value, where)
    if items is INVALID:
        return INVALID
    if rule.prefix_items and len(items) != len(rule.prefix_items):
        from neuroscript.coercion.rule_text import format_count

        return walk.note(where, LENGTH, format_count(len(items), rule.type))
    return walk.within(where, _items, rule, items)


def _items(walk: CoercionPass, rule: Rule, items: list[Any], where: Where) -> list[Any]:
    if rule.prefix_items:
        each_rule = zip(rule.prefix_items, items, strict=True)
        return [coerce_trailing(walk, each, item, (where, index)) for index, (each, item) in enumerate(each_rule)]
    inner = rule.items
    if inner is not None:
        return [coerce_trailing(walk, inner, item, (where, index)) for index, item in enumerate(items)]
    if rule.keys:
        return [_record(walk, rule, item, (where, index)) for index, item in enumerate(items)]
    kind = ELEMENTS[rule.type]
    return [coerce_element(walk, kind, item, (where, index)) for index, item in enumerate(items)]


def _record(walk: CoercionPass, rule: Rule, item: Any, where: Where) -> Any:
    return coerce_element(walk, ArgType.MAP, None, where) if item is None else coerce_map(walk, rule, item, where)


def drop_repeated(walk: CoercionPass, items: list[Any], where: Where) -> list[Any]:
    """Return the items without repetitions; in other modes than lax, a repetition is a problem."""
    seen: dict[Any, Any] = {}
    for index, item in enumerate(items):
        identity = identity_of(item)
        if identity in seen and walk.terms.mode != "lax":
            walk.note((where, index), UNIQUE, f"a repeated {type_name(item)}")
        seen.setdefault(identity, item)
    return [*seen.values()]


def identity_of(value: Any) -> Any:
    """Return a hashable value that is equal only for exact values of equal types and contents."""
    kind = type(value)
    if kind is list:
        return (list, *map(identity_of, value))
    if kind is dict:
        return (dict, frozenset((identity_of(key), identity_of(each)) for key, each in value.items()))
    return (kind, value.tobytes() if kind.__name__ == "array" else value)


def _entries(walk: CoercionPass, rule: Rule, pairs: list[tuple[Any, Any]], where: Where) -> dict[Any, Any]:
    if rule.key_spec is not None or rule.type is ArgType.MAP_ANY_ANY:
        pairs = _exact_keys(walk, rule, pairs, where)
    if rule.type is ArgType.MAP_ANY_ANY:
        return {key: _value(walk, rule, each, (where, key)) for key, each in pairs}
    by_name = string_keyed(walk, pairs, where)
    if not rule.keys:
        return {name: _value(walk, rule, each, (where, name)) for name, each in by_name.items()}
    order = [*by_name]
    declared = {key.name for key in rule.keys}
    others = {name: by_name.pop(name) for name in order if name not in declared}
    found = match_names(walk, rule.keys, by_name, False, where)
    if rule.value_spec is None and not rule.extra_keys:
        for name, each in others.items():
            walk.note((where, name), UNKNOWN, type(each))
        return found
    found |= {name: _value(walk, rule, each, (where, name)) for name, each in others.items()}
    return {name: found.pop(name) for name in order if name in found} | found


def _exact_keys(walk: CoercionPass, rule: Rule, pairs: list[tuple[Any, Any]], where: Where) -> list[tuple[Any, Any]]:
    """Return pairs with exact keys; keys that become equal are a problem."""
    declared = {key.name for key in rule.keys}
    entries: dict[Any, Any] = {}
    for key, value in pairs:
        is_declared = type(key) is str and key in declared
        put_entry(walk, entries, key if is_declared else _key(walk, rule, key, where), value, where)
    return [*entries.items()]


def _key(walk: CoercionPass, rule: Rule, key: Any, where: Where) -> Any:
    if rule.key_spec is None:
        return coerce_any_key(walk, key, where)
    return coerce_trailing(walk, rule.key_spec, key, (where, KeyItself(key)))


def _value(walk: CoercionPass, rule: Rule, value: object, where: Where) -> Any:
    return (
        coerce_element(walk, ArgType.ANY, value, where)
        if rule.value_spec is None
        else coerce_trailing(walk, rule.value_spec, value, where)
    )
