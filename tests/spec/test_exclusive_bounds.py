"""Bounds that exclude the bound itself, of floats, ints and decimals."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import Annotated, Any

import pytest
from annotated_types import Gt, Le

from neuroscript import (
    ArgSpec,
    ArgumentError,
    CoercionError,
    Engine,
    SpecError,
    Toolset,
    ToolSpec,
    coerce,
    spec_from_data,
    spec_from_schema,
    spec_to_data,
    spec_to_schema,
)
from neuroscript.coercion.rule_text import expected_type
from neuroscript.coercion.schema_inspection import check_schema


@pytest.mark.parametrize(
    ("arg", "text"),
    [
        (ArgSpec("x", "float", exclusive_minimum=0), "float more than 0"),
        (ArgSpec("x", "float", exclusive_maximum=1.5), "float less than 1.5"),
        (ArgSpec("x", "float", exclusive_minimum=0, maximum=1), "float more than 0 and at most 1"),
        (ArgSpec("x", "float", minimum=0, exclusive_maximum=1), "float of at least 0 and less than 1"),
        (ArgSpec("x", "slice_float", exclusive_minimum=0), "list of float, each more than 0"),
        (ArgSpec("x", "int", exclusive_minimum=0, exclusive_maximum=9), "int from 1 to 8"),
        (ArgSpec("x", "string", format="decimal", exclusive_minimum=0), "decimal number more than 0"),
    ],
    ids=lambda each: each if type(each) is str else "",
)
def test_bounds_are_described(arg: ArgSpec, text: str) -> None:
    """In errors, prompts and pages."""
    assert expected_type(arg) == text


@pytest.mark.parametrize(
    ("kind", "written", "same"),
    [
        ("int", {"exclusive_minimum": 0}, {"minimum": 1}),
        ("int", {"exclusive_minimum": 0.5, "exclusive_maximum": 2.5}, {"minimum": 1, "maximum": 2}),
        ("int", {"exclusive_minimum": 0, "minimum": 5}, {"minimum": 5}),
        ("slice_int", {"exclusive_maximum": 0}, {"maximum": -1}),
        ("float", {"exclusive_minimum": 0, "minimum": 0}, {"exclusive_minimum": 0}),
        ("float", {"exclusive_minimum": 0, "minimum": 1}, {"minimum": 1}),
        ("float", {"exclusive_maximum": 0, "maximum": -1}, {"maximum": -1}),
        ("float", {"exclusive_minimum": -0.0}, {"exclusive_minimum": 0.0}),
    ],
)
def test_a_range_has_one_form(kind: str, written: dict[str, Any], same: dict[str, Any]) -> None:
    """Only the stricter bound of a side remains, and ints have inclusive bounds."""
    assert ArgSpec("x", kind, **written) == ArgSpec("x", kind, **same)
    assert repr(ArgSpec("x", kind, **written)) == repr(ArgSpec("x", kind, **same))


@pytest.mark.parametrize(
    ("kind", "fields", "problem"),
    [
        ("float", {"exclusive_minimum": float("nan")}, "exclusive_minimum must be a finite number"),
        ("float", {"exclusive_maximum": float("inf")}, "exclusive_maximum must be a finite number"),
        ("float", {"exclusive_minimum": 1, "maximum": 1}, "no float is within the bounds"),
        ("float", {"exclusive_minimum": 0, "exclusive_maximum": 5e-324}, "no float is within the bounds"),
        ("float", {"exclusive_minimum": 1.7976931348623157e308}, "no float is within the bounds"),
        ("int", {"exclusive_minimum": 0, "exclusive_maximum": 1}, "no int is within the bounds"),
        ("int", {"exclusive_minimum": 2**63}, "no int is within the bounds"),
        ("string", {"exclusive_minimum": 0}, "exclusive_minimum and exclusive_maximum are not valid for string"),
    ],
)
def test_an_invalid_range_is_refused(kind: str, fields: dict[str, Any], problem: str) -> None:
    """Including a range without any value."""
    with pytest.raises(SpecError) as caught:
        ArgSpec("x", kind, **fields)

    assert caught.value.problems == (problem,)


def test_a_call_excludes_the_bound() -> None:
    """In the compiled pipeline as in the general one."""
    rate = ArgSpec("rate", "float", exclusive_minimum=0, maximum=1)
    tools = Toolset("g")
    tools.add(ToolSpec("f", "g", (rate,), return_type="float"), lambda rt, rate: rate)

    with Engine(toolsets=[tools]) as engine:
        assert engine.call("g.f", [5e-324]) == 5e-324
        assert engine.call("g.f", ["1"]) == 1.0
        for wrong in (0.0, -0.0, "0", 1.5):
            with pytest.raises(ArgumentError) as caught:
                engine.call("g.f", [wrong])
            assert str(caught.value) == ("g.f: rate: expected float more than 0 and at most 1, got float out of bounds")


def test_decimals_are_compared_exactly() -> None:
    """Not as floats."""
    tools = Toolset("g")

    @tools.tool
    def pay(price: Annotated[Decimal, Gt(Decimal("0.1")), Le(100)]) -> str:
        """Pay a price."""
        return str(price)

    (arg,) = tools.tools[0].spec.args
    assert (arg.exclusive_minimum, arg.maximum) == (0.1, 100)
    assert coerce("0.10000000000000000000001", arg) == "0.10000000000000000000001"
    for wrong in ("0.1", "0.10", "100.00000000000000000001"):
        with pytest.raises(CoercionError):
            coerce(wrong, arg)


@pytest.mark.parametrize(
    ("rule", "is_covered"),
    [
        ({"type": "number", "exclusiveMinimum": 0}, True),
        ({"type": "number", "minimum": 0, "exclusiveMaximum": 1}, True),
        ({"type": "integer", "exclusiveMinimum": 0}, True),
        ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, False),
        ({"type": "number", "exclusiveMinimum": 1, "maximum": 1}, False),
    ],
)
def test_a_spec_covers_exclusive_bounds_of_a_schema(rule: dict[str, Any], is_covered: bool) -> None:
    """No schema validator is needed, unless the range is empty or the bound is not a number."""
    schema = {"type": "object", "properties": {"x": rule}, "required": ["x"], "additionalProperties": False}
    spec = spec_from_schema("g.f", schema)

    assert is_covered is not (bool(spec.schema) and check_schema(spec.schema).asks_more)


@pytest.mark.parametrize(
    ("arg", "words"),
    [
        (ArgSpec("x", "float", exclusive_minimum=0), {"exclusiveMinimum": 0}),
        (ArgSpec("x", "float", exclusive_minimum=0, exclusive_maximum=1.5), {"exclusiveMinimum": 0, "exclusiveMaximum": 1.5}),
        (ArgSpec("x", "slice_float", exclusive_minimum=0), {}),
        (ArgSpec("x", "string", format="decimal", exclusive_minimum=0, maximum=9), {}),
    ],
)  # fmt: skip
def test_a_spec_survives_a_schema_and_plain_data(arg: ArgSpec, words: dict[str, Any]) -> None:
    """The bounds of a float are keywords of JSON Schema, those of a decimal are in our keyword."""
    spec = ToolSpec("f", "g", (arg,))

    schema = spec_to_schema(spec)["properties"]["x"]
    assert {word: each for word, each in schema.items() if word.startswith("exclusive")} == words
    assert spec_from_schema("g.f", spec_to_schema(spec)) == spec
    assert spec_from_data(spec_to_data(spec)) == spec


def test_a_missing_value_of_a_defaultdict_is_never_out_of_bounds() -> None:
    """Zero is the empty value of a float, and is excluded here."""
    tools = Toolset("g")

    @tools.tool
    def rates(found: defaultdict[str, Annotated[float, Gt(0)]]) -> bool:
        """Return whether missing values are added."""
        return found.default_factory is not None

    with Engine(toolsets=[tools]) as engine:
        assert engine.call("g.rates", [{}]) is False
