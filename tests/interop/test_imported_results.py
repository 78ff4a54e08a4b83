"""The specs of results that imported tools get from their schemas, and results that do not fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from neuroscript import ArgSpec, ArgumentError, ToolFailed, ToolSpec, bind_named
from neuroscript.interop.mcp.client.accepted_definitions import Definition
from neuroscript.interop.mcp.client.definition import inspection_tool
from neuroscript.interop.mcp.client.results import promise_of, value_of
from neuroscript.interop.mcp.schema import is_wrapped, output_schema
from neuroscript.interop.openapi import from_openapi
from neuroscript.interop.openapi.responses import ReturnSpec
from neuroscript.interop.openapi.responses import value_of as response_value

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "at": {"type": "string", "format": "date-time"},
        "key": {"type": "string", "writeOnly": True},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
    },
    "required": ["id"],
    "$defs": {"line": {"type": "object", "properties": {"price": {"type": "number"}, "note": {"type": "string"}}}},
}
LINE_KEYS = (ArgSpec("price", "float", required=False), ArgSpec("note", "string", required=False))
LINES = ArgSpec("lines", "slice_map", required=False, keys=LINE_KEYS, extra_keys=True)


def defined(output: dict[str, Any] | None, **tool: Any) -> ToolSpec:
    """Return the spec of an MCP tool with an output schema."""
    data = {"name": "get", "inputSchema": {"type": "object"}, "outputSchema": output, **tool}
    return inspection_tool(Definition("get", data), "shop").spec


def test_output_schema_is_the_spec_of_the_result() -> None:
    """At every level; without a schema, or with one that says nothing, the result is any value."""
    spec = defined(ORDER)

    keys = (
        ArgSpec("id", "int"),
        ArgSpec("at", "string", required=False),
        ArgSpec("key", "string", required=False),
        LINES,
    )
    assert spec.returns == ArgSpec("result", "map", keys=keys, extra_keys=True)
    assert (defined(None).returns, str(defined(None).return_type)) == (None, "any")


def test_wrapped_output_schema_is_unwrapped() -> None:
    """The definitions of the whole schema apply to the property."""
    wrapped = {
        "type": "object",
        "properties": {"result": {"anyOf": [{"$ref": "#/$defs/tag"}, {"type": "integer"}, {"type": "null"}]}},
        "required": ["result"],
        "$defs": {"tag": {"type": "array", "items": {"type": "string"}}},
    }
    spec = defined(wrapped)

    assert spec.returns == ArgSpec("result", "any", any_of=("slice_string", "int"), nullable=True)
    assert spec.return_nullable
    promise = promise_of(wrapped)
    for value in (["a"], 5, None):
        assert value_of({"structuredContent": {"result": value}}, promise) == value
    with pytest.raises(ToolFailed) as caught:
        value_of({"structuredContent": {"result": ["a", 5]}}, promise)
    assert (caught.value.code, caught.value.retry) == ("mcp.answer", "never")


def test_structured_content_is_exact() -> None:
    """JSON Schema takes 1.0 as an integer and 2 as a number; the result has the exact types."""
    value = value_of({"structuredContent": {"id": 1.0, "at": "soon", "lines": [{"price": 2}]}}, promise_of(ORDER))

    assert [repr(each) for each in (value["id"], value["lines"][0]["price"])] == ["1", "2.0"]
    wrapped = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
    assert repr(value_of({"structuredContent": {"result": 5.0}}, promise_of(wrapped))) == "5"


def test_formats_are_checked_only_if_the_host_says_so() -> None:
    """In results too."""
    content = {"structuredContent": {"id": 1, "at": "soon"}}

    assert value_of(content, promise_of(ORDER)) == content["structuredContent"]
    with pytest.raises(ToolFailed) as caught:
        value_of(content, promise_of(ORDER, formats=True))
    assert (caught.value.code, caught.value.retry) == ("mcp.answer", "never")


def test_union_as_a_result_is_served_under_a_key() -> None:
    """Because the protocol requires an object."""
    spec = ToolSpec("t", "g", returns=ArgSpec("result", "any", any_of=("int", "string")))
    schema = output_schema(spec)

    assert is_wrapped(spec)
    assert schema is not None
    assert schema["properties"] == {"result": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}


def operation(schema: dict[str, Any], **options: Any) -> Any:
    """Return the tool of an operation that returns JSON."""
    content = {"application/json": {"schema": schema}}
    response = {"200": {"description": "Fine.", "content": content}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "paths": {"/a": {"get": {"parameters": [{"name": "at", "in": "query", "schema": AT}], "responses": response}}},
        "components": {"schemas": {"line": ORDER["$defs"]["line"]}},
    }
    (found,) = from_openapi(document, base_url="https://a.example", **options)
    return found


AT = {"type": "string", "format": "date-time"}
RESPONSE = json.loads(json.dumps({**ORDER, "$defs": {}}).replace("#/$defs/line", "#/components/schemas/line"))


def test_response_schema_is_the_spec_of_the_result() -> None:
    """Keys may be missing, and what only a client sends is left out."""
    spec = operation(RESPONSE).spec
    keys = (ArgSpec("id", "int", required=False), ArgSpec("at", "string", required=False), LINES)

    assert spec.returns == ArgSpec("result", "map", keys=keys, extra_keys=True)


def answered(promise: ReturnSpec, value: Any) -> Any:
    """Return the value of a JSON response."""
    text = json.dumps(value)
    answer = {"status": 200, "size": len(text), "media_type": "application/json", "text": text, "bytes": None}
    return response_value(answer, promise)


def test_response_that_does_not_fit_is_reported() -> None:
    """At any depth; a missing or additional key and null fit."""
    promise = operation(RESPONSE).func.promise

    for value in ({}, {"id": None, "more": [1]}, {"id": 1, "lines": [{"price": 2.5}]}):
        assert answered(promise, value) == value
    for wrong in ({"id": "1"}, {"lines": [{"price": "2.5"}]}, []):
        with pytest.raises(ToolFailed) as caught:
            answered(promise, wrong)
        assert (caught.value.code, caught.value.retry) == ("openapi.answer", "never")


def test_format_of_a_parameter_is_checked_only_if_the_host_says_so() -> None:
    """The text is sent as it is in both cases."""
    lax, checked = (operation(RESPONSE, formats=formats).spec for formats in (False, True))

    assert bind_named(lax, {"at": "soon"}) == ("soon",)
    assert bind_named(checked, {"at": "2026-01-01t00:00:00z"}) == ("2026-01-01t00:00:00z",)
    with pytest.raises(ArgumentError) as caught:
        bind_named(checked, {"at": "soon"})
    assert (caught.value.code, caught.value.retry) == ("schema.format", "model")
