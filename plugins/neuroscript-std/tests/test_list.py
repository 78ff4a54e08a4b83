"""The list toolset, through an engine as a caller would use it."""

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
def test_upstreams_cases_hold(engine: Engine, case: dict[str, Any]) -> None:
    """What upstream's own tests expect of its list tools is what these give."""
    try:
        came: object = engine.call(case["tool_or_fn"], case["args"])
    except CallError as error:
        assert error.retry == "model"
        came = error.code

    assert CODES.get(case["id"], case["expect"].get("value")) == came


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
    "sort texts by code point": ("sort", [["é", "z", "Z", ""]], ["", "Z", "z", "é"]),
    "sort large whole numbers exactly": ("sort", [[2**53 + 1, 2.0**53, 2**53 - 1]], [2**53 - 1, 2.0**53, 2**53 + 1]),
}


@pytest.mark.parametrize(("tool", "args", "expected"), CALLS.values(), ids=CALLS)
def test_call_gives(engine: Engine, tool: str, args: list[Any], expected: object) -> None:
    """The edges of a list are where nothing is, and a result has the elements as they were, of their types."""
    came = engine.call(f"list.{tool}", args)

    assert repr(expected) == repr(came)


def test_sorting_is_stable(engine: Engine) -> None:
    """Elements that are equal stay in their order, which shows where an int and a float are equal."""
    came = engine.call("list.sort", [[1.0, 0, 1, -0.0, 1.0]])

    assert repr(came) == "[0, -0.0, 1.0, 1, 1.0]"


MIXED = {
    "a number and a text": ([1, "1"], "int and str"),
    "truth values": ([True, False], "bool"),
    "a truth value among numbers": ([1, 2.5, True], "bool and float and int"),
    "None": ([None], "None"),
    "lists": ([[1], [2]], "list"),
}


@pytest.mark.parametrize(("items", "got"), MIXED.values(), ids=MIXED)
def test_a_mixed_list_is_not_sorted(engine: Engine, items: list[Any], got: str) -> None:
    """Only texts alone and numbers alone have an order; the error names types and no value."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("list.sort", [items])

    assert f"list.sort: list: expected all texts or all numbers, got {got}" == str(caught.value)
    assert (caught.value.code, caught.value.retry) == ("list.mixed", "model")


EQUAL = {
    "an int and the same float": (1, 1.0, True),
    "a large int and the float next to it": (2**53 + 1, 2.0**53, False),
    "0 and -0.0": (0, -0.0, True),
    "1 and True": (1, True, False),
    "False and 0.0": (False, 0.0, False),
    "False and False": (False, False, True),
    "None and False": (None, False, False),
    "a text and a number": ("1", 1, False),
    "a text and its bytes": ("a", b"a", False),
    "lists, deep": ([1, [2, {"a": 3}]], [1.0, [2.0, {"a": 3.0}]], True),
    "lists with a truth value in one": ([[1]], [[True]], False),
    "lists of another length": ([1, 2], [1], False),
    "maps in another order": ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    "maps with other keys": ({"a": None}, {"b": None}, False),
    "a map with one key more": ({"a": 1}, {"a": 1, "b": 2}, False),
    "a list and a map": ([], {}, False),
}


@pytest.mark.parametrize(("one", "other", "expected"), EQUAL.values(), ids=EQUAL)
def test_contains_compares_deeply_and_by_value(engine: Engine, one: Any, other: Any, expected: bool) -> None:
    """Numbers are equal by value at any depth, a truth value is equal to no number, and it is so both ways round."""
    came = engine.call("list.contains", [["x", one], other]), engine.call("list.contains", [["x", other], one])

    assert (expected, expected) == came


@pytest.mark.parametrize("tool", ["append", "appendinplace", "prepend", "rest", "slice", "tail", "reverse", "sort"])
def test_no_tool_changes_the_list_of_its_caller(engine: Engine, tool: str) -> None:
    """A result is a new list, and the one that was given is as it was, of appendinplace too."""
    given = ["b", "a"]
    further = {"append": ["c"], "appendinplace": ["c"], "prepend": ["c"], "slice": [0, 2], "tail": [2]}

    came = engine.call(f"list.{tool}", [given, *further.get(tool, [])])

    assert given == ["b", "a"]
    assert came is not given


def test_appendinplace_gives_what_append_gives(engine: Engine) -> None:
    """The two names mean the same, for a caller sees only the result."""
    args = [[1, {"a": 2}], None]

    assert engine.call("list.append", args) == engine.call("list.appendinplace", args)
