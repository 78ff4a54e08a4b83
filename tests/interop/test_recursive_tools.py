"""Tools with recursive schemas, imported from and exported to every system that has schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import llm
import pytest
from langchain_core.tools import StructuredTool
from tests.coercion.test_schema_inspection import RECURSIVE, SELF, Schema, tool, wrapped

from neuroscript import (
    Engine,
    ExecutionPolicy,
    SpecError,
    ToolCall,
    ToolImplementation,
    spec_from_schema,
    spec_to_data,
)
from neuroscript.interop.agentheaven import ToolSpec as Handle
from neuroscript.interop.fastmcp import to_fastmcp
from neuroscript.interop.inspect_ai import to_inspect_ai
from neuroscript.interop.langchain import from_langchain, to_langchain
from neuroscript.interop.llm import from_llm, to_llm
from neuroscript.interop.mcp import to_mcp
from neuroscript.interop.openai_agents import to_openai_agents
from neuroscript.interop.pydantic_ai import to_pydantic_ai
from neuroscript.interop.smith import from_smith, problems_of
from neuroscript.llm.wire import anthropic, gemini, openai

TREES: Final = [pytest.param(schema, right, id=name.replace(" ", "-")) for name, schema, _, right, _ in RECURSIVE]
DEEP: Final = wrapped(10_000, lambda each: {"type": "array", "items": each})
ENDLESS: Final = tool(SELF, T=SELF)
ALL: Final = ExecutionPolicy(grants=("langchain:call:*", "llm:call:*", "mcp:call:*"))


def ours(schema: Schema) -> ToolImplementation:
    """Return a native tool that returns its arguments."""
    return ToolImplementation(spec_from_schema("g.t", schema, description="A tree."), lambda rt, *values: values[0])


# Export

TO_APIS: Final[dict[str, Callable[[Any], Any]]] = {
    "openai": lambda tools: openai.to_tools(tools),
    "openai strict": lambda tools: openai.to_tools(tools, strict=True),
    "anthropic": anthropic.to_tools,
    "gemini": gemini.to_tools,
    "mcp": to_mcp,
    "data": lambda tools: [spec_to_data(each.spec) for each in tools],
}
TO_FRAMEWORKS: Final[dict[str, Callable[[Any], Any]]] = {
    "fastmcp": to_fastmcp,
    "inspect": to_inspect_ai,
    "langchain": to_langchain,
    "llm": to_llm,
    "openai agents": to_openai_agents,
    "pydantic ai": to_pydantic_ai,
}


@pytest.mark.parametrize("system", TO_APIS)
@pytest.mark.parametrize(("schema", "right"), TREES)
def test_recursive_tool_is_exported_to_an_api_unchanged(system: str, schema: Schema, right: Any) -> None:
    """Without unfolding it, and without losing a part of it."""
    reported = json.dumps(TO_APIS[system]([ours(schema)]))

    assert json.dumps(schema["properties"])[1:-1] in reported or system == "data"


@pytest.mark.parametrize("system", TO_FRAMEWORKS)
@pytest.mark.parametrize(("schema", "right"), TREES)
def test_recursive_tool_is_offered_to_a_framework(system: str, schema: Schema, right: Any) -> None:
    """We check its calls, even if the framework changes the schema."""
    with Engine(toolsets=[ours(schema)], plugins="none") as engine:
        TO_FRAMEWORKS[system](engine)

        assert engine.call_named("g.t", {"v": right}) == right


# Import


def given_back(v: Any = None) -> str:
    return json.dumps(v)


def from_lang(schema: Schema) -> Any:
    each = StructuredTool.from_function(given_back, name="t", description="A tree.", args_schema=schema)
    return from_langchain([each], group="far", trusted=True)


def from_an_llm(schema: Schema) -> Any:
    return from_llm([llm.Tool("t", "A tree.", schema, given_back)], group="far", trusted=True)


def from_smiths(schema: Schema) -> Any:
    metadata = {"name": "t", "description": "A tree.", "function": "given_back", "parameters": schema}
    return from_smith(metadata, given_back, group="far")


def from_agentheaven(schema: Schema) -> Any:
    return Handle.from_mcp({"name": "t", "description": "A tree.", "inputSchema": schema}, group="far").tool


FROM: Final = {"langchain": from_lang, "llm": from_an_llm, "smith": from_smiths, "agentheaven": from_agentheaven}


@pytest.mark.parametrize("system", FROM)
@pytest.mark.parametrize(("schema", "right"), TREES)
def test_recursive_tool_is_imported(system: str, schema: Schema, right: Any) -> None:
    """And is called with matching arguments. In Smith each parameter has a type, so one without is refused by name."""
    if system == "smith" and "type" not in schema["properties"]["v"]:
        with pytest.raises(SpecError) as caught:
            FROM[system](schema)
        assert str(caught.value).endswith("expected string, number, integer, boolean, object or array, got nothing")
        return
    with Engine(toolsets=[FROM[system](schema)], plugins="none", policy=ALL) as engine:
        result = engine.execute(ToolCall("far.t", {"v": right}))

    if system == "agentheaven":  # no server is running
        assert result.error is not None
        assert (result.error.code, result.error.retry) == ("mcp.closed", "host")
    else:
        assert (result.error, json.loads(result.value)) == (None, right)


@pytest.mark.parametrize("schema", [DEEP, ENDLESS], ids=["deep", "endless"])
@pytest.mark.parametrize("system", FROM)
def test_tool_with_a_hostile_schema_is_a_spec_error(system: str, schema: Schema) -> None:
    """In every system."""
    with pytest.raises(SpecError) as caught:
        FROM[system](schema)
    assert caught.value.problems


def test_hostile_metadata_of_smith_have_problems() -> None:
    """They are listed, and not raised."""
    metadata = {"name": "t", "description": "A tree.", "function": "given_back", "parameters": DEEP}

    assert [*problems_of(metadata, names={"given_back": given_back})]
