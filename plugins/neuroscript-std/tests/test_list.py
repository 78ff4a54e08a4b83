"""The list toolset, called through an engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from neuroscript import CallError, Engine, ToolFailed

VECTORS = Path(__file__).parents[3] / "tests" / "vectors" / "upstream.json"
UPSTREAM = [case for case in json.loads(VECTORS.read_text()) if case["tool_or_fn"].startswith("tool.list.")]
CODES = {"toolset-090": "coercion.fraction"}
"""What our line says where upstream's test only knows that it fails."""


@pytest.mark.parametrize("case", UPSTREAM, ids=lambda case: case["id"])
def test_upstream_cases(engine: Engine, case: dict[str, Any]) -> None:
    """The expectations of upstream's own tests hold here."""
    try:
        result: object = engine.call(case["tool_or_fn"], case["args"])
    except CallError as error:
        assert error.retry == "model"
        result = error.code

    assert CODES.get(case["id"], case["expect"].get("value")) == result


CALLS = {
    "append nothing to nothing": ("append", [[], None], [None]),
    "append a list as one element": ("append", [[1], [2]], [1, [2]]),
    "prepend None": ("prepend", [["a"], None], [None, "a"]),
    "get the first": ("get", [[1, 2], 0], 1),
    "get the last": ("get", [[1, 2], 1], 2),
    "get None that is there": ("get", [[None], 0, "default"], None),
    "get behind the end": ("get", [[1, 2], 2, "default"], "default"),
    "get before the beginning": ("get", [[1, 2], -2, "default"], "default"),
    "get a long way off": ("get", [[1], 2**62], None),
    "slice with both ends outside": ("slice", [[1, 2, 3], -9, 9], [1, 2, 3]),
    "slice that begins below 0": ("slice", [[1, 2, 3], -1, 2], [1, 2]),
    "slice that ends below 0": ("slice", [[1, 2, 3], 0, -1], []),
    "slice that begins at the end": ("slice", [[1, 2, 3], 3, 3], []),
    "slice whose end is before its start": ("slice", [[1, 2, 3], 2, 1], []),
    "tail of 0": ("tail", [[1, 2], 0], []),
    "tail of an empty list": ("tail", [[], 3], []),
    "rest of one": ("rest", [[1]], []),
    "reverse": ("reverse", [[1, [2, 3]]], [[2, 3], 1]),
    "sort nothing": ("sort", [[]], []),
    "sort strings by code point": ("sort", [["é", "z", "Z", ""]], ["", "Z", "z", "é"]),
    "sort large whole numbers exactly": ("sort", [[2**53 + 1, 2.0**53, 2**53 - 1]], [2**53 - 1, 2.0**53, 2**53 + 1]),
}


@pytest.mark.parametrize(("tool", "args", "expected"), CALLS.values(), ids=CALLS)
def test_results(engine: Engine, tool: str, args: list[Any], expected: object) -> None:
    """Edge cases: out of range indexes and empty lists; elements keep their values and types."""
    result = engine.call(f"list.{tool}", args)

    assert repr(expected) == repr(result)


def test_sorting_is_stable(engine: Engine) -> None:
    """Equal elements keep their order, which is visible if an int equals a float."""
    result = engine.call("list.sort", [[1.0, 0, 1, -0.0, 1.0]])

    assert repr(result) == "[0, -0.0, 1.0, 1, 1.0]"


MIXED = {
    "a number and a string": ([1, "1"], "int and str"),
    "booleans": ([True, False], "bool"),
    "a boolean among numbers": ([1, 2.5, True], "bool and float and int"),
    "None": ([None], "None"),
    "lists": ([[1], [2]], "list"),
}


@pytest.mark.parametrize(("items", "got"), MIXED.values(), ids=MIXED)
def test_mixed_list_is_not_sorted(engine: Engine, items: list[Any], got: str) -> None:
    """Only lists of strings or of numbers can be sorted; the error names types, not values."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("list.sort", [items])

    assert f"list.sort: list: expected only strings or only numbers, got {got}" == str(caught.value)
    assert (caught.value.code, caught.value.retry) == ("list.mixed", "model")


EQUAL = {
    "an int and the same float": (1, 1.0, True),
    "a large int and the float next to it": (2**53 + 1, 2.0**53, False),
    "0 and -0.0": (0, -0.0, True),
    "1 and True": (1, True, False),
    "False and 0.0": (False, 0.0, False),
    "False and False": (False, False, True),
    "None and False": (None, False, False),
    "a string and a number": ("1", 1, False),
    "a string and its bytes": ("a", b"a", False),
    "lists, deep": ([1, [2, {"a": 3}]], [1.0, [2.0, {"a": 3.0}]], True),
    "lists with a boolean in one": ([[1]], [[True]], False),
    "lists of another length": ([1, 2], [1], False),
    "maps in another order": ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    "maps with other keys": ({"a": None}, {"b": None}, False),
    "a map with one key more": ({"a": 1}, {"a": 1, "b": 2}, False),
    "a list and a map": ([], {}, False),
}


@pytest.mark.parametrize(("one", "other", "expected"), EQUAL.values(), ids=EQUAL)
def test_contains_compares_deeply_and_by_value(engine: Engine, one: Any, other: Any, expected: bool) -> None:
    """Numbers are compared by value at any depth, a boolean equals no number, and the comparison is symmetric."""
    result = engine.call("list.contains", [["x", one], other]), engine.call("list.contains", [["x", other], one])

    assert (expected, expected) == result


@pytest.mark.parametrize("tool", ["append", "appendinplace", "prepend", "rest", "slice", "tail", "reverse", "sort"])
def test_lists_of_the_caller_are_unchanged(engine: Engine, tool: str) -> None:
    """Every result is a new list, also from appendinplace."""
    given = ["b", "a"]
    further = {"append": ["c"], "appendinplace": ["c"], "prepend": ["c"], "slice": [0, 2], "tail": [2]}

    result = engine.call(f"list.{tool}", [given, *further.get(tool, [])])

    assert given == ["b", "a"]
    assert result is not given


def test_appendinplace_equals_append(engine: Engine) -> None:
    """A caller sees only the result."""
    args = [[1, {"a": 2}], None]

    assert engine.call("list.append", args) == engine.call("list.appendinplace", args)
