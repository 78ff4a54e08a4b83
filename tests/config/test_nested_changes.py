"""Changes in items, values, alternatives and formats: every pair of rules in a table, against what each accepts."""

from __future__ import annotations

import datetime
from functools import cache
from itertools import permutations
from typing import Any

import pytest
from tests.config.diffed_tools import change_lines, tool
from tests.spec.nested_rules import RULES

from neuroscript import CoercionError, ToolSpec, coerce
from neuroscript.coercion.constraints import coerce_present
from neuroscript.coercion.context import INVALID, RESULT, ROOT, CoercionPass
from neuroscript.config.result_diff import is_narrower
from neuroscript.config.spec_diff import argument_changes
from neuroscript.tools.fingerprints import canonical_text

VALUES: list[Any] = [
    *(0, 1, 7, -2, 1.0, 1.5, True, False, "1", "-2", "a", "auto", " AUTO", "true", "2020-01-01", "1.50", "red", "Red "),
    *("", "null", "[1]", '{"id": 1}', '["a", 1]', "blue", "RED", "2020-01-01T10:00:00", datetime.date(2020, 1, 1)),
    *(datetime.datetime(2020, 1, 1), [], [1], [1, 1], ["1", 1], [1, "a"], [1, 2], [1, 2, 3], [None], [1, None], ["a"]),
    *([[]], [[1]], [[1], []], [[1, 2]], [["1"]], [[1.5]], ["[1]"], [[[1]]], [True], [1.5], ["2020-01-01"], {1}, {1, 2}),
    *([{}], [{"id": 1}], [{"id": "1"}, {"id": 1}], [{"id": 1, "name": "n"}], [{"id": 1, "name": None}], [{"a": 1}]),
    *({}, {"id": 1}, {"id": "1"}, {"id": 1, "name": "n"}, {"id": 1, "name": 2}, {"id": 1, "name": None}, {"name": "n"}),
    *({"a": 1}, {"a": "1"}, {"a": "b"}, {"a": None}, {"a": [1]}, {"a": []}, {"a": ["x"]}, {"id": 1, "z": 2}, {1: 2}),
    *({"Red": 1}, {"red": 1}, {"red ": 1, "blue": 2}, {"1": "x"}, {1: "x"}, {"id": 1, "z": "t"}, {"id": 1, "z": None}),
    *({"kind": "card", "number": "4"}, {"kind": "cash"}, {"kind": "Cash", "name": "n"}, {"kind": "cash", "id": 1}),
    *([{"kind": "cash"}, {"kind": "card", "number": "4"}], [{"kind": "cash"}, 1], None),
]


@cache
def accepted(name: str) -> frozenset[tuple[int, str]]:
    """Return the index of each value that a rule accepts, and the mode."""
    found = set()
    for index, value in enumerate(VALUES):
        for mode in ("lax", "strict"):
            try:
                coerce(value, RULES[name], mode=mode)  # type: ignore[arg-type]
            except CoercionError:
                continue
            found.add((index, mode))
    return frozenset(found)


PAIRS = list(permutations(RULES, 2))


def test_compatible_change_accepts_every_value_of_before() -> None:
    """No pair of the table is reported as compatible if a value of the old rule is refused by the new one."""
    compatible = 0
    for old, new in PAIRS:
        specs = (ToolSpec("t", "g", (RULES[old],)), ToolSpec("t", "g", (RULES[new],)))
        changes = [*argument_changes(*specs)]
        assert changes, (old, new)
        if all(each.kind == "compatible" for each in changes):
            compatible += 1
            assert accepted(old) <= accepted(new), (old, new, [VALUES[i] for i, _ in accepted(old) - accepted(new)])

    assert compatible >= 40


@cache
def results(name: str) -> dict[str, Any]:
    """Return the exact results of a rule by their canonical text."""
    found = {}
    for value in VALUES:
        try:
            exact = coerce(value, RULES[name])
        except CoercionError:
            continue
        if exact is not None:
            found[canonical_text(exact)] = exact
    return found


def is_result(name: str, value: Any) -> bool:
    """Return whether a value is an exact result of a rule."""
    walk = CoercionPass(RESULT)
    exact = walk.limited(coerce_present, RULES[name], value, ROOT)
    return exact is not INVALID and not walk.noted and canonical_text(exact) == canonical_text(value)


def test_narrower_result_has_only_values_of_before() -> None:
    """No pair of the table is narrower if a result of the new rule is not one of the old rule."""
    narrower = 0
    for old, new in PAIRS:
        if is_narrower(RULES[new], RULES[old]):
            narrower += 1
            others = [value for value in results(new).values() if not is_result(old, value)]
            assert others == [], (old, new)

    assert narrower >= 60


@pytest.mark.parametrize("name", RULES)
def test_rule_is_narrower_than_itself(name: str) -> None:
    assert is_narrower(RULES[name], RULES[name])


ROWS: list[tuple[str, str, str, list[str]]] = [
    ("items, wider", "lists of ints", "lists", ["compatible args.x.items.type: accepts more: slice instead of slice_int"]),
    ("items, bounds", "lists of ints", "lists of few ints", ["breaking args.x.items.max_length: the maximum length is tighter"]),
    ("items, null", "slice_int", "nullable ints", [
        "compatible args.x.type: accepts more: slice instead of slice_int",
        "compatible args.x.items.nullable: now accepts None",
    ]),
    ("tuple", "pair", "pair of ints", ["breaking args.x.prefix_items[1].type: changed from string to int"]),
    ("tuple, longer", "pair", "triple", ["breaking args.x.prefix_items: the number of items changed"]),
    ("set", "slice_int", "unique ints", ["breaking args.x.unique_items: repeated items are now dropped or refused"]),
    ("list", "unique ints", "slice_int", ["breaking args.x.unique_items: repeated items now stay"]),
    ("values", "map of lists of ints", "map of lists", [
        "compatible args.x.value_spec.type: accepts more: slice instead of slice_int"
    ]),
    ("keys", "map by color", "map by more colors", [
        "compatible args.x.key_spec.choices: 1 further value is accepted",
    ]),
    ("keys, clash", "map by color", "map by clashing colors", [
        "compatible args.x.key_spec.choices: 1 further value is accepted",
        "breaking args.x.key_spec.choices: values that differ only by case are ambiguous now",
    ]),
    ("key type", "map by int", "map_any_any", [
        "compatible args.x.key_spec.type: accepts more: any instead of int"
    ]),
    ("further keys", "object and strings", "smaller object", ["breaking args.x.extra_keys: no longer accepts unknown keys"]),
    ("further keys, wider", "object and strings", "open object", [
        "compatible args.x.extra_keys: accepts unknown keys as before",
        "compatible args.x.value_spec.type: accepts more: any instead of string",
    ]),
    ("format", "string", "date", ["breaking args.x.format: now has to be in a format"]),
    ("format, none", "date", "string", ["breaking args.x.format: is no longer read by its format"]),
    ("format, other", "date", "date-time", ["breaking args.x.format: has to be in another format"]),
    ("bounds", "price", "any price", ["compatible args.x.minimum: the minimum is looser"]),
    ("alternative", "int or bool", "int, bool or ints", ["compatible args.x.any_of: accepts further alternatives"]),
    ("alternative, text", "int or bool", "int, bool or string", [
        "breaking args.x.any_of: accepts strings that used to be converted"
    ]),
    ("alternative, gone", "int, bool or ints", "int or bool", ["breaking args.x.any_of: alternatives were removed"]),
    ("alternative, other", "int or bool", "int or float", ["breaking args.x.any_of[1]: the alternative changed"]),
    ("alternative, key", "payment", "payment with id", ["compatible args.x.any_of[1].keys.id: a new optional key"]),
    ("alternative, wider items", "int or ints", "int or list", [
        "compatible args.x.any_of[1].type: accepts more: slice instead of slice_int"
    ]),
    ("alternatives, new", "int", "int or float", ["compatible args.x.any_of: now accepts several alternatives"]),
    ("alternatives, new, text", "int", "int or string", ["breaking args.x.any_of: now accepts several alternatives"]),
    ("alternatives, none", "int or auto", "any", ["compatible args.x.any_of: accepts more than its alternatives"]),
    ("alternatives, one", "int or auto", "int", ["breaking args.x.any_of: no longer accepts every alternative"]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_each_nested_change_is_classified(old: str, new: str, expected: list[str]) -> None:
    """The path leads to the part that changed."""
    assert change_lines(tool(RULES[old]), tool(RULES[new])) == expected


RESULT_ROWS: list[tuple[str, str, str, list[str]]] = [
    ("narrower", "lists", "lists of ints", ["compatible returns: describes fewer results, or the same"]),
    ("wider", "lists of ints", "lists", ["breaking returns: describes other results"]),
    ("one alternative", "int or string", "string", ["compatible return_type: changed from any to string"]),
    ("alternatives", "string", "int or string", ["breaking return_type: changed from string to any"]),
    ("format", "string", "date", ["compatible returns: describes fewer results, or the same"]),
    ("no format", "date", "string", ["breaking returns: describes other results"]),
    ("another type", "lists", "map of lists", ["breaking return_type: changed from slice to map"]),
    ("a described type", "slice", "lists", ["compatible returns: describes fewer results, or the same"]),
]


@pytest.mark.parametrize(
    ("old", "new", "expected"), [row[1:] for row in RESULT_ROWS], ids=[row[0] for row in RESULT_ROWS]
)
def test_each_result_change_is_classified(old: str, new: str, expected: list[str]) -> None:
    """Results may become fewer, because callers handle each that was possible before."""
    assert change_lines(tool(returns=RULES[old]), tool(returns=RULES[new])) == expected
