"""The coercion of values by tools of AgentHeaven."""

from __future__ import annotations

from typing import Any, Literal, Optional

import pytest
from fastmcp import Context as FastMCPContext
from fastmcp.tools import Tool as FastMCPTool
from tests.interop.agentheaven_tools import Point, make_tool

from neuroscript import ArgumentError, ToolFailed
from neuroscript.interop.agentheaven import ToolSpec


def outcome(annotation: Any, value: Any) -> Any:
    """Return the value that a tool receives, or ArgumentError if it is rejected."""
    try:
        return make_tool(annotation)(x=value)
    except ArgumentError:
        return ArgumentError


REFUSED = ArgumentError


@pytest.mark.parametrize(("value", "expected"), [("5", 5), (" 5 ", 5), ("2.0", 2), (5.0, 5), (True, REFUSED)], ids=repr)
def test_ah_59_int_accepts_other_spellings(value: Any, expected: Any) -> None:
    """As in AgentHeaven, except for True, which is not a number."""
    assert expected == outcome(int, value)


@pytest.mark.parametrize("value", ["5.5", 2.5, "x", None, 10**30], ids=repr)
def test_ah_60_int_rejects_other_values(value: Any) -> None:
    """As in AgentHeaven, and values outside 64 bits are rejected too."""
    assert REFUSED is outcome(int, value)


@pytest.mark.parametrize(
    ("value", "expected"), [("1e3", 1000.0), ("nan", REFUSED), (True, REFUSED), (1, 1.0)], ids=repr
)
def test_ah_61_float_accepts_finite_numbers(value: Any, expected: Any) -> None:
    """As in AgentHeaven, except for numbers that are not finite."""
    assert expected == outcome(float, value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("true", True),
        ("1", True),
        (1, True),
        (0.0, False),
        ("yes", REFUSED),
        ("off", REFUSED),
        (2, REFUSED),
        ("", REFUSED),
    ],
    ids=repr,
)
def test_ah_62_bool_accepts_documented_spellings(value: Any, expected: Any) -> None:
    """As in AgentHeaven, except for strings such as yes."""
    assert expected == outcome(bool, value)


@pytest.mark.parametrize("value", [5, True, None, b"a"], ids=repr)
def test_ah_63_str_accepts_only_strings(value: Any) -> None:
    """As in AgentHeaven, and bytes are rejected too."""
    assert REFUSED is outcome(str, value)


@pytest.mark.parametrize(
    ("value", "expected"), [((1, 2), [1, 2]), ("[1]", [1]), ({1}, REFUSED), ("a", REFUSED), ({}, REFUSED)], ids=repr
)
def test_ah_64_list_accepts_json_arrays(value: Any, expected: Any) -> None:
    """A set is rejected, because it has no order."""
    assert expected == outcome(list, value)


@pytest.mark.parametrize(("kind", "value", "expected"), [(int, ["1", "2"], [1, 2]), (str, [1], REFUSED)], ids=repr)
def test_ah_65_list_checks_each_item(kind: type, value: Any, expected: Any) -> None:
    """As upstream."""
    assert expected == outcome(list[kind], value)  # type: ignore[valid-type]


@pytest.mark.parametrize(("value", "expected"), [([("a", 1)], REFUSED), ('{"a": 1}', {"a": 1})], ids=repr)
def test_ah_66_dict_accepts_json_objects(value: Any, expected: Any) -> None:
    """Pairs are rejected, as in AgentHeaven."""
    assert expected == outcome(dict, value)


def test_ah_67_literal_and_optional_are_in_the_schema() -> None:
    """The schema contains an enumeration and null."""

    def chosen(d: Literal["x", "y"], note: Optional[str] = None, e: Literal["z"] = "z") -> str:
        return d

    handle = ToolSpec.from_function(chosen)

    assert {"type": "string", "enum": ["x", "y"]} == handle.params["d"]
    assert {"type": ["string", "null"], "default": None} == handle.params["note"]
    assert {"type": "string", "enum": ["z"], "default": "z"} == handle.params["e"]
    assert {"type": ["string", "null"], "enum": ["z", None]} == handle.to_jsonschema()["parameters"]["properties"]["e"]
    with pytest.raises(ArgumentError):
        handle(d="z")


def test_ah_68_class_becomes_a_nested_object() -> None:
    """A dataclass, an attrs class or a TypedDict is created from a map; pydantic models are not supported."""

    def far(point: Point) -> int:
        return point.x + point.y

    handle = ToolSpec.from_function(far)

    assert {"type": "integer"} == handle.params["point"]["properties"]["x"]
    assert ["x"] == handle.params["point"]["required"]
    assert 3 == handle(point={"x": "3"})


async def where(city: str, ctx: FastMCPContext) -> str:
    """Tell which server asks."""
    return f"{city} by {ctx.fastmcp.name}"


def test_ah_69_fastmcp_context_is_hidden_and_injected() -> None:
    """Callers cannot see or set it."""
    handle = ToolSpec.from_fastmcp(FastMCPTool.from_function(where))
    wrong = handle.exec(city="Rome", ctx=1)

    assert ["city"] == list(handle.params) == list(handle.to_mcp().input_schema["properties"])
    assert "Rome by neuroscript" == handle(city="Rome")
    assert "agentheaven.where: ctx: expected only city, got an unknown name of type int" == str(wrong.error)


def test_ah_70_bound_values_are_coerced() -> None:
    """Like arguments; an invalid one is an error for the host."""

    def double(n: int) -> int:
        return 2 * n

    handle = ToolSpec.from_function(double).bind("n", default="4")

    assert 8 == handle()
    handle.state["n"] = "four"
    with pytest.raises(ToolFailed) as caught:
        handle()
    assert "host" == caught.value.retry
    assert "four" not in str(caught.value)
