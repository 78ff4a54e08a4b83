"""Generated JSON Schemas and arguments, compared with another validator."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.formats.foreign_schemas import TEXTS

from neuroscript import (
    ArgumentError,
    SpecError,
    bind_named,
    spec_from_schema,
    spec_to_schema,
)
from neuroscript.coercion.plain_data import to_plain

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


@settings(max_examples=examples(500), deadline=None)
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
    assert_fits(part, to_plain(exact))


def assert_fits(part: dict[str, Any], value: Any) -> None:
    """Assert that a value validates, None aside where a key may be left out: there it says that it was."""
    for error in jsonschema.Draft202012Validator(part).iter_errors(value):
        assert error.instance is None, error.message
        assert error.absolute_path, "an argument that is required"


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


@pytest.mark.slow
@settings(max_examples=examples(1000), deadline=None)
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


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
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
        assert oracle.is_valid({"v": to_plain(exact)})
