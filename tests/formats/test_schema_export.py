"""Tool specs as JSON Schema, and back without a loss."""

from __future__ import annotations

import copy
import datetime
import json
import pickle
import re
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
from tests.conftest import examples
from tests.formats.foreign_schemas import FOREIGN, TEXTS
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
    ToolSpec,
    coerce,
    result_schema,
    spec_from_data,
    spec_from_schema,
    spec_to_schema,
)
from neuroscript.coercion.context import CoercionSettings
from neuroscript.coercion.plain_data import to_plain
from neuroscript.coercion.types import type_phrase
from neuroscript.spec.binding import bind_arguments

STRICT = CoercionSettings("strict")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "schemas.md"
META = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)

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


@pytest.mark.slow
@settings(max_examples=examples(500), deadline=None)
@given(specs())
def test_each_spec_comes_back_as_it_was(spec: ToolSpec) -> None:
    """With every field, every default and every example, of the same types."""
    check_round_trip(spec)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(list(ArgType)), st.booleans())
def test_the_schema_of_a_result_is_one(kind: ArgType, nullable: bool) -> None:
    """This holds for every type."""
    META.validate(result_schema(ToolSpec("t", "g", return_type=kind, return_nullable=nullable, return_help="R.")))


KINDS = sorted({type_phrase(kind) for kind in ArgType}, key=len, reverse=True)


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
            yield json.loads(json.dumps(to_plain(given), allow_nan=False))


@settings(max_examples=examples(500), deadline=None)
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
            validator.validate(to_plain(given_by_name))
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


def test_what_was_changed_after_the_import_comes_back_too() -> None:
    """The schema is unchanged; the spec is stored next to it."""
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
