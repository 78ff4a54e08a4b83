"""Tools in the types of OpenAI's APIs, strict if that has the same meaning."""

from __future__ import annotations

import copy
import json
import random
from contextlib import suppress
from typing import Any

import attrs
import jsonschema
import pytest
from agents.strict_schema import ensure_strict_json_schema
from openai.types.chat import ChatCompletionToolParam
from openai.types.responses import ToolParam
from pydantic import TypeAdapter
from tests.conftest import examples
from tests.generator import Generator

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    Engine,
    RegistryError,
    ToolInfo,
    ToolPolicy,
    ToolSpec,
    bind_named,
    coerce,
    spec_from_schema,
    spec_to_schema,
)
from neuroscript.coercion.context import CoercionSettings
from neuroscript.coercion.plain_data import to_plain
from neuroscript.llm.wire.openai import CHAT, RESPONSES, strict_schema, to_tools
from neuroscript.runtime.wire_names import WireNames
from neuroscript.spec.binding import bind_arguments

CHAT_TOOL: TypeAdapter[Any] = TypeAdapter(ChatCompletionToolParam)
RESPONSES_TOOL: TypeAdapter[Any] = TypeAdapter(ToolParam)
TOLD = {
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "pattern",
    "format",
    "uniqueItems",
}
"""Keywords that become text of the description."""

TURNS = examples(10)
"""The number of values for each spec."""

KEYWORDS = {"type", "enum", "properties", "required", "additionalProperties", "items", "anyOf", "description"}
"""The keywords of a strict schema."""


def first_party() -> list[ToolSpec]:
    """Return the specs of all installed tools."""
    with Engine() as engine:
        return [tool.spec for tool in engine.tools.values()]


def generated(count: int = 500) -> list[ToolSpec]:
    """Return generated specs, most of which have a strict form."""
    return [Generator(seed).spec(seed % 4) for seed in range(count)]


ALL = [*first_party(), *generated()]


def of(spec: ToolSpec, **fields: Any) -> dict[str, Any]:
    """Return one tool in the form of Responses."""
    (tool,) = to_tools([spec], api="responses", **fields)
    return tool


def test_the_sdk_types_accept_every_tool() -> None:
    """For both APIs, strict and not, each first-party tool and 500 generated ones."""
    for strict in (True, False):
        for spec in ALL:
            (chat,) = to_tools([spec], strict=strict)
            responses = of(spec, strict=strict)

            assert CHAT_TOOL.validate_python(chat, strict=True) == chat
            assert RESPONSES_TOOL.validate_python(responses) == responses
            assert responses == {"type": "function", **chat["function"]}
            assert responses["strict"] is (strict and strict_schema(spec) is not None)
            assert "x-neuroscript" not in json.dumps(chat)


def test_a_strict_schema_is_accepted_unchanged() -> None:
    """The function with which openai-agents makes schemas strict accepts it, and changes nothing."""
    strict = [schema for spec in ALL if (schema := strict_schema(spec)) is not None]

    assert len(strict) > len(ALL) / 3
    for schema in strict:
        assert ensure_strict_json_schema(copy.deepcopy(schema)) == copy.deepcopy(schema)
        check_strict(schema)


def check_strict(schema: dict[str, Any]) -> None:
    """Assert the rules of the guide: objects are closed, all properties are required, and no keyword is unsupported."""
    assert set(schema) <= KEYWORDS
    if schema.get("type") == "object":
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
        for each in schema["properties"].values():
            check_strict(each)
    for each in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())):
        check_strict(each)


class Values(random.Random):
    """A source of values that a strict schema accepts."""

    def value(self, schema: dict[str, Any]) -> Any:
        if "anyOf" in schema:
            return self.value(self.choice(schema["anyOf"]))
        if "enum" in schema:
            return self.choice(schema["enum"])
        kind = schema["type"] if isinstance(schema["type"], str) else self.choice(schema["type"])
        match kind:
            case "object":
                return {name: self.value({**each, "name": name}) for name, each in schema["properties"].items()}
            case "array":
                return [self.value(schema["items"]) for _ in range(self.randint(0, 3))]
            case "string":
                return "eHk=" if schema.get("name") == "$base64" else self.choice(("", "a", "N_1", "é😀", "null", "5"))
            case "integer":
                return self.choice((0, 1, -1, 5, 2**40))
            case "number":
                return self.choice((0, -1, 0.5, 2.5, 1024.0))
            case "boolean":
                return self.random() < 0.5
            case "null":
                return None
        raise AssertionError(kind)


def test_a_value_of_a_strict_schema_is_accepted() -> None:
    """If the non-strict schema accepts it, from which only rules that the description states were removed."""
    accepted = 0
    for seed, spec in enumerate(ALL):
        schema = strict_schema(spec)
        if schema is None:
            continue
        validator = jsonschema.Draft202012Validator(spec_to_schema(spec, exact=False))
        for turn in range(TURNS):
            value = Values(seed * 8 + turn).value(dict(schema))
            jsonschema.validate(value, schema)
            errors = [error.validator for error in leaves(validator.iter_errors(value))]
            if errors:
                assert set(errors) <= TOLD
                continue
            bind_within_bounds(spec, value)
            accepted += 1

    assert accepted > 125 * TURNS


def leaves(errors: Any) -> list[Any]:
    """Return the errors without those that only contain others."""
    return [leaf for error in errors for leaf in (leaves(error.context) if error.context else [error])]


def bind_within_bounds(spec: ToolSpec, value: dict[str, Any]) -> None:
    """Assert that a call is accepted, except for bounds that JSON Schema cannot express: bytes of a blob, filled maps."""
    try:
        bind_named(spec, value)
    except ArgumentError as error:
        assert {problem.code for problem in error.problems} <= {"coercion.length"}, (spec, value, error)


def test_an_accepted_value_matches_the_strict_schema() -> None:
    """Each exact value, by name, with null for omitted ones: strict mode excludes no valid call."""
    tried = 0
    for seed, spec in enumerate(ALL):
        schema = strict_schema(spec)
        if schema is None:
            continue
        source = Generator(seed)
        for _ in range(TURNS):
            given = {}
            for arg in spec.args:
                value = source.value(arg)
                with suppress(ArgumentError):
                    value = coerce(value, arg)
                given[arg.name] = [value] if spec.variadic and arg is spec.args[-1] else value
            try:
                bind_arguments(spec, CoercionSettings("strict"), given, by_name=True)
            except ArgumentError:
                continue
            jsonschema.validate(filled(to_plain(given), schema), schema)
            tried += 1

    assert tried > 62 * TURNS


def filled(value: Any, schema: dict[str, Any]) -> Any:
    """Return a value with null for each missing property."""
    if "anyOf" in schema:
        kind = {dict: "object", list: "array"}.get(type(value))
        return filled(value, next((each for each in schema["anyOf"] if each["type"] == kind), {}))
    if isinstance(value, dict) and "properties" in schema:
        return {**value, **{name: filled(value.get(name), each) for name, each in schema["properties"].items()}}
    if isinstance(value, list) and "items" in schema:
        return [filled(each, schema["items"]) for each in value]
    return value


@pytest.mark.parametrize(
    "arg",
    [
        pytest.param(ArgSpec("a", ArgType.ANY), id="anything"),
        pytest.param(ArgSpec("a", ArgType.SLICE), id="a list of anything"),
        pytest.param(ArgSpec("a", ArgType.MAP), id="a free map"),
        pytest.param(ArgSpec("a", ArgType.MAP_STRING_INT), id="a map of ints"),
        pytest.param(ArgSpec("a", ArgType.SLICE_MAP), id="a list of free maps"),
        pytest.param(ArgSpec("a", ArgType.ENTITYID), id="an id with more beside it"),
        pytest.param(ArgSpec("a", ArgType.MAP, keys=(ArgSpec("k", ArgType.INT),), extra_keys=True), id="an open map"),
    ],
)
def test_an_open_schema_is_not_strict(arg: ArgSpec) -> None:
    """It is sent unchanged, marked as not strict; Responses would treat it as strict otherwise."""
    spec = ToolSpec("t", "g", (arg,))

    assert of(spec)["strict"] is False
    assert of(spec)["parameters"] == spec_to_schema(spec, exact=False)


def nested(depth: int) -> ArgSpec:
    """Return a map within this number of maps."""
    inner = ArgSpec("k", ArgType.INT) if depth == 1 else nested(depth - 1)
    return ArgSpec("k", ArgType.MAP, keys=(inner,))


@pytest.mark.parametrize(
    ("fits", "too_much"),
    [
        pytest.param((nested(3),), (nested(4),), id="depth"),
        pytest.param(
            tuple(ArgSpec(f"a{count}", ArgType.INT) for count in range(100)),
            tuple(ArgSpec(f"a{count}", ArgType.INT) for count in range(101)),
            id="properties",
        ),
        pytest.param(
            (ArgSpec("a", ArgType.INT, choices=tuple(range(500))),),
            (ArgSpec("a", ArgType.INT, choices=tuple(range(501))),),
            id="choices",
        ),
        pytest.param(
            (ArgSpec("a", ArgType.STRING, choices=("x" * 14_999,)),),
            (ArgSpec("a", ArgType.STRING, choices=("x" * 15_000,)),),
            id="text",
        ),
        pytest.param(
            (ArgSpec("a", ArgType.STRING, choices=tuple(f"{count:030}" for count in range(250))),),
            (ArgSpec("a", ArgType.STRING, choices=tuple(f"{count:030}" for count in range(251))),),
            id="text of one enumeration of many",
        ),
    ],
)
def test_a_large_schema_is_not_strict(fits: tuple[ArgSpec, ...], too_much: tuple[ArgSpec, ...]) -> None:
    """The limits of the first version of strict mode apply."""
    assert of(ToolSpec("t", "g", fits))["strict"] is True
    assert of(ToolSpec("t", "g", too_much))["strict"] is False


def test_rules_that_strict_mode_rejects_are_in_the_description() -> None:
    """Bounds, patterns and defaults; optional arguments are required, and may be null."""
    spec = ToolSpec(
        "t",
        "g",
        (
            ArgSpec("most", ArgType.INT, default=10, minimum=1, maximum=100, description="How many."),
            ArgSpec("tags", ArgType.SLICE_STRING, required=False, choices=("a", "b"), max_length=3),
            ArgSpec("key", ArgType.STRING, secret=True, min_length=2),
            ArgSpec("data", ArgType.BLOB),
            ArgSpec("long", ArgType.STRING, default="x" * 300),
        ),
        description="Receives the tool itself.",
    )

    assert of(spec)["parameters"] == {
        "type": "object",
        "properties": {
            "most": {"type": ["integer", "null"], "description": "How many. At least 1, at most 100, by default 10."},
            "tags": {
                "anyOf": [{"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, {"type": "null"}],
                "description": "At most 3 items.",
            },
            "key": {"type": "string", "description": "At least 2 characters."},
            "data": {
                "anyOf": [
                    {"type": "string"},
                    {
                        "type": "object",
                        "properties": {"$base64": {"type": "string"}},
                        "required": ["$base64"],
                        "additionalProperties": False,
                    },
                ]
            },
            "long": {"type": ["string", "null"]},
        },
        "required": ["most", "tags", "key", "data", "long"],
        "additionalProperties": False,
    }


def test_an_imported_schema_is_sent_unchanged() -> None:
    """Except for keywords that the APIs reject at its root, which are checked in each call."""
    written = {
        "type": "object",
        "properties": {"a": {"type": "integer", "multipleOf": 2}},
        "additionalProperties": False,
    }
    union = {"type": "object", "anyOf": [{"required": ["a"]}], "properties": {"a": {"type": "integer"}}}

    assert (of(spec_from_schema("g.t", written))["parameters"], of(spec_from_schema("g.t", written))["strict"]) == (
        written,
        False,
    )
    assert of(spec_from_schema("g.t", union))["parameters"] == {
        key: each for key, each in union.items() if key != "anyOf"
    }
    assert of(spec_from_schema("g.t", {"type": "object"}))["parameters"]["properties"] == {}


def test_an_imported_schema_is_not_strict() -> None:
    """Even if strict mode could express it: only its author knows what it means."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": ["string", "integer"]}},
        "required": ["a"],
        "additionalProperties": False,
    }

    assert of(spec_from_schema("g.t", schema))["strict"] is False


def test_a_description_includes_when_to_use_a_tool_and_is_limited() -> None:
    """Deprecation comes first; at most 1,024 characters are sent."""
    spec = ToolSpec("t", "g", description="Do it.", when_to_use="When it is to be done.", deprecated="use g.u.")
    long = attrs.evolve(spec, when_to_use="x" * 2_000)

    assert of(spec)["description"] == "Deprecated: use g.u. Do it. When it is to be done."
    assert (len(of(long)["description"]), of(long)["description"][-1]) == (1_024, "…")
    assert "description" not in of(ToolSpec("t", "g"))


def test_tools_are_accepted_in_every_form_and_converted_once() -> None:
    """Implementations, tool information, and specs; the result is shared and immutable."""
    with Engine() as engine:
        implementation = engine.tools["math.add"]
    info = ToolInfo(implementation.spec, ToolPolicy(), "host")

    first, second, third = (to_tools([tool]) for tool in (implementation, info, implementation.spec))

    assert first == second == third
    assert first[0] is second[0] is third[0]
    with pytest.raises(TypeError, match="read-only"):
        first[0]["function"]["parameters"]["properties"]["a"] = {}


def test_tools_are_sent_with_the_names_that_the_model_receives() -> None:
    """A long name is truncated, other names come from the caller, and a collision is refused."""
    long = ToolSpec("x" * 80, "g")
    named = WireNames({"g.t": "other"}, {"other": "g.t"})
    spec = ToolSpec("t", "g")

    assert len(of(long)["name"]) == 64
    assert [of(spec)["name"], of(spec, names=named)["name"], of(spec)["name"]] == ["g__t", "other", "g__t"]
    with pytest.raises(RegistryError):
        to_tools([long, ToolSpec(of(long)["name"].removeprefix("g__"), "g")])


def test_the_wires_convert_their_tools() -> None:
    """As `to_tools` does for each API."""
    spec = ToolSpec("t", "g")

    assert CHAT.tools([spec], WireNames.of([spec])) == to_tools([spec])
    assert RESPONSES.tools([spec], WireNames.of([spec])) == to_tools([spec], api="responses")
