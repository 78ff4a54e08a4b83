"""Nested specs, unions and formats as JSON Schema, and back without a loss; and the same in schemas of others."""

from __future__ import annotations

import json
from typing import Any

import attrs
import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import ALL
from tests.spec.annotation_rows import ROWS, Row, take_of
from tests.spec.nested_rules import RULES

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    SpecError,
    ToolSpec,
    bind,
    bind_named,
    coerce,
    result_schema,
    spec_from_schema,
    spec_to_schema,
)
from neuroscript.coercion.plain_data import to_plain
from neuroscript.coercion.schema_inspection import check_schema
from neuroscript.coercion.schema_validation import validator_for
from neuroscript.coercion.string_formats import FORMATS
from neuroscript.formats.json_schema import result_from_schema
from neuroscript.formats.json_schema_reader import MAX_ALTERNATIVES, MAX_MAPS, MAX_PROPERTIES

META = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
EXAMPLES = 2_000 if ALL else 60
"""How many generated specs each property is tested with."""

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


def check_round_trip(spec: ToolSpec) -> None:
    """Assert that a schema is valid, also without our keyword, and returns the same spec."""
    schema = spec_to_schema(spec)
    META.validate(schema)
    META.validate(spec_to_schema(spec, exact=False))
    META.validate(result_schema(spec))
    assert "x-neuroscript" not in json.dumps([spec_to_schema(spec, exact=False), result_schema(spec)])
    for text in (json.dumps(schema), json.dumps(schema, sort_keys=True)):
        again = spec_from_schema(spec.full_name, json.loads(text))
        assert again == spec
        assert repr(again) == repr(spec), "the same types, too"
        assert again.schema == ""


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_each_nested_rule_returns_as_it_was(rule: ArgSpec) -> None:
    """As an argument that is required, optional or nullable, as a key, and as a result."""
    optional = attrs.evolve(rule, name="y", required=False, nullable=True, description="It may be missing.")
    key = ArgSpec("z", "slice_map", keys=(attrs.evolve(rule, required=False), attrs.evolve(rule, name="b")))

    check_round_trip(ToolSpec("t", "g", (rule, optional, key), returns=rule))
    check_round_trip(ToolSpec("t", "g", returns=attrs.evolve(optional, required=True)))


def without_classes(rule: ArgSpec) -> ArgSpec:
    """Return a rule without the classes of its values, which no data can hold."""
    lists = ("keys", "prefix_items", "any_of")
    parts: dict[str, Any] = {name: tuple(map(without_classes, getattr(rule, name))) for name in lists}
    for name in ("items", "value_spec", "key_spec"):
        part = getattr(rule, name)
        parts[name] = None if part is None else without_classes(part)
    return attrs.evolve(rule, cls=None, **parts)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_annotation_returns_apart_from_its_class(row: Row) -> None:
    """For the argument and for the result."""
    spec = take_of(row.annotation, []).spec
    (arg,) = map(without_classes, spec.args)
    returns = None if spec.returns is None else without_classes(spec.returns)

    check_round_trip(attrs.evolve(spec, args=(arg,), returns=returns))


# Generated rules

SCALARS = (ArgType.STRING, ArgType.INT, ArgType.FLOAT, ArgType.BOOL)
LEAVES = (
    *(*SCALARS, ArgType.ANY, ArgType.MAP, ArgType.SLICE, ArgType.SLICE_ANY, ArgType.LIST, ArgType.SLICE_INT),
    *(ArgType.MAP_STRING_FLOAT, ArgType.MAP_STRING_ANY, ArgType.MAP_ANY_ANY, ArgType.BLOB, ArgType.HANDLE),
    *(ArgType.EMBEDDING, ArgType.NODEID, ArgType.ENTITYID, ArgType.SLICE_MAP),
)
CHOICES: dict[ArgType, list[Any]] = {
    ArgType.STRING: ["a", "", "null", "é"],
    ArgType.INT: [0, -1, 2**62],
    ArgType.FLOAT: [0.5, 1.0],
    ArgType.BOOL: [True, False],
}


@st.composite
def leaves(draw: st.DrawFn, name: str) -> ArgSpec:
    """Draw a rule without parts."""
    kind = draw(st.sampled_from(LEAVES))
    fields: dict[str, Any] = {"nullable": draw(st.booleans()), "description": draw(st.just("") | TEXTS)}
    extra = draw(st.sampled_from(["", "choices", "bounds", "format", "unique"]))
    if extra == "choices" and kind in CHOICES:
        fields["choices"] = tuple(draw(st.lists(st.sampled_from(CHOICES[kind]), min_size=1, max_size=3, unique=True)))
    elif extra == "bounds" and kind in (ArgType.INT, ArgType.FLOAT, ArgType.SLICE_INT):
        fields |= {"minimum": draw(st.none() | st.integers(-5, 0)), "maximum": draw(st.none() | st.just(2.5))}
        if draw(st.booleans()):
            fields |= {f"exclusive_{side}": fields.pop(side) for side in ("minimum", "maximum")}
    elif extra == "bounds" and kind in (ArgType.STRING, ArgType.MAP, ArgType.BLOB, ArgType.SLICE, ArgType.EMBEDDING):
        fields |= {"min_length": draw(st.none() | st.just(0)), "max_length": draw(st.none() | st.integers(0, 4))}
    elif extra == "format" and kind is ArgType.STRING:
        fields["format"] = draw(st.sampled_from([*FORMATS]))
        if fields["format"] == "decimal":
            fields[draw(st.sampled_from(["minimum", "exclusive_minimum"]))] = draw(st.none() | st.just(0.5))
    elif extra == "unique" and kind in (ArgType.SLICE, ArgType.SLICE_INT, ArgType.LIST):
        fields["unique_items"] = True
    return ArgSpec(name, kind, **fields)


def key_specs(kinds: st.SearchStrategy[ArgType]) -> st.SearchStrategy[ArgSpec]:
    """Return specs of the keys of a map."""
    return kinds.map(lambda kind: ArgSpec("key", kind)) | st.sampled_from(
        [
            ArgSpec("key", "string", choices=("a", "b")),
            ArgSpec("key", "string", max_length=3, description="D"),
            ArgSpec("key", "string", format="uuid"),
        ]
    )


@st.composite
def rules(draw: st.DrawFn, name: str, depth: int = 3) -> ArgSpec:
    """Draw a rule with parts up to a depth."""
    form = draw(st.sampled_from(["leaf", "items", "tuple", "values", "keys", "by key", "union", "records"]))
    if not depth or form == "leaf":
        return draw(leaves(name))
    fields: dict[str, Any] = {"nullable": draw(st.booleans()), "description": draw(st.just("") | TEXTS)}
    match form:
        case "items":
            fields |= {"type": draw(st.sampled_from(["slice", "list", "slice_any"]))}
            fields |= {"items": draw(rules("item", depth - 1)), "unique_items": draw(st.booleans())}
            fields |= {"min_length": draw(st.none() | st.just(1)), "max_length": draw(st.none() | st.just(3))}
        case "tuple":
            items = tuple(draw(rules("item", depth - 1)) for _ in range(draw(st.integers(1, 3))))
            fields |= {"type": "slice", "prefix_items": items}
        case "values":
            fields |= {"type": draw(st.sampled_from(["map", "map_string_any", "map_any_any"]))}
            fields |= {"value_spec": draw(rules("value", depth - 1)), "max_length": draw(st.none() | st.just(3))}
        case "keys":
            fields |= {"type": "map", "keys": draw(keys(depth - 1)), "extra_keys": draw(st.booleans())}
            if not fields["extra_keys"] and draw(st.booleans()):
                fields["value_spec"] = draw(rules("value", depth - 1))
        case "by key":
            kind = draw(st.sampled_from([ArgType.MAP, ArgType.MAP_ANY_ANY]))
            kinds = st.sampled_from([ArgType.STRING] if kind is ArgType.MAP else [*SCALARS])
            fields |= {"type": kind, "key_spec": draw(key_specs(kinds)), "value_spec": draw(rules("value", depth - 1))}
        case "union":
            ways = tuple(draw(rules("alternative", depth - 1)) for _ in range(draw(st.integers(2, 4))))
            fields |= {"type": "any", "any_of": ways}
        case _:
            fields |= {"type": "slice", "items": ArgSpec("item", "map", keys=draw(keys(depth - 1)))}
    try:
        return ArgSpec(name, **fields)
    except SpecError:  # alternatives that are equal
        return draw(leaves(name))


@st.composite
def keys(draw: st.DrawFn, depth: int) -> tuple[ArgSpec, ...]:
    """Draw the keys of a map, some of them optional, with a default or secret."""
    found = []
    for name in draw(st.sampled_from(["a", "ba", "abc"])):
        rule = draw(rules(name, depth))
        change = draw(
            st.sampled_from([{}, {"required": False}, {"secret": True}, {"required": False, "default": None}])
        )
        found.append(attrs.evolve(rule, **change))
    return tuple(found)


@st.composite
def specs(draw: st.DrawFn) -> ToolSpec:
    """Draw a tool with nested arguments and a nested result."""
    args = tuple(draw(rules(f"a{index}")) for index in range(draw(st.integers(0, 2))))
    return ToolSpec(
        "t",
        "g",
        args,
        returns=draw(st.none() | rules("result")),
        variadic=bool(args) and draw(st.booleans()),
        stream=draw(st.sampled_from([False, True, "maybe"])),
        return_nullable=draw(st.booleans()),
    )


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(specs())
def test_each_generated_spec_returns_as_it_was(spec: ToolSpec) -> None:
    """At any depth, and whatever its parts are."""
    check_round_trip(spec)


# The written form


def form_of(rule: ArgSpec) -> Any:
    """Return the schema of a required argument in standard keywords."""
    return spec_to_schema(ToolSpec("t", "g", (rule,)), exact=False)["properties"][rule.name]


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("nullable ints", {"type": "array", "items": {"type": ["integer", "null"]}}),
        ("lists of ints", {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}),
        ("unique ints", {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (
            "triple",
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "integer"}, {}],
                "items": False,
                "minItems": 3,
                "maxItems": 3,
            },
        ),
        ("map of lists", {"type": "object", "additionalProperties": {"type": "array"}}),
        ("map by color", {"type": "object", "propertyNames": {"type": "string", "enum": ["Red", "blue"]}}),
        ("map by int", {"type": "object"}),
        (
            "object and strings or null",
            {
                "type": "object",
                "properties": {"id": {"type": "integer"}},
                "required": ["id"],
                "additionalProperties": {"type": ["string", "null"]},
            },
        ),
        ("date", {"type": "string", "format": "date"}),
        ("price", {"type": "string", "format": "decimal", "description": "Decimal number of at least 0."}),
        ("int or string", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (
            "payment",
            {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"kind": {"type": "string", "enum": ["card"]}, "number": {"type": "string"}},
                        "required": ["kind", "number"],
                        "additionalProperties": False,
                    },
                    {
                        "type": "object",
                        "properties": {
                            "kind": {"type": "string", "enum": ["cash"]},
                            "name": {"type": ["string", "null"]},
                        },
                        "required": ["kind"],
                        "additionalProperties": False,
                    },
                ],
                "discriminator": {"propertyName": "kind"},
            },
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_form_of_a_nested_rule(name: str, schema: Any) -> None:
    """Standard keywords, and nothing else without our keyword."""
    assert form_of(RULES[name]) == schema


def test_what_json_schema_can_not_express_is_stored_with_the_rule() -> None:
    """The keys of a map that are no strings, the bounds of decimal numbers, and formats, which others only note."""
    args = (RULES["map by int"], attrs.evolve(RULES["price"], name="y"))
    schema = spec_to_schema(ToolSpec("t", "g", args))

    assert schema["properties"] == {
        "x": {"type": "object", "x-neuroscript": {"type": "map_any_any", "propertyNames": {"type": "integer"}}},
        "y": {"type": "string", "format": "decimal", "x-neuroscript": {"format": "decimal", "minimum": 0}},
    }


def test_base64_is_also_written_as_an_encoding() -> None:
    """That is the keyword of JSON Schema."""
    assert form_of(ArgSpec("x", "string", format="base64")) == {
        "type": "string",
        "format": "base64",
        "contentEncoding": "base64",
    }


def test_the_schema_of_a_result_has_its_parts() -> None:
    """For one result, for items of a stream, and for a tool that may return a stream."""
    returns = ArgSpec("result", "slice_any", items=ArgSpec("item", "any", any_of=("int", "string")))
    schema = {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}
    spec = ToolSpec("t", "g", returns=returns)

    assert result_schema(spec) == schema
    assert result_schema(attrs.evolve(spec, stream="maybe")) == {"anyOf": [schema, {"type": "array", "items": schema}]}
    assert result_schema(attrs.evolve(spec, return_help="R.")) == {**schema, "description": "R."}
    assert spec_to_schema(spec)["x-neuroscript"] == {"returns": schema}


# Schemas of others


def argument(schema: Any, *, required: bool = True, **definitions: Any) -> ToolSpec:
    """Return the spec of a tool with the argument ``v``."""
    root = {"type": "object", "properties": {"v": schema}, "required": ["v"] if required else []}
    return spec_from_schema("g.t", {**root, "$defs": definitions} if definitions else root)


def part(kind: str, **fields: Any) -> ArgSpec:
    """Return an argument ``v`` of this form."""
    return ArgSpec("v", ArgType(kind), **fields)


STRINGS = {"type": "array", "items": {"type": "string"}}
POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
    "required": ["x", "y"],
    "additionalProperties": False,
}
XY = (ArgSpec("x", "int"), ArgSpec("y", "int"))
CAT = {"type": "object", "properties": {"pet": {"const": "cat"}, "age": {"type": "integer"}}, "required": ["pet"]}
DOG = {"type": "object", "properties": {"pet": {"enum": ["dog", "puppy"]}}, "required": ["pet"]}
CAT_KEYS = (ArgSpec("pet", "string", choices=("cat",)), ArgSpec("age", "int", required=False))
DOG_KEYS = (ArgSpec("pet", "string", choices=("dog", "puppy")),)
PETS = (
    ArgSpec("alternative", "map", keys=CAT_KEYS, extra_keys=True),
    ArgSpec("alternative", "map", keys=DOG_KEYS, extra_keys=True),
)


@pytest.mark.parametrize(
    ("schema", "expected", "sent", "exact"),
    [
        ({"type": "array", "items": STRINGS}, part("slice_any", items="slice_string"), '[["a"]]', [["a"]]),
        ({"type": "array", "items": POINT}, part("slice_map", keys=XY), [{"x": "1", "y": 2.0}], [{"x": 1, "y": 2}]),
        (
            {"type": "object", "additionalProperties": STRINGS},
            part("map", value_spec="slice_string"),
            {"a": '["b"]'},
            {"a": ["b"]},
        ),
        (
            {"type": "object", "additionalProperties": POINT},
            part("map", value_spec=ArgSpec("value", "map", keys=XY)),
            {"a": {"x": "1", "y": "2"}},
            {"a": {"x": 1, "y": 2}},
        ),
        (
            {**POINT, "additionalProperties": {"type": "number"}},
            part("map", keys=XY, value_spec="float"),
            {"x": "1", "y": 1, "z": "2.5"},
            {"x": 1, "y": 1, "z": 2.5},
        ),
        (
            {"type": "array", "prefixItems": [{"type": "integer"}, STRINGS], "items": False, "minItems": 2},
            part("slice_any", prefix_items=("int", "slice_string")),
            ["1", ["a"]],
            [1, ["a"]],
        ),
        (
            {"type": "array", "items": [{"type": "integer"}, {}], "minItems": 2, "maxItems": 2},
            part("slice_any", prefix_items=("int", "any")),
            ["1", None],
            [1, None],
        ),
        (
            {"type": "array", "prefixItems": [{"type": "integer"}]},
            part("slice_any"),
            [1, "a"],
            [1, "a"],
        ),
        (
            {"type": "array", "items": {"type": ["integer", "null"], "minimum": 1}, "uniqueItems": True},
            part("slice_any", items=ArgSpec("item", "int", nullable=True, minimum=1), unique_items=True),
            ["1", 1, None],
            [1, None],
        ),
        ({"type": ["string", "integer"]}, part("any", any_of=("string", "int")), "5", "5"),
        ({"type": ["boolean", "integer", "null"]}, part("any", any_of=("bool", "int"), nullable=True), "5", 5),
        (
            {"type": ["integer", "string"], "minimum": 3, "maxLength": 2},
            part("any", any_of=(ArgSpec("a", "int", minimum=3), ArgSpec("a", "string", max_length=2))),
            "2",
            "2",
        ),
        (
            {"enum": ["auto", 1, 2, None]},
            part(
                "any",
                any_of=(ArgSpec("a", "int", choices=(1, 2)), ArgSpec("a", "string", choices=("auto",))),
                nullable=True,
            ),
            "2",
            2,
        ),
        ({"const": "x"}, part("string", choices=("x",)), " X", "x"),
        ({"anyOf": [CAT, DOG]}, part("any", any_of=PETS), {"pet": "cat", "age": "3"}, {"pet": "cat", "age": 3}),
        (
            {"oneOf": [CAT, DOG, {"type": "null"}], "discriminator": {"propertyName": "pet"}},
            part("any", any_of=PETS, nullable=True),
            {"pet": "puppy", "age": "3"},
            {"pet": "puppy", "age": "3"},
        ),
        ({"anyOf": [STRINGS, {"type": "string"}]}, part("any", any_of=("slice_string", "string")), "a", "a"),
        ({"anyOf": [{"type": "string"}, {}]}, part("any", nullable=True), {"a": 1}, {"a": 1}),
        (
            {"type": ["string", "number", "boolean", "object", "array"]},
            part("any"),
            {"a": 1},
            {"a": 1},
        ),
        (
            {
                "allOf": [
                    {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
                    {"type": "object", "properties": {"x": {"minimum": 1}, "s": STRINGS}},
                ]
            },
            part(
                "map",
                keys=(ArgSpec("x", "int", minimum=1), ArgSpec("s", "slice_string", required=False)),
                extra_keys=True,
            ),
            {"x": "1", "s": '["a"]'},
            {"x": 1, "s": ["a"]},
        ),
        (
            {"type": "object", "propertyNames": {"maxLength": 2}, "additionalProperties": {"type": "integer"}},
            part("map", key_spec=ArgSpec("key", "string", max_length=2), value_spec="int"),
            {"a": "1"},
            {"a": 1},
        ),
        (
            {"type": "array", "items": {"type": "string", "format": "date", "writeOnly": True, "default": "x"}},
            part("slice_string", secret=True),
            ["no date"],
            ["no date"],
        ),
        (
            {"type": "array", "items": {"type": "string", "description": "A tag."}},
            part("slice_any", items=ArgSpec("item", "string", description="A tag.")),
            ["a"],
            ["a"],
        ),
    ],
    ids=lambda each: json.dumps(each)[:50] if isinstance(each, dict) and not isinstance(each.get("a"), int) else "",
)
def test_a_schema_of_others_is_read_to_its_leaves(schema: Any, expected: ArgSpec, sent: Any, exact: Any) -> None:
    """Each form becomes a spec, and values are coerced by it; the schema is exported as it was."""
    spec = argument(schema)

    assert spec.args == (expected,)
    assert bind_named(spec, {"v": sent}) == (exact,)
    assert spec_to_schema(spec, exact=False)["properties"]["v"] == schema
    assert spec_from_schema("g.t", spec_to_schema(spec)) == spec


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "array", "items": STRINGS}},
        {"type": "array", "items": {"$ref": "#/$defs/point"}},
        {"$ref": "#/$defs/point", "description": "A point.", "title": "P"},
        {"allOf": [{"$ref": "#/$defs/point"}], "default": None},
        {"anyOf": [{"$ref": "#/$defs/point"}, {"type": "null"}], "default": None},
        {"anyOf": [{"$ref": "#/$defs/point"}, {"type": "string", "enum": ["origin"]}]},
        {"oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}], "discriminator": {"propertyName": "pet"}},
        {"oneOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/point"}, "propertyNames": {"type": "string"}},
        {"type": ["string", "integer", "null"]},
        {"type": "array", "prefixItems": [{"type": "integer"}, {}], "items": False, "minItems": 2},
        {"type": "array", "items": [{"type": "integer"}, {}], "additionalItems": False, "minItems": 2},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 1},
        {"type": "string", "format": "date-time"},
        {"type": "string", "const": "a"},
        {"enum": ["a", 1, 2.5, True]},
        {"const": 3},
        {"anyOf": [{}, {"type": "null"}]},
        {},
    ],
    ids=json.dumps,
)
def test_what_a_spec_expresses_needs_no_validator(schema: Any) -> None:
    """So the ``schema`` extra is not needed, and a call costs no more than that of any tool."""
    spec = argument(schema, point=POINT, cat=CAT, dog=DOG)

    assert validator_for(spec.schema) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^a"},
        {"type": "array", "items": {"type": "string", "pattern": "^a"}},
        {"type": "array", "items": {}, "uniqueItems": True},
        {"type": "array", "prefixItems": [{"type": "integer"}]},
        {"type": "array", "prefixItems": [{}], "items": [{"type": "integer"}], "minItems": 1, "maxItems": 1},
        {"type": "array", "contains": {"type": "integer"}},
        {"type": "string", "const": "a", "enum": ["b"]},
        {"type": "integer", "maximum": 2**53 + 1},
        {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 4},
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        {"oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/point"}]},
        {"oneOf": [{"type": ["integer", "null"]}, {"type": "null"}]},
        {"allOf": [{"type": "integer"}, {"minimum": 3}]},
        {"anyOf": [{"type": "string"}, {"not": {"type": "string"}}]},
        {"type": "array", "items": {"type": ["string", "number", "boolean", "object", "array"]}},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["b"]},
        {"type": "object", "patternProperties": {"^a": {"type": "integer"}}},
        {"type": "object", "propertyNames": {"pattern": "^a"}},
        {"type": "object", "additionalProperties": False},
        {"enum": ["a", {"b": 1}]},
        {"$ref": "#/$defs/list"},
    ],
    ids=json.dumps,
)
def test_what_a_spec_can_not_express_is_validated(schema: Any) -> None:
    """Nothing is lost, and the exported schema needs no keyword of ours."""
    recursive = {"type": "array", "items": {"$ref": "#/$defs/list"}}
    spec = argument(schema, point=POINT, cat=CAT, list=recursive)

    assert validator_for(spec.schema) is not None
    assert spec_to_schema(spec) == spec_to_schema(spec, exact=False)


def test_problem_of_a_foreign_union_concerns_the_alternative_that_was_meant() -> None:
    """With the whole path, and without a value."""
    spec = argument({"type": "array", "items": {"oneOf": [CAT, DOG]}})

    with pytest.raises(ArgumentError) as caught:
        bind_named(spec, {"v": [{"pet": "cat", "age": "old"}, {"pet": "fish"}]})
    assert [(each.where, each.expected) for each in caught.value.problems] == [
        ("v[0]['age']", "int"),
        ("v[1]['pet']", "one of 'cat', 'dog', 'puppy'"),
    ]


def test_result_is_read_without_defaults_and_secrets() -> None:
    """They mean nothing for what a server returns."""
    schema = {
        "type": "array",
        "items": {"$ref": "#/$defs/a"},
        "$defs": {"a": {"type": "object", "properties": {"k": {"type": "integer", "default": 1, "writeOnly": True}}}},
    }

    assert result_from_schema(schema) == ArgSpec(
        "result", "slice_map", keys=(ArgSpec("k", "int", required=False),), extra_keys=True
    )
    assert result_from_schema({"type": "object", "properties": {"result": STRINGS}}, "result") == ArgSpec(
        "result", "slice_string"
    )
    assert result_from_schema(True) == ArgSpec("result", "any")


def test_keys_with_a_rule_for_their_names_are_still_closed() -> None:
    """A key that is not declared is unknown, unless there are extra keys or a spec of their values."""
    keys, names = (ArgSpec("ident", "int"),), ArgSpec("key", "string", max_length=3)
    closed, opened = (part("map", keys=keys, key_spec=names, extra_keys=extra) for extra in (False, True))

    assert coerce({"ident": "1"}, closed) == {"ident": 1}, "the rule is for other keys than the declared ones"
    assert coerce({"ident": "1", "abc": 2}, opened) == {"ident": 1, "abc": 2}
    for rule, key, text in (
        (closed, "abc", "['abc']: expected only ident, got an unknown name of type int"),
        (opened, "abcd", "['abcd'] (key): expected string of at most 3 characters, got 4 characters"),
    ):
        check_round_trip(ToolSpec("t", "g", (rule,)))
        with pytest.raises(ArgumentError) as caught:
            coerce({"ident": "1", key: 2}, rule)
        assert str(caught.value) == text


def test_trailing_value_of_a_union_is_never_none() -> None:
    """Unless one of its alternatives is."""
    rule = part("any", any_of=("int", "string"))

    assert bind(ToolSpec("t", "g", (attrs.evolve(rule, nullable=True),), variadic=True), [1, None]) == (1, None)
    with pytest.raises(ArgumentError) as caught:
        bind(ToolSpec("t", "g", (rule,), variadic=True), [1, None])
    assert (caught.value.code, caught.value.retry) == ("coercion.null_element", "model")


# Limits


def test_keys_beyond_the_limit_are_validated_even_if_the_schema_says_nothing_else() -> None:
    """The exported schema records that, so that it is validated wherever it is read again."""
    many = {f"p{index}": {"type": "string"} for index in range(MAX_PROPERTIES + 1)}
    spec = argument({"type": "object", "properties": many})

    assert spec.args[0].keys == ()
    with pytest.raises(ArgumentError) as caught:
        bind_named(spec, {"v": {"p7": 5}})
    assert (caught.value.code, caught.value.retry) == ("schema.type", "model")
    again = spec_from_schema("g.t", spec_to_schema(spec))
    assert again == spec
    assert check_schema(again.schema).asks_more


def test_unions_beyond_the_limit_are_left_to_the_schema() -> None:
    """A value would be tried with each alternative."""
    ways = [{"type": "string", "minLength": index, "maxLength": index} for index in range(MAX_ALTERNATIVES + 1)]
    most, more = argument({"anyOf": ways[1:]}), argument({"anyOf": ways})

    assert len(most.args[0].any_of) == MAX_ALTERNATIVES
    assert more.args == (part("any"),)
    assert validator_for(more.schema) is not None


@pytest.mark.parametrize("word", ["items", "additionalProperties"])
def test_parts_beyond_the_depth_are_left_to_the_schema(word: str) -> None:
    """The spec reads as many levels as it can, and the validator all."""
    kind = "array" if word == "items" else "object"
    schema: dict[str, Any] = {"type": "integer"}
    value: Any = "no number"
    for _ in range(MAX_MAPS + 2):
        schema = {"type": kind, word: schema}
        value = [value] if word == "items" else {"a": value}
    spec = argument(schema)

    with pytest.raises(ArgumentError) as caught:
        bind_named(spec, {"v": value})
    assert (caught.value.code, caught.value.retry) == ("schema.type", "model")


def test_union_of_unions_is_read_once_for_each_rule() -> None:
    """Definitions that name each other in every alternative have more paths than can be followed."""
    count = 12
    names = [f"n{index}" for index in range(count)]
    tagged = {
        name: {
            "type": "object",
            "properties": {"tag": {"const": name}, "of": {"oneOf": [{"$ref": f"#/$defs/{each}"} for each in names]}},
        }
        for name in names
    }
    spec = argument({"$ref": "#/$defs/n0"}, **tagged)

    assert rules_in(spec.args[0]) < 4 * MAX_PROPERTIES
    with pytest.raises(ArgumentError):
        bind_named(spec, {"v": {"tag": "n0", "of": {"tag": "n1", "of": {"tag": "n99"}}}})


def rules_in(rule: ArgSpec) -> int:
    """Return how many rules there are in a rule, with itself."""
    return 1 + sum(map(rules_in, rule.nested))


# Whatever a schema says, exact values validate

PLAIN = st.deferred(
    lambda: st.one_of(
        st.sampled_from(
            [
                {"type": "string"},
                {"type": "integer", "minimum": 0},
                {"type": "number"},
                {"type": "boolean"},
                {"type": "null"},
                {},
                {"enum": ["a", 1, None]},
                {"const": "a"},
                {"type": ["string", "null"], "maxLength": 1},
                {"type": ["boolean", "integer"]},
                {"$ref": "#/$defs/d"},
            ]
        ),
        st.fixed_dictionaries(
            {"type": st.just("array")},
            optional={
                "items": PLAIN,
                "uniqueItems": st.booleans(),
                "minItems": st.integers(0, 2),
                "maxItems": st.integers(1, 3),
            },
        ),
        st.lists(PLAIN, min_size=1, max_size=2).map(
            lambda each: {"type": "array", "prefixItems": each, "items": False, "minItems": len(each)}
        ),
        st.fixed_dictionaries(
            {"type": st.just("object")},
            optional={
                "properties": st.dictionaries(st.sampled_from("pq"), PLAIN, max_size=2),
                "required": st.just(["p"]),
                "additionalProperties": st.booleans() | PLAIN,
                "propertyNames": st.sampled_from([{"maxLength": 1}, {"enum": ["p", "q"]}, {"type": "string"}]),
                "maxProperties": st.just(1),
            },
        ),
        st.builds(
            lambda word, ways: {word: ways},
            st.sampled_from(["anyOf", "oneOf"]),
            st.lists(PLAIN, min_size=1, max_size=3),
        ),
        st.lists(PLAIN, min_size=1, max_size=2).map(lambda ways: {"allOf": ways}),
    )
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(["", "a", "ab", "1", 1.0, 0.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("pqr"), inner, max_size=2),
)


def without_missing(value: Any) -> Any:
    """Return a value without the keys of None, which mean that an optional key is missing."""
    match value:
        case dict():
            return {key: without_missing(each) for key, each in value.items() if each is not None}
        case list():
            return list(map(without_missing, value))
    return value


@pytest.mark.slow
@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(PLAIN, PLAIN, st.lists(JSON, min_size=1, max_size=5))
def test_exact_values_fit_the_schema_with_and_without_a_validator(schema: Any, other: Any, sent: list[Any]) -> None:
    """Another validator agrees, None aside where a key may be left out."""
    root = {"type": "object", "properties": {"v": schema}, "required": ["v"], "$defs": {"d": other}}
    try:
        spec = spec_from_schema("g.t", root)
    except SpecError as error:
        assert error.problems
        return
    assert spec_to_schema(spec, exact=False) == root
    assert spec_from_schema("g.t", spec_to_schema(spec)) == spec
    oracle = jsonschema.Draft202012Validator(root)
    for value in sent:
        try:
            exact = to_plain(bind_named(spec, {"v": value})[0])
        except ArgumentError:
            continue
        assert oracle.is_valid({"v": exact}) or oracle.is_valid({"v": without_missing(exact)})


@settings(max_examples=EXAMPLES, deadline=None)
@given(rules("a"), st.lists(JSON, min_size=1, max_size=5))
def test_exact_values_fit_the_schema_of_their_rule(rule: ArgSpec, sent: list[Any]) -> None:
    """What strict mode would accept validates in its plain form."""
    oracle = jsonschema.Draft202012Validator(form_of(rule))
    for value in sent:
        if value is None:
            continue
        try:
            exact = to_plain(coerce(value, rule))
        except ArgumentError:
            continue
        assert oracle.is_valid(exact) or oracle.is_valid(without_missing(exact))


@pytest.mark.parametrize("key_spec", [None, ArgSpec("key", "string", choices=("a", "b"))], ids=["any key", "choices"])
def test_further_values_of_any_type_are_further_keys(key_spec: ArgSpec | None) -> None:
    """Two ways to write one spec, which allows further keys in its schema."""
    keys = (ArgSpec("a", "string"),)
    spec = ToolSpec("t", "g", (ArgSpec("m", "map", keys=keys, value_spec="any", key_spec=key_spec),))

    assert spec.args[0] == ArgSpec("m", "map", keys=keys, extra_keys=True, key_spec=key_spec)
    assert "additionalProperties" not in spec_to_schema(spec)["properties"]["m"]
    check_round_trip(spec)


def test_alternatives_that_are_all_null_accept_only_null() -> None:
    schema = {"properties": {"v": {"anyOf": [{"allOf": [{"type": "null"}]}]}}, "required": ["v"], "type": "object"}
    spec = spec_from_schema("g.t", schema)

    assert bind_named(spec, {"v": None}) == (None,)
    with pytest.raises(ArgumentError) as caught:
        bind_named(spec, {"v": []})
    assert (caught.value.code, caught.value.retry) == ("coercion.type", "model")
