"""Checks of coercion over generated nested specs: total, exact at every level, idempotent, fresh, without foreign code."""

from __future__ import annotations

from array import array
from decimal import Decimal
from functools import cache
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.coercion.nested_specs import NestedGenerator, canonical_text
from tests.conftest import ALL
from tests.generator import RAN, watched
from tests.properties import REFUSED, check_plain, check_scalar, outcome, same, shares

from neuroscript import ArgSpec, ArgType, ArgumentError, Engine, ToolCall, Toolset, ToolSpec
from neuroscript.coercion.string_formats import read_format
from neuroscript.coercion.types import BUILTINS, ELEMENTS, VALUES
from neuroscript.spec.binding import bind

SHARES: Final = 20
SPECS: Final = 100_000 if ALL else 2_000
VALUES_PER_SPEC: Final = 50

PLAIN: Final = {kind: ArgSpec("x", kind) for kind in ArgType if kind is not ArgType.VOID}
"""The spec of each type without options."""


def check_nested(rule: ArgSpec, value: Any, *, is_exact: bool = False) -> None:
    """Assert every check for one value and one spec, in both modes."""
    with watched():
        lax, strict = outcome(value, rule, "lax"), outcome(value, rule, "strict")
        ran = [*RAN]
    assert ran == [], f"code of the value ran: {ran[:3]}"
    if is_exact:
        assert lax is not REFUSED, "lax refuses an exact value"
        assert strict is not REFUSED, "strict refuses an exact value"
    assert strict is REFUSED or lax is not REFUSED, "strict accepts what lax refuses"
    if lax is REFUSED:
        return
    assert strict is REFUSED or agree(rule, strict, lax), "strict and lax give different values"
    assert value is None or is_of(rule, lax), "lax: the result is not exact"
    assert strict is REFUSED or value is None or same(strict, lax) or is_of(rule, strict), "strict: it is not exact"
    for mode, result in (("lax", lax), ("strict", strict)):
        if result is not REFUSED:
            assert not shares(value, result), f"{mode}: the result shares a container with the value"
            if not same(result, value):  # an equal value has an equal result
                again = outcome(result, rule, mode)
                is_stable = same(again, result) or (mode == "strict" and reads_formats(rule))
                assert is_stable, f"{mode}: coercing the result again changes it"


def agree(rule: ArgSpec, strict: Any, lax: Any) -> bool:
    """Return whether the results of both modes are equal, apart from strings that a format before a string reads."""
    return same(strict, lax) or (reads_formats(rule) and same(blank_texts(strict), blank_texts(lax)))


def reads_formats(rule: ArgSpec) -> bool:
    """Return whether a spec contains a union with a format that is declared before a plain string."""
    formats = [bool(each.format) for each in rule.any_of]
    texts = [each.type is ArgType.STRING and not each.choices and not each.format for each in rule.any_of]
    found = any(texts) and any(formats[: texts.index(True)])
    return found or any(map(reads_formats, rule.nested))


def blank_texts(value: Any) -> Any:
    """Return a value with an empty string for each string."""
    if type(value) is list:
        return [blank_texts(each) for each in value]
    if type(value) is dict:
        return {key: blank_texts(each) for key, each in value.items()}
    return "" if type(value) is str else value


def is_of(rule: ArgSpec, value: Any) -> bool:
    """Return whether a value is an exact value of a spec, at every level. This is the definition, written again."""
    if value is None:
        return rule.nullable or rule.type in (ArgType.ANY, ArgType.NIL)
    if rule.any_of:
        return any(value is not None and is_of(each, value) for each in rule.any_of)
    if rule.format:
        return is_formatted(rule, value)
    if rule.type in ELEMENTS:
        return type(value) is list and has_length(rule, value) and are_items(rule, value)
    if rule.type in VALUES:
        return type(value) is dict and has_length(rule, value) and are_entries(rule, value)
    if rule.type in (ArgType.ANY, ArgType.ENTITYID):
        return is_plain(value)
    if type(value) is not BUILTINS[rule.type]:
        return False
    check_scalar(value)
    return has_length(rule, value) and is_allowed(rule, value)


def is_plain(value: Any) -> bool:
    try:
        check_plain(value)
    except AssertionError:
        return False
    return True


def is_formatted(rule: ArgSpec, value: Any) -> bool:
    if type(value) is not str or read_format(rule.format, value, "strict") != value:
        return False
    bounds = rule.maximum is None or Decimal(value) <= Decimal(rule.maximum)
    return bounds and has_length(rule, value)


def has_length(rule: ArgSpec, value: Any) -> bool:
    if type(value) not in (str, bytes, list, dict, array):
        return True
    return (rule.min_length or 0) <= len(value) <= (len(value) if rule.max_length is None else rule.max_length)


def is_allowed(rule: ArgSpec, value: Any) -> bool:
    if rule.choices and not [each for each in rule.choices if type(each) is type(value) and each == value]:
        return False
    return type(value) not in (int, float) or rule.minimum is None or value >= rule.minimum


def are_items(rule: ArgSpec, values: list[Any]) -> bool:
    if rule.unique_items and len({*map(canonical_text, values)}) != len(values):
        return False
    if rule.prefix_items:
        return len(values) == len(rule.prefix_items) and all(map(is_of, rule.prefix_items, values))
    if rule.items is not None:
        return all(is_of(rule.items, each) for each in values)
    if rule.keys:
        record = ArgSpec("x", ArgType.MAP, keys=rule.keys, extra_keys=rule.extra_keys)
        return all(each is not None and is_of(record, each) for each in values)
    element = PLAIN[ELEMENTS[rule.type]]
    return all(is_of(element, each) and is_allowed(rule, each) for each in values)


def are_entries(rule: ArgSpec, values: dict[Any, Any]) -> bool:
    keys = {key.name: key for key in rule.keys}
    if [key for key in keys.values() if key.required and key.name not in values]:
        return False
    closed = bool(keys) and not rule.extra_keys and rule.value_spec is None
    other = rule.value_spec or PLAIN[VALUES[rule.type]]
    for name, each in values.items():
        if name in keys:
            if not is_of(keys[name], each) and not (each is None and not keys[name].required):
                return False
        elif closed or not is_key(rule, name) or not is_of(other, each):
            return False
    return True


def is_key(rule: ArgSpec, key: Any) -> bool:
    if rule.key_spec is not None:
        return is_of(rule.key_spec, key)
    plain = (str, int, float, bool, bytes, type(None)) if rule.type is ArgType.MAP_ANY_ANY else (str,)
    return type(key) in plain


@pytest.mark.parametrize(
    "share", [pytest.param(share, marks=[pytest.mark.full] if share > 3 else []) for share in range(SHARES)]
)
def test_checks_hold_for_generated_nested_specs(share: int) -> None:
    """400 specs with 50 values each; the full count is 100,000 specs."""
    random = NestedGenerator(f"nested {share}")
    for index in range(SPECS // SHARES):
        rule = random.nested_rule()
        for attempt in range(VALUES_PER_SPEC):
            value, is_exact = random.nested_value(rule)
            try:
                check_nested(rule, value, is_exact=is_exact)
            except BaseException as error:
                error.add_note(f"share {share}, spec {index}, value {attempt}: {rule}")
                raise


@pytest.mark.slow
@settings(max_examples=20_000 if ALL else 1_000)
@given(st.integers(0, 2**32))
def test_checks_hold_for_seeds_of_hypothesis(seed: int) -> None:
    """Other specs in every full run, and a failing seed is stored."""
    random = NestedGenerator(seed)
    rule = random.nested_rule(3)

    value, is_exact = random.nested_value(rule)

    check_nested(rule, value, is_exact=is_exact)


tree = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["2026-01-02", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["kind", "k0", "k1"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=20_000 if ALL else 1_000)
@given(st.integers(0, 400), tree)
def test_checks_hold_for_json_values_of_hypothesis(seed: int, value: object) -> None:
    """hypothesis provides the value, and the generator the spec."""
    check_nested(rule_of(seed), value)


@cache
def rule_of(seed: int) -> ArgSpec:
    """Return the spec of a seed."""
    return NestedGenerator(seed).nested_rule(3)


def test_both_pipelines_agree_on_nested_specs() -> None:
    """The compiled pipeline and the reference binding deliver equal values or equal problems."""
    random = NestedGenerator("pipelines")
    for index in range(SPECS // 10):
        rule = random.nested_rule(3)
        received: list[Any] = []
        tools = Toolset("g")
        tools.add(ToolSpec("t", "g", (rule,)), recorder(received))
        with Engine(toolsets=[tools], plugins="none") as engine:
            for _ in range(5):
                check_pipelines(engine, tools.tools[0].spec, received, random.nested_value(rule)[0], f"{index}: {rule}")


def recorder(received: list[Any]) -> Any:
    """Return the function of a tool that records its argument."""

    def record(rt: Any, x: Any) -> None:
        received.append(x)

    return record


def check_pipelines(engine: Engine, spec: ToolSpec, received: list[Any], value: Any, case: str) -> None:
    received.clear()
    outcomes = []
    try:
        outcomes.append(bind(spec, [value])[0])
    except ArgumentError as error:
        outcomes.append(str(error))
    for call in (lambda: engine.call("g.t", [value]), lambda: engine.call_named("g.t", {"x": value})):
        try:
            call()
            outcomes.append(received.pop())
        except ArgumentError as error:
            outcomes.append(str(error))
    result = engine.execute(ToolCall("g.t", (value,)))
    outcomes.append(received.pop() if result.ok else str(result.error))

    assert same(outcomes, [outcomes[0]] * 4), case
