"""Shapes of maps, called through an engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from neuroscript import Engine, ToolFailed
from neuroscript_std.shapes import parse_shape


@pytest.fixture(scope="module")
def failure(failure: Callable[..., ToolFailed]) -> Callable[..., ToolFailed]:
    """The shared fixture; here the model can fix every failure."""

    def failing(tool: str, *args: Any) -> ToolFailed:
        error = failure(tool, *args)
        assert error.retry == "model"
        return error

    return failing


# Shapes

FITTING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "each type": (
        {"s": "", "i": -1, "f": 0.5, "b": False, "a": None},
        {"s": "string", "i": "int", "f": "float", "b": "bool", "a": "any"},
    ),
    "a whole float is an int": ({"i": 5.0}, {"i": "int"}),
    "an int is a float": ({"f": 5}, {"f": "float"}),
    "strings with a format": (
        {"e": "a@b.com", "u": "https://example.com", "d": "2025-01-01T00:00:00Z"},
        {"e": "email", "u": "url", "d": "isoDatetime"},
    ),
    "an optional field that is there": ({"a": 1}, {"a?": "int"}),
    "an optional field that is not": ({}, {"a?": "int"}),
    "an empty list": ({"a": []}, {"a[]": "int"}),
    "a list": ({"a": ["x", "y"]}, {"a[]": "string"}),
    "a list of anything": ({"a": [None, 1, [2]]}, {"a[]": "any"}),
    "an optional list": ({"a": [1], "b": [2]}, {"a[]?": "int", "b?[]": "int", "c?[]": "int"}),
    "a map": ({"m": {"x": {"y": 1}}}, {"m": {"x": {"y": "int"}}}),
    "a list of maps": ({"m": [{"x": 1}, {"x": 2}]}, {"m[]": {"x": "int"}}),
    "names with dots and blanks": ({"a.b": 1, "first name": "x"}, {"a.b": "int", "first name?": "string"}),
    "a question mark within": ({"a?b": 1, "[]a": 2}, {"a?b": "int", "[]a": "int"}),
}


@pytest.mark.parametrize(("value", "shape"), FITTING.values(), ids=FITTING)
def test_valid_maps(engine: Engine, value: dict[str, Any], shape: dict[str, Any]) -> None:
    """Every field has its type, and there are no other fields."""
    assert engine.call("shape.validate", [value, shape]) is True


MISMATCHES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a missing field": ({}, {"a": "int"}, "a: expected int, got nothing"),
    "a missing list": ({}, {"a[]": "int"}, "a: expected list of int, got nothing"),
    "a missing map": ({}, {"a": {}}, "a: expected map, got nothing"),
    "a missing list of maps": ({}, {"a[]": {}}, "a: expected list of map, got nothing"),
    "a missing field within": ({"a": {}}, {"a": {"b": "email"}}, "a.b: expected email, got nothing"),
    "another type": ({"a": 1}, {"a": "string"}, "a: expected string, got int"),
    "a boolean as an int": ({"a": True}, {"a": "int"}, "a: expected int, got bool"),
    "a boolean as a float": ({"a": True}, {"a": "float"}, "a: expected float, got bool"),
    "a fraction as an int": ({"a": 1.5}, {"a": "int"}, "a: expected int, got float"),
    "a numeric string as an int": ({"a": "1"}, {"a": "int"}, "a: expected int, got str"),
    "a number as a bool": ({"a": 1}, {"a": "bool"}, "a: expected bool, got int"),
    "None": ({"a": None}, {"a?": "string"}, "a: expected string, got None"),
    "None as a list": ({"a": None}, {"a?[]": "any"}, "a: expected list of any, got None"),
    "None as a map": ({"a": None}, {"a": {}}, "a: expected map, got None"),
    "a list where one is meant": ({"a": ["x"]}, {"a": "string"}, "a: expected string, got list"),
    "one where a list is meant": ({"a": "x"}, {"a[]": "string"}, "a: expected list of string, got str"),
    "elements": (
        {"a": [1, "x", 2]},
        {"a[]": "string"},
        "a[0]: expected string, got int; a[2]: expected string, got int",
    ),
    "a field of a map in a list": (
        {"a": [{"b": 1}, {"b": "x"}]},
        {"a[]": {"b": "int"}},
        "a[1].b: expected int, got str",
    ),
    "an element that is not a map": ({"a": [1]}, {"a[]": {"b": "int"}}, "a[0]: expected map, got int"),
    "another format": ({"a": "ada"}, {"a": "email"}, "a: expected email, got a string of another format"),
    "a number instead of a formatted string": ({"a": 1}, {"a": "url"}, "a: expected url, got int"),
    "more than is named": ({"a": 1, "b": 2}, {"a": "int"}, "b: expected nothing, got int"),
    "more than is named, within": ({"a": {"x": None}}, {"a": {}}, "a.x: expected nothing, got None"),
    "all of it": (
        {"a": 1, "b": "x", "d": 2},
        {"a": "string", "b": "int", "c": "bool"},
        "a: expected string, got int; b: expected int, got str; c: expected bool, got nothing; d: expected nothing, got int",
    ),
    "names that need quotes": (
        {"a.b": {"": 1, "x\n": 2}},
        {"a.b": {"c[d]": "int"}},
        r"['a.b']['c[d]']: expected int, got nothing; ['a.b']['']: expected nothing, got int; "
        r"['a.b'].x\n: expected nothing, got int",
    ),
}


@pytest.mark.parametrize(("value", "shape", "text"), MISMATCHES.values(), ids=MISMATCHES)
def test_invalid_maps(
    failure: Callable[..., ToolFailed], value: dict[str, Any], shape: dict[str, Any], text: str
) -> None:
    """Every mismatch is reported with the expected and the actual type, and never a value."""
    error = failure("shape.validate", value, shape)

    assert ("shape.mismatch", "model", text) == (error.code, error.retry, error.text)


def test_at_most_twenty_mismatches_are_listed(failure: Callable[..., ToolFailed]) -> None:
    """The others are counted, because an endless message helps no caller."""
    error = failure("shape.validate", {"a": [1] * 50_000}, {"a[]": "string"})

    reported = [f"a[{index}]: expected string, got int" for index in range(20)]
    assert "; ".join([*reported, "and 49980 more"]) == error.text


def test_allow_extra_applies_at_every_level(engine: Engine, failure: Callable[..., ToolFailed]) -> None:
    """Also to maps in lists, and to nothing else."""
    shape = {"a": "int", "m": {"b": "int"}, "l[]": {"c": "int"}}
    value = {"a": 1, "x": 0, "m": {"b": 1, "x": 0}, "l": [{"c": 1, "x": 0}]}
    options = {"allow_extra": True}

    assert engine.call("shape.validate", [value, shape, options]) is True
    error = failure("shape.validate", {**value, "a": "x"}, shape, options)
    assert "a: expected int, got str" == error.text


def test_case_insensitive_fields(engine: Engine, failure: Callable[..., ToolFailed]) -> None:
    """A key can differ in case from its field; two keys for one field are a mismatch."""
    shape = {"Name": "string", "m?": {"Größe": "int"}}
    options = {"case_insensitive": True}

    assert engine.call("shape.validate", [{"NAME": "Ada", "M": {"GRÖSSE": 1}}, shape, options]) is True
    error = failure("shape.validate", {"NAME": "Ada", "name": 1}, shape, options)
    assert "Name: expected one key, got 2 that differ only in case" == error.text
    assert "NAME: expected nothing, got str" in failure("shape.validate", {"NAME": "Ada"}, shape).text


TYPE = "expected one of string, int, float, bool, any, email, url, isoDatetime or a map of fields"
NAME = "expected a name followed by at most one ? and one []"
BAD_SHAPES: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown type": ({"a": "text"}, f"a: {TYPE}, got another string"),
    "a type in another case": ({"a": "String"}, f"a: {TYPE}, got another string"),
    "a number": ({"a": 123}, f"a: {TYPE}, got int"),
    "a list": ({"a": ["string"]}, f"a: {TYPE}, got list"),
    "None": ({"a": None}, f"a: {TYPE}, got None"),
    "an unknown type within": ({"a[]": {"b?": "x"}}, f"['a[]'].b?: {TYPE}, got another string"),
    "no name": ({"": "int"}, f"['']: {NAME}, got another string"),
    "a suffix alone": ({"?": "int"}, f"?: {NAME}, got another string"),
    "suffixes alone": ({"[]?": "int"}, f"['[]?']: {NAME}, got another string"),
    "one suffix twice": ({"a??": "int"}, f"a??: {NAME}, got another string"),
    "a list of lists": ({"a[][]": "int"}, f"['a[][]']: {NAME}, got another string"),
    "three suffixes": ({"a?[]?": "int"}, f"['a?[]?']: {NAME}, got another string"),
    "one field twice": ({"a": "int", "a?": "int"}, "a?: expected each field once, got another of that name"),
    "all of it": ({"a": 1, "b": 2}, f"a: {TYPE}, got int; b: {TYPE}, got int"),
}


@pytest.mark.parametrize(("shape", "text"), BAD_SHAPES.values(), ids=BAD_SHAPES)
def test_invalid_shapes(failure: Callable[..., ToolFailed], shape: dict[str, Any], text: str) -> None:
    """The whole shape is checked before the value, and its faults have a separate code."""
    error = failure("shape.validate", {"a": 1}, shape)

    assert ("shape.bad_shape", "model", text) == (error.code, error.retry, error.text)


def test_duplicate_case_insensitive_fields(engine: Engine, failure: Callable[..., ToolFailed]) -> None:
    """Without the option they are two fields."""
    shape = {"a": "int", "A": "int"}

    assert engine.call("shape.validate", [{"a": 1, "A": 2}, shape]) is True
    error = failure("shape.validate", {"a": 1}, shape, {"case_insensitive": True})
    assert "A: expected each field once, got another of that name" == error.text


def nested(levels: int) -> dict[str, Any]:
    shape: dict[str, Any] = {"a": "int"}
    for _ in range(levels):
        shape = {"a": shape}
    return shape


def test_shapes_can_be_nested_64_levels() -> None:
    """The depth limit of an engine applies first; without an engine, the same limit holds."""
    assert parse_shape(nested(64))
    with pytest.raises(ToolFailed) as caught:
        parse_shape(nested(65))

    assert str(caught.value).endswith("expected at most 64 levels of nested shapes, got more")
