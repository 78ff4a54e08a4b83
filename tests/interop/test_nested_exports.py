"""Nested types in the exports to model APIs and frameworks: each validates them, and calls with them are exact."""

from __future__ import annotations

import copy
import inspect
from typing import Any, Final, get_type_hints

import pytest
from agents.strict_schema import ensure_strict_json_schema
from anthropic.types import ToolParam as AnthropicTool
from google.genai import types as gemini_types
from langchain_core.tools import StructuredTool
from openai.types.responses import ToolParam as OpenAITool
from pydantic import TypeAdapter
from tests.interop.nested_specs import ORDER, PLACE, RESULT, SENT, nested
from tests.interop.test_openai_tools import check_strict

from neuroscript import ArgSpec, ArgType, Engine, ToolCall, ToolSpec, to_function
from neuroscript.interop.agentheaven import source_code
from neuroscript.llm.wire import anthropic, gemini
from neuroscript.llm.wire.openai import strict_schema, to_tools

SPECS: Final = pytest.mark.parametrize("spec", [ORDER, PLACE], ids=["order", "place"])


@pytest.fixture
def engine() -> Any:
    with Engine(toolsets=[nested], plugins="none") as engine:
        yield engine


def words(schema: Any) -> set[str]:
    """Return the keywords of a schema at every level, with the names of properties."""
    if isinstance(schema, list):
        return set().union(*map(words, schema))
    return set().union({*schema}, *map(words, schema.values())) if isinstance(schema, dict) else set()


def test_strict_schema_of_nested_types() -> None:
    """Unions stay, every key is required, and what strict mode cannot say is in the description."""
    schema: Any = strict_schema(ORDER)

    check_strict(schema)
    assert ensure_strict_json_schema(copy.deepcopy(schema)) == copy.deepcopy(schema)
    assert schema["properties"]["pay"] == {
        "anyOf": [
            {
                "type": "object",
                "properties": {
                    "number": {"type": "string"},
                    "kind": {"type": ["string", "null"], "enum": ["card", None], "description": 'By default "card".'},
                },
                "required": ["number", "kind"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {
                    "amount": {"type": "string", "description": "In the format decimal."},
                    "kind": {"type": ["string", "null"], "enum": ["cash", None], "description": 'By default "cash".'},
                },
                "required": ["amount", "kind"],
                "additionalProperties": False,
            },
        ]
    }
    assert schema["properties"]["due"] == {"type": ["string", "null"], "description": "In the format date."}
    assert schema["properties"]["tags"] == {
        "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
        "description": "Without repeated items.",
    }


def test_tuples_and_open_maps_are_not_strict() -> None:
    (tool,) = to_tools([PLACE], api="responses")

    assert (strict_schema(PLACE), tool["strict"]) == (None, False)


@SPECS
def test_the_types_of_each_api_accept_nested_types(spec: Any) -> None:
    """The keyword of OpenAPI for tags is in none of them."""
    (openai,) = to_tools([spec], api="responses")
    (claude,) = anthropic.to_tools([spec])
    (google,) = gemini.to_tools([spec])
    adapters: dict[Any, Any] = {OpenAITool: openai, AnthropicTool: claude}

    assert {kind: TypeAdapter(kind).validate_python(told, strict=True) for kind, told in adapters.items()} == adapters
    assert gemini_types.Tool.model_validate(google).function_declarations
    assert not any("discriminator" in words(each) for each in (openai, claude, google))


def test_signature_of_nested_types(engine: Any) -> None:
    """Each part is a type that JSON can represent; a tuple is a list of any of its items."""
    order, place = (to_function(engine, name) for name in ("nested.order", "nested.place"))

    assert str(inspect.signature(order)) == (
        "(items: list[dict[str, typing.Any]], pay: dict[str, typing.Any], due: Optional[str] = None, "
        "tags: Optional[list[str]] = None, note: Union[str, list[str], NoneType] = None) "
        "-> dict[str, list[dict[str, typing.Any]]]"
    )
    assert str(inspect.signature(place)) == (
        "(at: list[typing.Union[int, str]], prices: dict[str, list[typing.Optional[str]]], "
        "by_id: dict[str, list[str]]) -> list[dict[str, typing.Any]]"
    )
    assert order(**SENT) == engine.execute(ToolCall("nested.order", SENT)).value == RESULT
    assert {"items", "pay", "due", "tags", "note", "return"} == {*get_type_hints(order)}


def test_langchain_reads_the_signature(engine: Any) -> None:
    """Another framework makes its own schema of the function, and its calls are repaired by ours."""
    tool = StructuredTool.from_function(to_function(engine, "nested.order"))

    assert {"items", "pay", "due", "tags", "note"} == {*tool.args}
    assert RESULT == tool.invoke(SENT)


def test_source_code_of_nested_types() -> None:
    lines = source_code.definition("place", PLACE).splitlines()
    assert "from typing import Any" == lines[0]
    assert (
        "def place(at: list[int | str], prices: dict[str, list[str | None]], by_id: dict[int, list[str]]) "
        "-> list[dict[str, Any]]:" == lines[3]
    )
    assert source_code.call_text("order", ORDER, SENT) == (
        "order(items=[{'article': 'pen', 'price': '1.5', 'size': 'large', 'counts': [1]}], "
        "pay={'kind': 'cash', 'amount': '2'}, due='2026-11-23', tags=['a'], note=None)"
    )


@pytest.mark.parametrize("kind", [kind for kind in ArgType if kind is not ArgType.VOID])
def test_definition_of_each_type_can_be_executed(kind: ArgType) -> None:
    """On every supported version of Python; `array` cannot be subscripted on all of them."""
    spec = ToolSpec("show", "g", (ArgSpec("value", kind, required=False),), return_type=kind)
    namespace: dict[str, Any] = {}

    exec(source_code.definition("show", spec), namespace)

    assert namespace["show"](None) is None
