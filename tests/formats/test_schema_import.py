"""Tools with an imported JSON Schema, and the arguments that it accepts."""

from __future__ import annotations

import json
import sys
from typing import Any

import attrs
import pytest
from tests.formats.foreign_schemas import FOREIGN

from neuroscript import (
    ArgType,
    ArgumentError,
    Engine,
    SpecError,
    ToolImplementation,
    Toolset,
    bind,
    bind_named,
    spec_from_data,
    spec_from_schema,
    spec_to_data,
    spec_to_schema,
)
from neuroscript._imports import install_hint


def test_what_a_schema_says_beyond_a_spec_is_kept_as_it_was() -> None:
    """It is written out again, and what is read off that is the same spec; plain data keeps it too."""
    spec = spec_from_schema("shop.order", FOREIGN, description="Order.")

    assert spec_to_schema(spec, exact=False) == FOREIGN
    assert spec_from_schema("shop.order", spec_to_schema(spec)) == spec
    assert spec_from_data(spec_to_data(spec)) == spec
    assert [(arg.name, str(arg.type)) for arg in spec.args] == [
        ("code", "string"),
        ("mail", "string"),
        ("odd", "int"),
        ("tags", "slice_string"),
        ("either", "any"),
        ("only", "string"),
        ("place", "map"),
    ]


@pytest.mark.parametrize(
    ("given_by_name", "text"),
    [
        ({"code": "a"}, "shop.order: code: expected a string that matches ^[A-Z]+$, got str of length 1"),
        ({"code": "B", "odd": "4"}, "shop.order: odd: expected a multiple of 3, got int"),
        ({"code": "B", "tags": '["a", null]'}, "shop.order: tags[1]: expected string, got None"),
        (
            {"code": "B", "tags": [], "mail": "canary"},
            "shop.order: mail: expected a string in the format email, got str of length 6",
        ),
        (
            {"code": "B", "mail": "a@b.example"},
            "shop.order: expected the keys that other keys require, got dict of length 2",
        ),
        (
            {"code": "B", "either": 1.5},
            "shop.order: either: expected int or string, got float",
        ),
        ({"code": "A"}, "shop.order: expected the key odd, got dict of length 1"),
        (
            {"code": "B", "place": {"zip": "12"}},
            "shop.order: place['zip']: expected string of at least 5 characters, got 2 characters",
        ),
    ],
    ids=lambda each: str(each)[:30],
)
def test_what_a_schema_asks_is_asked_of_exact_values(given_by_name: dict[str, Any], text: str) -> None:
    """Before the function runs, by name and by position; the message contains no value."""
    ran: list[Any] = []
    spec = spec_from_schema("shop.order", FOREIGN, formats=True)
    tool = ToolImplementation(spec, lambda rt, *values: ran.append(values))
    in_order = [given_by_name.get(arg.name) for arg in spec.args]
    with Engine(toolsets=[tool], plugins="none") as engine:
        texts = {
            str(engine.execute(call).error)
            for call in (
                {"name": "shop.order", "arguments": given_by_name},
                {"name": "shop.order", "arguments": in_order},
            )
            for call in [_call(call)]
        }

    assert texts == {text}
    assert ran == []


def _call(data: dict[str, Any]) -> Any:
    from neuroscript import ToolCall

    return ToolCall(data["name"], data["arguments"])


def test_values_that_fit_a_schema_reach_the_function() -> None:
    """The values are exact; a string that contains the number is accepted."""
    spec = spec_from_schema("shop.order", FOREIGN)

    assert bind_named(spec, {"code": "A", "odd": "6"}) == ("A", None, 6, None, None, None, None)
    assert bind(spec, ["B"]) == ("B", None, None, None, None, None, None)


def test_problems_have_codes_of_their_keywords() -> None:
    """All of them at once."""
    spec = spec_from_schema("shop.order", FOREIGN, formats=True)

    with pytest.raises(ArgumentError) as caught:
        bind_named(spec, {"code": "a", "odd": 4, "tags": [], "mail": "x"})
    assert sorted(each.code for each in caught.value.problems) == [
        "schema.format",
        "schema.multipleOf",
        "schema.pattern",
    ]


def test_formats_are_checked_only_if_the_importer_says_so() -> None:
    """The text is passed on as it was in both cases, and both come back from their own schemas."""
    lax, checked = (spec_from_schema("shop.order", FOREIGN, formats=formats) for formats in (False, True))

    assert bind_named(lax, {"code": "B", "tags": [], "mail": "none"})[1] == "none"
    assert bind_named(checked, {"code": "B", "tags": [], "mail": "Ann@Shop.EXAMPLE"})[1] == "Ann@Shop.EXAMPLE"
    with pytest.raises(ArgumentError) as caught:
        bind_named(checked, {"code": "B", "tags": [], "mail": "none"})
    assert (caught.value.code, caught.value.retry) == ("schema.format", "model")
    assert lax != checked
    for spec in (lax, checked):
        assert spec_from_schema("shop.order", spec_to_schema(spec)) == spec
        assert spec_to_schema(spec, exact=False) == FOREIGN
    changed = attrs.evolve(checked, when_to_use="Always.")
    assert spec_from_schema("shop.order", spec_to_schema(changed)) == changed


def test_repeated_items_of_a_foreign_set_are_dropped() -> None:
    """As for a set of our own; strict mode refuses them."""
    spec = spec_from_schema("shop.order", FOREIGN)

    assert bind_named(spec, {"code": "B", "tags": '["a", "b", "a"]'})[3] == ["a", "b"]


NULLABLE = [
    {"type": ["integer", "null"]},
    {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    {"type": "integer", "nullable": True},
    {"oneOf": [{"type": "null"}, {"type": "integer"}]},
    {"$ref": "#/$defs/n"},
]


@pytest.mark.parametrize("schema", NULLABLE, ids=json.dumps)
def test_each_spelling_of_null_is_understood(schema: dict[str, Any]) -> None:
    """None is accepted; a string that is not a number is refused."""
    root = {
        "type": "object",
        "properties": {"a": schema},
        "required": ["a"],
        "$defs": {"n": {"type": ["integer", "null"]}},
    }
    spec = spec_from_schema("g.t", root)

    assert (spec.args[0].type, spec.args[0].nullable) == (ArgType.INT, True)
    assert (bind(spec, [None]), bind(spec, ["5"])) == ((None,), (5,))
    with pytest.raises(ArgumentError):
        bind(spec, ["x"])
    assert spec_to_schema(spec) == root


def test_draft_7_is_understood_without_being_named() -> None:
    """Where its own words are used: items as a list, and dependencies."""
    root = {
        "type": "object",
        "properties": {
            "pair": {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]},
            "a": {"$ref": "#/definitions/a"},
            "b": {},
        },
        "dependencies": {"a": ["b"]},
        "definitions": {"a": {"type": "string", "enum": ["x", "y"]}},
    }
    spec = spec_from_schema("g.t", root)

    assert spec.args[1].choices == ("x", "y")
    assert bind_named(spec, {"pair": [1, "x"], "a": "x", "b": 1}) == ([1, "x"], "x", 1)
    for wrong in ({"pair": ["x"]}, {"a": "x"}):
        with pytest.raises(ArgumentError):
            bind_named(spec, wrong)


TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"node": {"$ref": "#/$defs/node"}},
    "required": ["node"],
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"value": {"type": "integer", "minimum": 1}, "next": {"$ref": "#/$defs/node"}},
            "required": ["value"],
            "additionalProperties": False,
        }
    },
}


def test_a_schema_that_holds_itself_is_asked_at_every_level() -> None:
    """The validator checks what a spec cannot express."""
    spec = spec_from_schema("g.tree", TREE)

    assert bind_named(spec, {"node": {"value": 1, "next": {"value": 2, "next": {"value": 3}}}})
    with pytest.raises(ArgumentError) as caught:
        bind_named(spec, {"node": {"value": 1, "next": {"value": 2, "next": {"value": 0}}}})
    assert str(caught.value) == "g.tree: expected a value that matches the schema, got dict"
    assert spec_to_schema(spec) == TREE


def nested(depth: int) -> dict[str, Any]:
    """Return a schema of this many maps in each other."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def laughs(count: int) -> dict[str, Any]:
    """Return a small schema that is a large one without its references."""
    steps = {f"s{index}": {"allOf": [{"$ref": f"#/$defs/s{index + 1}"}] * 10} for index in range(count)}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/s0"}}, "$defs": {**steps, f"s{count}": {}}}


ROOT: dict[str, Any] = {"type": "object"}


@pytest.mark.parametrize(
    ("schema", "problems"),
    [
        (nested(5000), ["#: nests deeper than 64 levels"]),
        ({**ROOT, "description": "x" * 10_000_000}, ["#: more than 50000 values or 1048576 characters"]),
        ({**ROOT, "enum": [0] * 60_000}, ["#: more than 50000 values or 1048576 characters"]),
        (laughs(9), ["#: more than 20000 schemas after its references are expanded"]),
        (
            {**ROOT, "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"anyOf": [{"$ref": "#/$defs/x"}]}}},
            ["#: a $ref leads back to itself without reaching another value"],
        ),
        (
            {**ROOT, "$ref": "#"},
            ["#: a $ref leads back to itself without reaching another value"],
        ),
        (
            {**ROOT, "properties": {"a": {"$ref": "http://127.0.0.1:9/a.json"}, "b": {"$ref": "#/nothing"}}},
            [
                "#/properties/b/$ref: no such schema in this document",
                "#/properties/a/$ref: only references within the schema are supported, such as #/$defs/name",
            ],
        ),
        ({"type": "array"}, ["#: the arguments of a tool are an object; write type: object"]),
        (
            {**ROOT, "properties": {"a": {"type": "strin"}}},
            ["#/properties/a/type: not valid JSON Schema"],
        ),
        (
            {**ROOT, "properties": {"a": {"type": "string", "pattern": "(a"}}},
            ["#/properties/a/pattern: not valid JSON Schema"],
        ),
        ({**ROOT, "$schema": "https://json-schema.org/draft-04/schema"}, None),
        ({**ROOT, "properties": {"a b": {}}}, None),
        ({**ROOT, "properties": [1]}, ["#/properties: expected schemas by name"]),
        ({**ROOT, "properties": {"a": 5}}, ["#/properties/a: expected a schema, got int"]),
        ({**ROOT, "properties": {"a": ["b"]}}, ["#/properties/a: expected a schema, got list"]),
        ({**ROOT, "x-neuroscript": {"variadic": "yes"}}, None),
        ({**ROOT, "properties": {"a": {"x-neuroscript": {"type": "strin"}}}}, None),
        ({**ROOT, "x-neuroscript": {"examples": 5}}, None),
        ({**ROOT, "x-neuroscript": {"examples": [{"args": {"bytes": "?"}}]}}, None),
        ({**ROOT, "x-neuroscript": {"spec": {}}}, None),
        ({**ROOT, "x-neuroscript": {"examples": [{"args": {"embedding": [10**400]}}]}}, None),
        (
            {**ROOT, "properties": {"a": {"type": [{}]}}},
            ["#/properties/a/type: expected a type name or a list of type names"],
        ),
        ({**ROOT, "minimum": float("nan")}, ["#: contains a value that JSON cannot represent"]),
        ([], ["#: the arguments of a tool are an object; write type: object"]),
    ],
    ids=range(24),
)
def test_a_schema_that_can_not_be_taken_is_refused(schema: Any, problems: list[str] | None) -> None:
    """With a sentence for each problem and its path, and never with a traceback of something else."""
    with pytest.raises(SpecError) as caught:
        spec_from_schema("g.t", schema)
    if problems is not None:
        assert list(caught.value.problems) == problems


def test_a_pattern_that_would_take_for_ever_does_not_fit() -> None:
    """Its steps are bounded; a pattern without look-around takes linear time anyway."""
    patterns = {"a": "^((a+)+)\\1$", "b": "^(a+)+$"}
    properties = {name: {"type": "string", "pattern": pattern} for name, pattern in patterns.items()}
    spec = spec_from_schema("g.t", {"type": "object", "properties": properties})

    with pytest.raises(ArgumentError) as caught:
        bind_named(spec, dict.fromkeys(patterns, "a" * 5000 + "!"))
    assert {each.code for each in caught.value.problems} == {"schema.pattern"}


def test_a_tool_with_a_schema_that_says_no_more_needs_no_validator() -> None:
    """Titles and descriptions ask nothing, so its calls are as fast as those of any tool."""
    from neuroscript.coercion.schema_validation import validator_for

    root = {"title": "T", "type": "object", "properties": {"a": {"title": "A", "type": "integer"}}, "required": ["a"]}
    spec = spec_from_schema("g.t", root)

    assert spec_to_schema(spec) == root
    assert validator_for(spec.schema) is None


def test_without_the_extra_a_schema_that_asks_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never ignored; one that asks no more is taken."""
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    asked = {"type": "object", "properties": {"alone": {"type": "string", "pattern": "^alone$"}}}

    assert spec_from_schema("g.t", {**ROOT, "title": "T", "properties": {"a": {"type": "string"}}}).schema
    with pytest.raises(SpecError) as caught:
        spec_from_schema("g.t", asked)
    assert str(caught.value) == (
        "g.t: the schema has constraints that a spec cannot express; "
        f"install the validator with: {install_hint('schema')}"
    )


def test_a_spec_may_not_have_a_schema_of_other_arguments() -> None:
    """It would be asked of what is not there."""
    spec = spec_from_schema("shop.order", FOREIGN)

    with pytest.raises(SpecError) as caught:
        attrs.evolve(spec, args=spec.args[1:])
    assert str(caught.value) == "shop.order: the properties of the schema differ from the arguments of the tool"


def test_an_argument_of_a_schema_can_be_hidden() -> None:
    """The schema goes on without it, and is asked of the others."""
    root = {
        "type": "object",
        "properties": {"key": {"type": "string", "pattern": "^k"}, "odd": {"type": "integer", "multipleOf": 3}},
        "required": ["key", "odd"],
    }
    seen: list[Any] = []
    tools = Toolset("g", [ToolImplementation(spec_from_schema("g.t", root), lambda rt, *values: seen.append(values))])
    with Engine(toolsets=[tools.with_fixed("g.t", key="k-1")], plugins="none") as engine:
        schema = spec_to_schema(engine.tools["g.t"].spec)
        engine.call("g.t", [6])
        with pytest.raises(ArgumentError) as caught:
            engine.call("g.t", [7])

    assert schema == {"type": "object", "properties": {"odd": root["properties"]["odd"]}, "required": ["odd"]}
    assert seen == [("k-1", 6)]
    assert (caught.value.code, caught.value.retry) == ("schema.multipleOf", "model")


def test_an_argument_of_a_schema_without_required_ones_can_be_hidden() -> None:
    """The schema does not have to list any."""
    root = {"type": "object", "properties": {"key": {"type": "string", "pattern": "^k"}, "more": {"type": "integer"}}}
    tools = Toolset("g", [ToolImplementation(spec_from_schema("g.t", root), lambda rt, *values: values[0])])
    with Engine(toolsets=[tools.with_fixed("g.t", key="k-1")], plugins="none") as engine:
        assert spec_to_schema(engine.tools["g.t"].spec)["properties"] == {"more": {"type": "integer"}}


def test_an_argument_that_others_depend_on_can_not_be_hidden() -> None:
    """What the schema asks of them together could not be asked any more."""
    tools = Toolset("shop", [ToolImplementation(spec_from_schema("shop.order", FOREIGN), lambda rt, *values: None)])

    with pytest.raises(SpecError) as caught:
        tools.with_fixed("shop.order", code="A")
    assert str(caught.value) == "shop.order: its schema constrains several arguments together, so none can be injected"
