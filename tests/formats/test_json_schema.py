"""Specs as JSON Schema and back, and what others' schemas ask of a call."""

from __future__ import annotations

import copy
import datetime
import json
import pickle
import re
import sys
from array import array
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.generator import Generator

from neuroscript import (
    UNSET,
    ArgSpec,
    ArgType,
    ArgumentError,
    Engine,
    Example,
    Handle,
    SpecError,
    ToolImplementation,
    Toolset,
    ToolSpec,
    bind,
    bind_named,
    coerce,
    result_schema,
    spec_from_data,
    spec_from_schema,
    spec_to_data,
    spec_to_schema,
)
from neuroscript.coercion.context import CoercionSettings
from neuroscript.coercion.plain_data import plain
from neuroscript.coercion.types import worded
from neuroscript.spec.binding import bind_arguments

STRICT = CoercionSettings("strict")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "schemas.md"
META = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
MORE = (
    st.binary(max_size=4)
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC))
    | st.builds(Handle, st.just("h-1"), TEXTS)
)
ANYTHING = st.recursive(
    LEAVES | TEXTS | MORE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)
DEFAULTS = {
    ArgType.ANY: ANYTHING,
    ArgType.SLICE_ANY: st.lists(ANYTHING, max_size=3),
    ArgType.MAP: st.dictionaries(TEXTS, ANYTHING, max_size=3),
    ArgType.MAP_ANY_ANY: st.dictionaries(LEAVES | TEXTS, ANYTHING, max_size=3),
    ArgType.SLICE_INT: st.lists(st.integers(-9, 9)),
    ArgType.BLOB: st.binary(),
    ArgType.EMBEDDING: st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False)),
    ArgType.HANDLE: st.just("h-1"),
    ArgType.ENTITYID: st.just("E_1") | st.builds(lambda more: {"id": "E_1", "more": more}, ANYTHING),
    ArgType.STRING: TEXTS,
}
SOME = (*DEFAULTS, ArgType.SLICE, ArgType.LIST, ArgType.MAP_STRING_ANY, ArgType.NODEID, ArgType.NIL, ArgType.SLICE_MAP)


@st.composite
def arguments(draw: st.DrawFn, name: str = "", depth: int = 1) -> ArgSpec:
    """Draw an argument with whatever fits to its type."""
    kind = draw(st.sampled_from(SOME))
    fields: dict[str, Any] = {
        "required": draw(st.sampled_from([None, True, False])),
        "nullable": draw(st.booleans()),
        "secret": draw(st.booleans()),
        "description": draw(TEXTS),
    }
    if fields["required"] is not True and kind in DEFAULTS:
        fields["default"] = draw(st.none() | DEFAULTS[kind] | st.just(UNSET))
    if kind in (ArgType.STRING, ArgType.BLOB, ArgType.EMBEDDING, ArgType.MAP, ArgType.SLICE_MAP) and draw(
        st.booleans()
    ):
        fields |= {"min_length": draw(st.sampled_from([None, 0, 1])), "max_length": draw(st.sampled_from([None, 5]))}
    if kind in (ArgType.MAP, ArgType.SLICE_MAP) and depth:
        keys = tuple(draw(arguments(each, depth - 1)) for each in draw(st.sampled_from(["", "p", "pq"])))
        fields |= {"keys": keys, "extra_keys": bool(keys) and draw(st.booleans())}
    try:
        return ArgSpec(name, kind, **fields)
    except SpecError:  # a default that does not fit the bounds
        fields.pop("default", None)
        return ArgSpec(name, kind, **fields)


@st.composite
def specs(draw: st.DrawFn) -> ToolSpec:
    """Draw a spec: some arguments of the seeded generator, some of ours, and all that a tool says."""
    generated = Generator(draw(st.integers(0, 2**32))).spec(draw(st.integers(0, 3)))
    ours = tuple(draw(arguments(f"b-{index}")) for index in range(draw(st.integers(0, 2))))
    args = (*ours, *generated.args)
    texts = {name: draw(TEXTS) for name in ("description", "when_to_use", "return_help", "category", "deprecated")}
    examples = st.builds(
        Example, st.lists(ANYTHING, max_size=2).map(tuple) | st.dictionaries(TEXTS, ANYTHING, max_size=2), ANYTHING
    )
    return ToolSpec(
        "t",
        "g",
        args,
        **texts,
        return_type=draw(st.sampled_from(list(ArgType))),
        examples=tuple(draw(st.lists(examples, max_size=2))),
        variadic=generated.variadic,
        stream=draw(st.booleans()),
        return_nullable=draw(st.booleans()),
    )


def first_party() -> list[ToolSpec]:
    """Return the specs of all installed tools."""
    with Engine() as engine:
        return [tool.spec for tool in engine.tools.values()]


def without_classes(spec: ToolSpec) -> ToolSpec:
    """Return a spec with keys in place of the classes of arguments, which no data can hold."""
    args = tuple(attrs.evolve(arg, cls=None, keys=arg.keys) if arg.cls else arg for arg in spec.args)
    return attrs.evolve(spec, args=args)


def check_round_trip(spec: ToolSpec) -> None:
    """Assert that a schema is one, stays one as text, and gives the same spec again."""
    schema = spec_to_schema(spec)
    META.validate(schema)
    META.validate(spec_to_schema(spec, exact=False))
    assert "x-neuroscript" not in json.dumps(spec_to_schema(spec, exact=False))
    for said in (schema, json.loads(json.dumps(schema))):
        again = spec_from_schema(spec.full_name, said)
        assert again == spec
        assert repr(again) == repr(spec), "the same types, too"
        assert again.schema == ""
    assert spec_from_schema(spec.full_name, json.loads(json.dumps(schema, sort_keys=True))) == spec


@pytest.mark.parametrize("spec", first_party(), ids=lambda spec: spec.full_name)
def test_each_tool_of_ours_comes_back_as_it_was(spec: ToolSpec) -> None:
    """Its schema passes the meta-schema, and reading it gives the same spec."""
    check_round_trip(without_classes(spec))


@settings(max_examples=500, deadline=None)
@given(specs())
def test_each_spec_comes_back_as_it_was(spec: ToolSpec) -> None:
    """With every field, every default and every example, of the same types."""
    check_round_trip(spec)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(list(ArgType)), st.booleans())
def test_the_schema_of_a_result_is_one(kind: ArgType, nullable: bool) -> None:
    """For each type there is."""
    META.validate(result_schema(ToolSpec("t", "g", return_type=kind, return_nullable=nullable, return_help="R.")))


KINDS = sorted({worded(kind) for kind in ArgType}, key=len, reverse=True)


def kind_in(expected: str) -> str:
    """Return the type that an error names first, without what else it asks; other words as they are."""
    return next((kind for kind in KINDS if expected.startswith(kind)), expected.partition(",")[0])


def rows() -> list[tuple[str, str, Any]]:
    """Return the published differences: code, what is expected, and a value."""
    found = re.findall(r"^\| `([a-z.]+)` \| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|", PAGE.read_text(), re.MULTILINE)
    return [(code, expected, (json.loads(arg), json.loads(value))) for code, expected, arg, value in found]


@pytest.mark.parametrize(("code", "expected", "case"), rows(), ids=lambda each: str(each)[:40])
def test_each_published_difference_is_one(code: str, expected: str, case: Any) -> None:
    """The value validates, and strict mode refuses it with that code."""
    data, value = case
    spec = spec_from_data({"name": "t", "groupname": "g", "args": [{"name": "a", "required": True, **data}]})
    jsonschema.Draft202012Validator(spec_to_schema(spec)).validate({"a": value})

    with pytest.raises(ArgumentError) as caught:
        bind_arguments(spec, STRICT, {"a": value}, by_name=True)
    assert [(each.code, kind_in(each.expected)) for each in caught.value.problems] == [(code, expected)]


def test_the_least_length_of_a_map_that_is_filled_up_comes_back() -> None:
    """JSON Schema counts what was sent, and a spec what it was filled up to; so the schema has no word for it."""
    key = ArgSpec("p", ArgType.ANY, required=False, default=None)
    arg = ArgSpec("a", ArgType.MAP, required=False, default=None, keys=(key,), min_length=0)
    spec = ToolSpec("t", "g", (arg,))

    schema = spec_to_schema(spec)

    assert "minProperties" not in str(schema)
    assert spec_from_schema("g.t", schema) == spec


def sent(seed: int, spec: ToolSpec) -> Iterator[dict[str, Any]]:
    """Yield calls by name: exact values, and what JSON makes of them."""
    source = Generator(seed)
    for _ in range(6):
        given: dict[str, Any] = {}
        for arg in spec.args:
            value = source.value(arg)
            with suppress(ArgumentError):
                value = coerce(value, arg)
            is_further = spec.variadic and arg is spec.args[-1]
            given[arg.name] = [value] if is_further else value
        if given and source.random() < 0.3:
            given.pop(source.choice([*given]))
        yield given
        with suppress(TypeError, ValueError):
            yield json.loads(json.dumps(plain(given), allow_nan=False))


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 3))
def test_strict_mode_and_the_schema_agree_but_for_what_is_published(seed: int, count: int) -> None:
    """What strict mode accepts validates; what validates is accepted, or a published difference."""
    spec = Generator(seed).spec(count)
    validator = jsonschema.Draft202012Validator(spec_to_schema(spec))
    published = {(code, expected) for code, expected, _ in rows()}
    for given_by_name in sent(seed, spec):
        problems: set[tuple[str, str]] = set()
        try:
            bind_arguments(spec, STRICT, given_by_name, by_name=True)
        except ArgumentError as error:
            problems = {(each.code, kind_in(each.expected)) for each in error.problems}
        else:
            validator.validate(plain(given_by_name))
        if problems and as_json(given_by_name) and validator.is_valid(given_by_name):
            assert problems <= published


def as_json(value: Any) -> bool:
    """Tell whether a value is one that JSON has."""
    try:
        return is_same(json.loads(json.dumps(value, allow_nan=False)), value)
    except (TypeError, ValueError):
        return False


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two values are equal and of one type, and so all that they hold."""
    if type(one) is not type(other) or one != other:
        return False
    if isinstance(one, dict):
        return all(is_same(one[key], other[key]) for key in one)
    return not isinstance(one, list) or all(map(is_same, one, other))


def test_a_schema_is_shared_and_can_not_be_changed() -> None:
    """At no level; a copy is plain data that can be, and so is what a pickle gives."""
    spec = ToolSpec("t", "g", (ArgSpec("a", ArgType.SLICE_STRING, choices=("x",)),))
    schema = spec_to_schema(spec)
    for change in (
        lambda: schema.update(type="array"),
        lambda: schema["properties"].pop("a"),
        lambda: schema["properties"]["a"]["items"]["enum"].append("y"),
        lambda: schema["required"].__iadd__(["b"]),
    ):
        with pytest.raises(TypeError, match="read-only"):
            change()
    for copied in (copy.deepcopy(schema), pickle.loads(pickle.dumps(schema)), json.loads(json.dumps(schema))):
        copied["properties"]["a"]["items"]["enum"].append("y")
        copied["required"] += ["b"]
        assert type(copied) is type(copied["properties"]) is dict

    assert spec_to_schema(spec) is schema
    assert schema["properties"]["a"]["items"]["enum"] == ["x"]
    assert schema["required"] == ["a"]


def test_an_example_that_json_can_not_say_is_refused() -> None:
    """With the type of what it holds, and not with a guess."""
    spec = ToolSpec("t", "g", examples=(Example(({1, 2},), error="arg.count"),))

    with pytest.raises(SpecError) as caught:
        spec_to_schema(spec)
    assert str(caught.value) == "g.t: an example contains set, which JSON cannot represent"


FOREIGN: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Order",
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]+$"},
        "mail": {"type": "string", "format": "email"},
        "odd": {"type": "integer", "multipleOf": 3},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "either": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        "only": {"const": "x"},
        "place": {"$ref": "#/$defs/place"},
    },
    "required": ["code"],
    "dependentRequired": {"mail": ["tags"]},
    "if": {"properties": {"code": {"const": "A"}}},
    "then": {"required": ["odd"]},
    "maxProperties": 5,
    "propertyNames": {"maxLength": 6},
    "$defs": {"place": {"type": "object", "properties": {"zip": {"type": "string", "minLength": 5}}}},
}


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
        ({"code": "B", "tags": '["a", "a"]'}, "shop.order: tags: expected unique items, got list of length 2"),
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
            "shop.order: either: expected a value that matches exactly one of the schemas in oneOf, got float",
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
    """Before the function runs, by name and by position alike, and no value stands in the text."""
    ran: list[Any] = []
    spec = spec_from_schema("shop.order", FOREIGN)
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
    """As exact values; a text that holds the number is one that fits."""
    spec = spec_from_schema("shop.order", FOREIGN)

    assert bind_named(spec, {"code": "A", "odd": "6"}) == ("A", None, 6, None, None, None, None)
    assert bind(spec, ["B"]) == ("B", None, None, None, None, None, None)


def test_problems_have_codes_of_their_keywords() -> None:
    """All of them at once."""
    spec = spec_from_schema("shop.order", FOREIGN)

    with pytest.raises(ArgumentError) as caught:
        bind_named(spec, {"code": "a", "odd": 4, "tags": ["x", "x"]})
    assert sorted(each.code for each in caught.value.problems) == [
        "schema.multipleOf",
        "schema.pattern",
        "schema.uniqueItems",
    ]


NULLABLE = [
    {"type": ["integer", "null"]},
    {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    {"type": "integer", "nullable": True},
    {"oneOf": [{"type": "null"}, {"type": "integer"}]},
    {"$ref": "#/$defs/n"},
]


@pytest.mark.parametrize("schema", NULLABLE, ids=json.dumps)
def test_each_spelling_of_null_is_understood(schema: dict[str, Any]) -> None:
    """And None gets through, a text that is no number does not."""
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
    """What a spec can not say, the validator does."""
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
    ids=range(23),
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


PLAIN_PARTS = st.deferred(
    lambda: st.one_of(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["string", ["string", "null"]])},
            optional={"minLength": st.just(1), "maxLength": st.just(3), "title": TEXTS},
        ),
        st.fixed_dictionaries(
            {"type": st.sampled_from(["integer", "number", ["number", "null"]])},
            optional={"minimum": st.just(-2), "maximum": st.just(5), "default": st.none() | TEXTS},
        ),
        st.fixed_dictionaries({"type": st.just("string"), "enum": st.just(["a", "b"])}),
        st.fixed_dictionaries({"type": st.just("array")}, optional={"items": PLAIN_PARTS, "maxItems": st.just(2)}),
        st.fixed_dictionaries(
            {"type": st.just("object")},
            optional={
                "properties": st.dictionaries(st.sampled_from("pq"), PLAIN_PARTS, max_size=2),
                "additionalProperties": st.booleans() | st.just({"type": "integer"}),
            },
        ),
    )
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 7) | st.sampled_from(["", "a", "b", "long text", 1.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("pqr"), inner, max_size=2),
)


@settings(max_examples=500, deadline=None)
@given(PLAIN_PARTS, JSON)
def test_what_gets_past_an_imported_schema_validates(part: dict[str, Any], value: Any) -> None:
    """Whether the spec says it all or the validator has to be asked: exact values fit, whatever was sent."""
    root = {"type": "object", "properties": {"a": part}, "required": ["a"]}
    spec = spec_from_schema("g.t", root)
    assert spec_to_schema(spec) == root or spec.schema == ""
    try:
        [exact] = bind_named(spec, {"a": value})
    except ArgumentError:
        return
    assert_fits(part, plain(exact))


def assert_fits(part: dict[str, Any], value: Any) -> None:
    """Assert that a value validates, None aside where a key may be left out: there it says that it was."""
    for error in jsonschema.Draft202012Validator(part).iter_errors(value):
        assert error.instance is None, error.message
        assert error.absolute_path, "an argument that is required"


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
        'install the validator with: pip install "neuroscript[schema]"'
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


def test_an_argument_that_others_depend_on_can_not_be_hidden() -> None:
    """What the schema asks of them together could not be asked any more."""
    tools = Toolset("shop", [ToolImplementation(spec_from_schema("shop.order", FOREIGN), lambda rt, *values: None)])

    with pytest.raises(SpecError) as caught:
        tools.with_fixed("shop.order", code="A")
    assert str(caught.value) == "shop.order: its schema constrains several arguments together, so none can be injected"


def test_what_was_changed_after_the_import_comes_back_too() -> None:
    """The schema stays as it was, and the spec stands beside it."""
    spec = spec_from_schema("shop.order", FOREIGN)
    secret = attrs.evolve(spec.args[0], secret=True)
    changed = attrs.evolve(spec, args=(secret, *spec.args[1:]), when_to_use="Always.")
    schema = spec_to_schema(changed)

    assert spec_from_schema("shop.order", schema) == changed
    assert schema["x-neuroscript"]["spec"]["whenToUse"] == "Always."
    assert spec_to_schema(changed, exact=False) == FOREIGN


def test_a_default_that_does_not_fit_is_left_out() -> None:
    """An argument of others stays one that may be omitted."""
    spec = spec_from_schema("g.t", {"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}})

    assert (spec.args[0].default, spec.args[0].required) == (UNSET, False)


def test_a_spec_with_a_schema_can_be_copied() -> None:
    """Deeply, too."""
    spec = spec_from_schema("shop.order", FOREIGN)
    spec_to_schema(spec)

    assert copy.deepcopy(spec) == spec


def test_embeddings_and_blobs_come_back() -> None:
    """As what they were."""
    args = (ArgSpec("e", ArgType.EMBEDDING, default=array("f", [1.5])), ArgSpec("b", ArgType.BLOB, default=b"\xff"))

    check_round_trip(ToolSpec("t", "g", args))


WORDS = st.sampled_from(
    [
        *(
            "type",
            "properties",
            "required",
            "items",
            "enum",
            "const",
            "anyOf",
            "oneOf",
            "allOf",
            "$ref",
            "$defs",
            "not",
        ),
        *("additionalProperties", "nullable", "default", "x-neuroscript", "minimum", "minLength", "pattern", "if", "a"),
    ]
)
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["object", "array", "string", "integer", "null", "#", "#/$defs/a", "#/properties", "blob", "("]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=1000, deadline=None)
@given(st.dictionaries(WORDS, ODD, max_size=4), ODD, JSON)
def test_whatever_a_schema_is_it_is_taken_or_refused(schema: dict[str, Any], part: Any, value: Any) -> None:
    """With a SpecError and nothing else; what is taken is written out as it was, and can be called."""
    schema = {**schema, "type": "object", "properties": {"a": part}}
    try:
        spec = spec_from_schema("g.t", schema)
    except SpecError as error:
        assert error.problems
        return
    assert spec_from_schema("g.t", spec_to_schema(spec)) == spec
    if spec.schema:
        again = spec_to_schema(spec, exact=False)
        assert again == {key: each for key, each in schema.items() if key != "x-neuroscript"}
    with suppress(ArgumentError):
        bind_named(spec, {"a": value})


def schemas_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return schemas whose keywords have values of the right kind, and schemas of *inner* within."""
    kinds = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
    names = st.sampled_from("pqr")
    ways = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": kinds | st.lists(kinds, min_size=1, max_size=3, unique=True),
            "properties": st.dictionaries(names, inner, max_size=2),
            "required": st.lists(names, max_size=2, unique=True),
            "additionalProperties": inner | st.booleans(),
            "items": inner | st.booleans(),
            "enum": st.lists(JSON, min_size=1, max_size=3),
            "const": JSON,
            "minLength": st.integers(0, 3),
            "maximum": st.integers(-2, 9) | st.just(2.5),
            "multipleOf": st.just(2),
            "uniqueItems": st.booleans(),
            "anyOf": ways,
            "oneOf": ways,
            "allOf": ways,
            "not": inner,
            "if": inner,
            "then": inner,
            "dependentRequired": st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=1),
            "pattern": st.sampled_from(["^a", "b$", "(?=l)o?"]),
            "default": JSON,
            "$ref": st.sampled_from(["#/$defs/a", "#/$defs/b", "#/properties/v", "#/$defs/a/items"]),
        },
    )


SCHEMAS = st.recursive(st.just({}) | schemas_of(st.just({"type": "string"})), schemas_of, max_leaves=5)


@settings(max_examples=100, deadline=None)
@given(st.tuples(SCHEMAS, SCHEMAS, SCHEMAS), st.lists(JSON, min_size=1, max_size=4))
def test_what_is_called_fits_the_schema_as_another_validator_sees_it(parts: Any, sent: list[Any]) -> None:
    """Whatever the schema says and whatever was sent: exact values that reach a function validate."""
    part, first, second = parts
    root = {"type": "object", "properties": {"v": part}, "required": ["v"], "$defs": {"a": first, "b": second}}
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
            [exact] = bind_named(spec, {"v": value})
        except ArgumentError:
            continue
        assert oracle.is_valid({"v": plain(exact)})
