"""Recursive and hostile schemas: each becomes a spec or a `SpecError`, in linear time."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.work import seconds_in

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    SpecError,
    ToolSpec,
    bind_named,
    spec_from_schema,
    spec_to_schema,
)
from neuroscript.coercion.schema_inspection import (
    MAX_CHAIN_SCHEMAS,
    MAX_EXPANDED_SCHEMAS,
    MAX_SCHEMAS_OF_ONE_VALUE,
    check_schema,
)
from neuroscript.formats.json_schema_reader import MAX_PROPERTIES

Schema = dict[str, Any]


def tool(argument: Schema, **definitions: Schema) -> Schema:
    """Return the schema of a tool with one required argument, ``v``."""
    return {"type": "object", "properties": {"v": argument}, "required": ["v"], "$defs": definitions}


STRING: Schema = {"type": "string"}
SELF: Schema = {"$ref": "#/$defs/T"}
ONE_WAY: Schema = {"$ref": "#/$defs/A"}
OTHER: Schema = {"$ref": "#/$defs/B"}
JSON_VALUE: Schema = {
    "anyOf": [
        {"type": ["string", "number", "boolean", "null"]},
        {"type": "array", "items": SELF},
        {"type": "object", "additionalProperties": SELF},
    ]
}
OLD: Schema = {
    "type": "object",
    "properties": {"v": {"$ref": "#/definitions/T"}},
    "required": ["v"],
    "definitions": {"T": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/definitions/T"}}]}},
}

RECURSIVE: list[tuple[str, Schema, ArgType, Any, Any]] = [
    ("a JSON value", tool(SELF, T=JSON_VALUE), ArgType.ANY, {"a": [1, None, {"b": "c"}]}, None),
    ("a list of JSON values", tool({"type": "array", "items": SELF}, T=JSON_VALUE), ArgType.SLICE_ANY, [[1]], "a"),
    (
        "anyOf",
        tool(SELF, T={"anyOf": [{"type": "string"}, {"type": "array", "items": SELF}]}),
        ArgType.ANY,
        ["a", [["b"]]],
        ["a", [[1]]],
    ),
    (
        "oneOf",
        tool(SELF, T={"oneOf": [{"type": "array", "items": SELF}, {"type": "integer"}]}),
        ArgType.ANY,
        [[1], 2],
        [[1], "a"],
    ),
    (
        "allOf",
        tool(SELF, T={"allOf": [{"type": "array", "items": SELF}]}),
        ArgType.SLICE_ANY,
        [[], [[]]],
        [[], [[1]]],
    ),
    ("items", tool(SELF, T={"type": "array", "items": SELF}), ArgType.SLICE_ANY, [[], [[]]], [[], [[1]]]),
    (
        "prefixItems",
        tool(SELF, T={"type": "array", "prefixItems": [{"anyOf": [{"type": "null"}, SELF]}]}),
        ArgType.SLICE_ANY,
        [[None]],
        [[1]],
    ),
    (
        "additionalProperties",
        tool(SELF, T={"type": "object", "additionalProperties": SELF}),
        ArgType.MAP,
        {"a": {"b": {}}},
        {"a": {"b": 1}},
    ),
    (
        "patternProperties",
        tool(SELF, T={"type": "object", "patternProperties": {"^a": SELF}}),
        ArgType.MAP,
        {"a": {"a": {}}, "b": 1},
        {"a": {"a": 1}},
    ),
    (
        "two definitions",
        tool(
            ONE_WAY,
            A={"anyOf": [{"type": "string"}, OTHER]},
            B={"anyOf": [{"type": "null"}, {"type": "array", "items": ONE_WAY}]},
        ),
        ArgType.ANY,
        ["a", [None]],
        ["a", [1]],
    ),
    ("definitions", OLD, ArgType.ANY, ["a", [["b"]]], ["a", [[1]]]),
    (
        "the root",
        {"type": "object", "properties": {"v": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}}, "required": ["v"]},
        ArgType.ANY,
        {"v": {"v": 1}},
        {"v": {"v": "a"}},
    ),
    (
        "a description beside the reference",
        tool(
            SELF,
            T={
                "type": "object",
                "properties": {"next": {**SELF, "description": "The rest."}, "size": {"type": "integer"}},
            },
        ),
        ArgType.MAP,
        {"next": {"next": {"size": 1}}},
        {"next": {"next": {"size": "a"}}},
    ),
]


@pytest.mark.parametrize(
    ("schema", "kind", "right", "wrong"),
    [each[1:] for each in RECURSIVE],
    ids=[each[0].replace(" ", "-") for each in RECURSIVE],
)
def test_recursive_schema_is_read_and_every_level_is_checked(
    schema: Schema, kind: ArgType, right: Any, wrong: Any
) -> None:
    """The spec describes what it can, and the validator checks the rest."""
    spec = spec_from_schema("g.t", schema)

    assert [(arg.name, arg.type) for arg in spec.args] == [("v", kind)]
    assert bind_named(spec, {"v": right}) == (right,)
    if wrong is not None:
        with pytest.raises(ArgumentError) as caught:
            bind_named(spec, {"v": wrong})
        assert caught.value.retry == "model"
    assert spec_to_schema(spec, exact=False) == schema
    assert spec_from_schema("g.t", spec_to_schema(spec)) == spec


def test_key_that_repeats_its_map_is_a_map_without_keys() -> None:
    """A description next to the reference does not unfold the map again."""
    (_, schema, _, _, _) = RECURSIVE[-1]

    (arg,) = spec_from_schema("g.t", schema).args

    assert [(key.name, key.type, key.keys) for key in arg.keys] == [
        ("next", ArgType.MAP, ()),
        ("size", ArgType.INT, ()),
    ]


# Refused schemas


def chain(length: int, step: Callable[[Schema], Schema] = lambda each: each) -> Schema:
    """Return a schema whose argument is a string behind *n* definitions, each of which refers to the next."""
    steps = {f"n{index}": step({"$ref": f"#/$defs/n{index + 1}"}) for index in range(length)}
    return tool({"$ref": "#/$defs/n0"}, **steps, **{f"n{length}": {"type": "string"}})


def wrapped(depth: int, wrap: Callable[[Schema], Schema]) -> Schema:
    """Return a schema whose argument is a string nested in *n* schemas."""
    schema: Schema = {"type": "string"}
    for _ in range(depth):
        schema = wrap(schema)
    return tool(schema)


LONG_CHAIN = f"#: more than {MAX_CHAIN_SCHEMAS} schemas in one chain of $ref, anyOf and similar keywords"
ENDLESS = "#: a $ref leads back to itself without reaching another value"
TOO_MANY = f"#: more than {MAX_EXPANDED_SCHEMAS} schemas after its references are expanded"
TOO_MANY_OF_ONE = f"#: more than {MAX_SCHEMAS_OF_ONE_VALUE} schemas for one value in a schema that refers to itself"
TOO_DEEP = "#: nests deeper than 64 levels"


def laughs(levels: int, last: Schema = STRING) -> Schema:
    """Return a schema that doubles at each level when its references are replaced."""
    steps = {
        f"n{index}": {"anyOf": [{"$ref": f"#/$defs/n{index + 1}"}] * 2, "title": str(index)} for index in range(levels)
    }
    return tool({"$ref": "#/$defs/n0"}, **steps, **{f"n{levels}": last})


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (chain(900), LONG_CHAIN),
        (chain(12_000), LONG_CHAIN),
        (chain(900, lambda each: {"anyOf": [each]}), LONG_CHAIN),
        (chain(900, lambda each: {"allOf": [each], "title": "T"}), LONG_CHAIN),
        (wrapped(10_000, lambda each: {"type": "array", "items": each}), TOO_DEEP),
        (wrapped(10_000, lambda each: {"anyOf": [each, {"type": "null"}]}), TOO_DEEP),
        (wrapped(10_000, lambda each: {"type": "object", "properties": {"a": each}}), TOO_DEEP),
        (tool(SELF, T=SELF), ENDLESS),
        (tool(SELF, T={"anyOf": [SELF, {"type": "string"}]}), ENDLESS),
        (tool(ONE_WAY, A=OTHER, B={"allOf": [ONE_WAY], "not": {}}), ENDLESS),
        (laughs(20), TOO_MANY),
        (laughs(20, {"type": "array", "items": {"$ref": "#/$defs/n0"}}), TOO_MANY_OF_ONE),
    ],
    ids=[
        *("refs", "many-refs", "anyOf", "allOf", "items", "nested-anyOf", "properties", "self", "self-in-anyOf"),
        *("two", "doubling", "doubling-and-recursive"),
    ],
)
def test_schema_beyond_the_limits_is_refused_by_name(schema: Schema, problem: str) -> None:
    """The error is one sentence and not a RecursionError, at any stack depth of the caller."""
    found: list[tuple[str, ...]] = []

    def read(frames: int) -> None:
        if frames:
            read(frames - 1)
            return
        with pytest.raises(SpecError) as caught:
            spec_from_schema("g.t", schema)
        found.append(caught.value.problems)

    read(0)
    read(500)

    assert found == [(problem,)] * 2


def test_longest_chain_is_read_from_a_deep_stack() -> None:
    """A schema within the limits needs few frames."""
    deepest = chain(MAX_CHAIN_SCHEMAS // 2 - 2, lambda each: {"anyOf": [each, {"type": "null"}]})

    def read(frames: int) -> ToolSpec:
        return read(frames - 1) if frames else spec_from_schema("g.t", deepest)

    spec = read(500)
    assert (spec.args[0].type, spec.args[0].nullable) == (ArgType.STRING, True)


@pytest.mark.parametrize(
    "step",
    [
        lambda each: {"type": "array", "items": each},
        lambda each: {"type": "array", "prefixItems": [each], "items": False, "minItems": 1},
        lambda each: {"type": "object", "properties": {"a": each}},
        lambda each: {"type": "object", "additionalProperties": each},
        lambda each: {"anyOf": [{"type": "array", "items": each}, {"type": "null"}]},
    ],
    ids=["items", "prefixItems", "properties", "additionalProperties", "anyOf"],
)
def test_long_chain_of_containers_is_left_to_the_validator(step: Callable[[Schema], Schema]) -> None:
    """References can nest containers more deeply than Python's stack."""
    spec = spec_from_schema("g.t", chain(1_000, step))

    assert check_schema(spec.schema).asks_more


# Time


def properties(count: int) -> Schema:
    return {f"p{index}": {"type": "string"} for index in range(count)}


@pytest.mark.slow
def test_number_of_arguments_is_bounded() -> None:
    """A map with too many keys is read as a map without keys, and the validator checks them."""
    most = spec_from_schema("g.t", {"type": "object", "properties": properties(MAX_PROPERTIES)})
    with pytest.raises(SpecError) as caught:
        spec_from_schema("g.t", {"type": "object", "properties": properties(MAX_PROPERTIES + 1)})
    (arg,) = spec_from_schema("g.t", tool({"type": "object", "properties": properties(15_000)})).args

    assert len(most.args) == MAX_PROPERTIES
    assert str(caught.value) == f"g.t: #/properties: more than {MAX_PROPERTIES} properties"
    assert (arg.type, arg.keys) == (ArgType.MAP, ())


def crossed(count: int) -> Schema:
    """Return definitions that are lists of all the others, so the number of paths between them explodes."""
    refs = [{"type": "array", "items": {"$ref": f"#/$defs/n{index}"}} for index in range(count)]
    return tool({"$ref": "#/$defs/n0"}, **{f"n{index}": {"anyOf": refs} for index in range(count)})


def maps(count: int) -> Schema:
    """Return the same with maps, whose keys are read."""
    refs = {f"k{index}": {"$ref": f"#/$defs/n{index}", "description": "A."} for index in range(count)}
    return tool(
        {"$ref": "#/$defs/n0"}, **{f"n{index}": {"properties": refs, "type": "object"} for index in range(count)}
    )


def wide(count: int) -> Schema:
    """Return arguments that all refer to one schema with many keywords."""
    big: Schema = {"type": "string", **{f"x-{index}": 1 for index in range(8 * count)}}
    many = {f"p{index}": {"$ref": "#/$defs/big", "title": "T"} for index in range(count)}
    return {"type": "object", "properties": many, "$defs": {"big": big}}


def shared(count: int, **schema: Any) -> Schema:
    """Return arguments that all refer to one schema."""
    many = {f"p{index}": {"$ref": "#/$defs/one"} for index in range(count)}
    return {"type": "object", "properties": many, "$defs": {"one": schema}}


def names(count: int) -> list[str]:
    return [f"n{index}" for index in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda count: shared(count, enum=names(20 * count)), 300),
        (lambda count: shared(count, type=["string", "null"], enum=[*names(20 * count), None]), 300),
        (lambda count: shared(count, type="object", properties=properties(1), required=names(20 * count)), 300),
        (lambda count: {"type": "object", "properties": properties(count)}, 1_000),
        (lambda count: tool({"type": "object", "properties": properties(count)}), 900),
        (lambda count: tool({"type": "object", "properties": properties(count)}), 5_000),
        (wide, 400),
    ],
    ids=["choices", "choices-with-null", "required", "arguments", "keys", "keys-left-to-the-schema", "keywords"],
)
def test_reading_is_linear(make: Callable[[int], Schema], count: int) -> None:
    """Four times the input takes about four times as long; a quadratic step would make it sixteen times."""
    half, two = make(count // 2), make(2 * count)

    assert seconds_in(lambda: spec_from_schema("g.t", two)) < 9 * seconds_in(lambda: spec_from_schema("g.t", half))


def test_checking_a_spec_is_linear() -> None:
    """Duplicate names are found without comparing each name with all others."""
    one, two = ([ArgSpec(f"a{index}", ArgType.STRING) for index in range(count)] for count in (4_000, 16_000))

    assert seconds_in(lambda: ToolSpec("t", "g", tuple(two))) < 9 * seconds_in(lambda: ToolSpec("t", "g", tuple(one)))


def test_choices_above_their_bound_are_left_to_the_schema() -> None:
    """Arguments that share an enum have its choices while the total is small enough; all are checked."""
    spec = spec_from_schema("g.t", shared(6, enum=names(20_000)))

    assert [len(arg.choices) for arg in spec.args] == [20_000, 20_000, 0, 0, 0, 0]
    assert bind_named(spec, {"p5": "n19999"})
    for name, code in (("p0", "coercion.choice"), ("p5", "schema.enum")):
        with pytest.raises(ArgumentError) as caught:
            bind_named(spec, {name: "n20000"})
        assert (caught.value.code, caught.value.retry) == (code, "model")


@pytest.mark.parametrize("number", [10**1_100, -(10**5_000)], ids=["long", "too long for Python"])
@pytest.mark.parametrize("keyword", ["minimum", "const", "default", "x-note"])
def test_number_with_too_many_digits_is_refused(keyword: str, number: int) -> None:
    """Python refuses to format numbers of more than 4,300 digits, and hosts may lower that limit."""
    with pytest.raises(SpecError) as caught:
        spec_from_schema("g.t", tool({keyword: number}))

    assert str(caught.value) == "g.t: #: contains a number with more than 1000 digits"


def test_repeated_types_are_refused_by_their_count() -> None:
    """They are never compared with each other, however many arguments refer to them."""
    with pytest.raises(SpecError) as caught:
        spec_from_schema("g.t", shared(100, type=["string"] * 10_000))

    assert str(caught.value) == "g.t: #/$defs/one/type: expected at most 7 words"


def test_error_message_lists_only_some_problems() -> None:
    """A hostile schema cannot flood a terminal or a log; an attribute gives the number of problems."""
    with pytest.raises(SpecError) as caught:
        spec_from_schema("g.t", {"type": "object", "properties": {f"a b{index}": {} for index in range(1_900)}})

    assert (len(caught.value.problems), caught.value.total) == (100, 1_900)
    assert str(caught.value) == f"g.t: {'; '.join(caught.value.problems[:20])}; and 1880 more"


@pytest.mark.slow
@pytest.mark.parametrize("schema", [crossed(60), maps(40)], ids=["lists", "maps"])
def test_many_paths_between_definitions_are_not_all_followed(schema: Schema) -> None:
    """A recursive schema may have more paths than can be followed."""
    done: list[ToolSpec] = []
    thread = threading.Thread(target=lambda: done.append(spec_from_schema("g.t", schema)), daemon=True)
    thread.start()
    thread.join(60)

    assert len(done) == 1


def test_patterns_share_one_budget_of_memory() -> None:
    """A schema with many patterns is refused if compiling them would take more."""
    many = {f"p{index}": {"type": "string", "pattern": rf"^.{{1,400}}{index}$"} for index in range(1_500)}
    few = dict(list(many.items())[:20])

    assert len(spec_from_schema("g.t", {"type": "object", "properties": few}).args) == 20
    with pytest.raises(SpecError) as caught:
        spec_from_schema("g.t", {"type": "object", "properties": many})
    assert len(caught.value.problems) <= 20


# Fuzzing

NAMES = ("a", "b", "c")
KINDS = ("string", "integer", "number", "boolean", "array", "object", "null", "strin")


def hostile(source: random.Random, depth: int) -> Any:
    """Return something like a schema, with references everywhere and some values of wrong types."""
    if depth == 0 or source.random() < 0.05:
        return source.choice([True, False, {}, SELF_REFERENCES[0], None, 5, "a", [], {"type": "string"}])
    schema: Schema = {}
    for word in source.sample([*WORDS], source.randint(1, 4)):
        schema[word] = WORDS[word](source, depth - 1)
    return schema


def named(source: random.Random, depth: int) -> Any:
    return {name: hostile(source, depth) for name in source.sample(NAMES, source.randint(0, 3))}


def several(source: random.Random, depth: int) -> Any:
    return [hostile(source, depth) for _ in range(source.randint(0, 3))]


SELF_REFERENCES = [
    *({"$ref": "#"}, {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}, {"$ref": "#/$defs/c"}, {"$ref": "#/definitions/a"}),
    *({"$ref": "#/properties/v"}, {"$ref": "#/properties"}, {"$ref": "#/$defs/a/anyOf/0"}, {"$ref": "#a"}),
    *({"$ref": "other.json"}, {"$dynamicRef": "#a"}, {"$anchor": "a"}, {"$ref": 5}, {"$ref": "#/$defs/a/items"}),
]
WORDS: dict[str, Callable[[random.Random, int], Any]] = {
    "type": lambda source, _: source.choice([*KINDS, [*source.sample(KINDS, 2)], {}, [[]]]),
    "$ref": lambda source, _: source.choice(SELF_REFERENCES).get("$ref", "#"),
    "properties": named,
    "patternProperties": named,
    "$defs": named,
    "dependentSchemas": named,
    "anyOf": several,
    "oneOf": several,
    "allOf": several,
    "prefixItems": several,
    "items": hostile,
    "additionalProperties": hostile,
    "not": hostile,
    "if": hostile,
    "enum": lambda source, _: source.choice([["a", "b"], [1, 1.5, None], [], "a", [{}]]),
    "const": lambda source, _: source.choice(["a", None, 1, [1], {}]),
    "required": lambda source, _: source.choice([["a"], ["v"], "a", [1], []]),
    "default": lambda source, _: source.choice([None, 1, "a", [1], {"a": 1}]),
    "nullable": lambda source, _: source.choice([True, False, "yes"]),
    "minLength": lambda source, _: source.choice([1, -1, 1.5, "a", 10**30]),
    "maximum": lambda source, _: source.choice([1, 1e308, "a", 10**400]),
    "pattern": lambda source, _: source.choice(["^a", "(", "(?=a)b", 5]),
    "description": lambda source, _: source.choice(["A.", 5, None]),
    "$schema": lambda source, _: source.choice(["http://json-schema.org/draft-07/schema#", "x", 5]),
    "x-neuroscript": lambda source, depth: source.choice(
        [5, {}, {"type": "blob"}, {"type": 5}, {"order": [5]}, {"spec": hostile(source, depth)}, {"examples": [{}]}]
    ),
}


@pytest.mark.parametrize("seed", range(8))
def test_hostile_schema_raises_only_spec_errors(seed: int, full_counts: bool) -> None:
    """This covers reading and writing; a tool that is read can be called with anything."""
    source = random.Random(seed)
    for _ in range(2_000 if full_counts else 150):
        schema = tool(source.choice([hostile(source, 4), *SELF_REFERENCES]), **named(source, 4))
        more = hostile(source, 3)
        schema |= more if isinstance(more, dict) and source.random() < 0.3 else {}
        try:
            spec = spec_from_schema("g.t", schema)
        except SpecError as error:
            assert error.problems
            continue
        spec_to_schema(spec)
        for value in (None, 1, "a", [["a"], {}], {"v": {"a": [1]}, "a": None}):
            try:
                bind_named(spec, {"v": value})
            except ArgumentError as error:
                assert error.problems
