"""Checks that hold for every coercion, as functions that fail with a message."""

from __future__ import annotations

import datetime
from array import array
from typing import Any

from tests.generator import CANARY, watched

from neuroscript import ArgSpec, ArgType, CoercionError, Handle, coerce
from neuroscript.coercion.types import BUILTINS, ELEMENTS, VALUES

REFUSED = object()
SCALARS = {type(None), bool, int, float, str}


def check(value: Any, rule: ArgSpec | ArgType) -> None:
    """Assert every check for one value and one rule, in both modes.

    A call must return or raise a CoercionError; any other exception fails the test.
    """
    with watched() as finished:
        lax, strict = outcome(value, rule, "lax"), outcome(value, rule, "strict")
    assert finished == [], f"code of the value ran: {finished[:3]}"
    assert strict is REFUSED or lax is not REFUSED, "strict accepts what lax refuses"
    assert strict is REFUSED or same(strict, lax), "strict and lax give different values"
    if lax is not REFUSED:
        check_exact(lax, rule)
    for mode, result in (("lax", lax), ("strict", strict)):
        if result is not REFUSED:
            assert not shares(value, result), f"{mode}: the result shares a container with the value"
            if not same(result, value):  # an equal value has an equal result
                assert same(outcome(result, rule, mode), result), f"{mode}: coercing the result again changes it"


def outcome(value: Any, rule: ArgSpec | ArgType, mode: Any) -> Any:
    """Return the coerced value or `REFUSED`."""
    try:
        return coerce(value, rule, mode=mode)
    except CoercionError as error:
        assert error.problems, "a refusal without a problem"
        assert all(problem.code and problem.expected and problem.got for problem in error.problems)
        assert CANARY not in str(error), f"an error contains a value: {error}"
        return REFUSED


def check_exact(value: Any, rule: ArgSpec | ArgType) -> None:
    """Assert that a value has the exact type of its rule, at every level."""
    kind = rule if isinstance(rule, ArgType) else rule.type
    if value is None:
        return
    if kind is ArgType.ANY or kind is ArgType.ENTITYID:
        check_plain(value)
        return
    assert type(value) is BUILTINS[kind], f"{kind} gave a {type(value).__name__}"
    if not isinstance(rule, ArgType) and rule.keys:
        for each in value if kind is ArgType.SLICE_MAP else [value]:
            check_members(each, rule)
    elif kind in ELEMENTS:
        for each in value:
            assert each is not None or ELEMENTS[kind] is ArgType.ANY
            check_exact(each, ELEMENTS[kind])
    elif kind in VALUES:
        for key, each in value.items():
            assert type(key) is str or (
                kind is ArgType.MAP_ANY_ANY and type(key) in (int, float, bool, bytes, type(None))
            )
            check_exact(each, VALUES[kind])
    else:
        check_scalar(value)


def check_members(value: Any, rule: ArgSpec) -> None:
    """Assert that a map with declared keys contains the required ones, each of its exact type."""
    assert type(value) is dict
    rules = {key.name: key for key in rule.keys}
    for name, each in value.items():
        assert type(name) is str
        assert name in rules or rule.extra_keys
        check_exact(each, rules[name]) if name in rules else check_plain(each)
    for key in rule.keys:
        assert key.name in value or (not key.required and repr(key.default) == "UNSET")


def check_plain(value: Any) -> None:
    """Assert that a value consists of exact built-ins with string keys, at every level."""
    match value:
        case list():
            assert type(value) is list
            for each in value:
                check_plain(each)
        case dict():
            assert type(value) is dict
            for key, each in value.items():
                assert type(key) is str
                check_plain(each)
        case _:
            check_scalar(value)


def check_scalar(value: Any) -> None:
    """Assert that a value that is not a container is a JSON value, a blob, a handle or a time."""
    assert type(value) in (type(None), bool, int, float, str, bytes, Handle, datetime.datetime, array)
    if type(value) is int:
        assert -(2**63) <= value < 2**63
    if type(value) is float:
        assert value - value == 0.0
    if type(value) is str:
        value.encode()


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal and of the same types, at every level."""
    if type(left) is not type(right):
        return False
    if type(left) is list:
        return len(left) == len(right) and all(map(same, left, right))
    if type(left) is dict:
        is_same_keys = len(left) == len(right) and all(map(same, left, right))
        return is_same_keys and all(map(same, left.values(), right.values()))
    return bool(left == right)


def shares(value: Any, result: Any) -> bool:
    """Return whether a container of *value* is also in *result*."""
    return not containers(value).keys().isdisjoint(containers(result))


def containers(value: Any, seen: dict[int, Any] | None = None) -> dict[int, Any]:
    """Return the containers in a value by identity, without running their code."""
    seen = {} if seen is None else seen
    if type(value) in SCALARS or id(value) in seen:
        return seen
    if issubclass(type(value), (list, tuple)):
        if not issubclass(type(value), tuple):
            seen[id(value)] = value
        base = list if issubclass(type(value), list) else tuple
        for each in base.__iter__(value):
            containers(each, seen)
    elif issubclass(type(value), dict):
        seen[id(value)] = value
        for each in dict.values(value):
            containers(each, seen)
    elif type(value) in (array, bytearray):
        seen[id(value)] = value
    return seen
