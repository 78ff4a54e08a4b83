"""Schemas, prompts, code and tools for other libraries that a ToolSpec of AgentHeaven writes."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from fastmcp import Client as FastMCPClient
from fastmcp import FastMCP
from fastmcp.tools import Tool as FastMCPTool
from mcp_types import Tool as MCPTool
from tests.interop.agentheaven_tools import Point, make_tool, search_database
from tests.interop.agentheaven_tools import action as action
from tests.interop.agentheaven_tools import search as search

from neuroscript import Arg, ArgSpec, ArgType, ArgumentError, SpecError, ToolImplementation, spec_from_schema
from neuroscript import ToolSpec as NeuroToolSpec
from neuroscript.interop.agentheaven import ToolSpec


def test_ah_26_input_schema_lists_required_arguments(search: ToolSpec) -> None:
    """Optional arguments are not listed, and without required ones there is no ``required``."""
    assert ["query"] == search.input_schema["required"]
    assert {"type": "object", "properties": {}} == ToolSpec.from_function(dict_of_nothing).input_schema


def dict_of_nothing() -> dict[str, int]:
    """Return nothing."""
    return {}


def test_ah_26_input_schema_is_a_new_object_each_time(search: ToolSpec) -> None:
    """Changing one schema does not change the next."""
    search.input_schema["properties"].clear()

    assert ["query", "limit"] == list(search.input_schema["properties"])


def test_ah_26_imported_input_schema_is_unchanged() -> None:
    """Strict mode supports a pattern, but not a minimum number of properties."""
    schema = {
        "title": "Find",
        "type": "object",
        "properties": {"code": {"type": "string", "pattern": "^[A-Z]+$"}, "n": {"type": ["integer", "null"]}},
        "required": ["code"],
        "minProperties": 1,
    }
    handle = ToolSpec(ToolImplementation(spec_from_schema("x.find", schema), lambda rt, code, n: code))

    assert schema == handle.input_schema
    assert (False, schema) == (handle.to_jsonschema()["strict"], handle.to_jsonschema()["parameters"])
    with pytest.raises(ArgumentError, match="code"):
        handle(code="a")


def test_ah_27_params_are_the_properties_of_the_input_schema(search: ToolSpec) -> None:
    """The shorthand in the document."""
    assert search.input_schema["properties"] == search.params


def test_ah_28_output_schema_describes_the_structured_content(search: ToolSpec) -> None:
    """A result of unknown type has no schema."""
    result = {"type": "object", "description": "Search results with matched records"}

    assert {"type": "object", "properties": {"result": result}} == search.output_schema
    assert make_tool(Any).output_schema is None


def test_ah_28_output_schema_of_a_stream_is_a_list() -> None:
    """A call returns the list of its items."""

    def count(n: int) -> Iterator[int]:
        yield from range(n)

    handle = ToolSpec.from_function(count)

    assert {"type": "array", "items": {"type": "integer"}} == handle.output_schema["properties"]["result"]  # type: ignore[index]
    assert [0, 1] == handle(n=2)


def test_ah_28_explicit_output_schema_cannot_be_changed_through_a_handle() -> None:
    """Each access returns a new object."""
    handle = ToolSpec.from_function(search_database, output_schema={"type": "object", "properties": {"results": {}}})
    handle.output_schema["properties"].clear()  # type: ignore[index]

    assert ["results"] == list(handle.output_schema["properties"])  # type: ignore[index]
    assert ["a"] == handle(query="a", limit=1)


def test_ah_29_docstring_has_google_style(search: ToolSpec) -> None:
    """A default is a separate sentence."""
    assert (
        """\
Search the database for matching records.

Args:
    query: The search query string
    limit: Maximum number of results to return. Defaults to 10.

Returns:
    dict[str, Any]: Search results with matched records"""
        == search.docstring
    )


def test_ah_30_code_is_a_complete_definition(search: ToolSpec) -> None:
    """It is valid Python, and produces an equivalent tool."""
    again = ToolSpec.from_code(search.code)

    assert (search.name, search.input_schema, search.output_schema) == (
        again.name,
        again.input_schema,
        again.output_schema,
    )
    assert (
        '''\
from typing import Any


def search_database(query: str, limit: int = 10) -> dict[str, Any]:
    """Search the database for matching records.

    Args:
        query: The search query string
        limit: Maximum number of results to return

    Returns:
        dict[str, Any]: Search results with matched records
    """
    ...
'''
        == search.code
    )


def test_ah_30_code_is_valid_python_for_unusual_tools() -> None:
    """A required argument after an optional one, choices, and quotes that would end a docstring."""

    def hostile(a: int = 1, *, mode: Literal["r", 'w"'], tags: list[str] | None = None) -> list[int] | None:
        """Ends \"\"\" here: \\ and ".

        Returns:
            list[int] | None: Whatever.
        """
        return None

    handle = ToolSpec.from_function(hostile)
    again = ToolSpec.from_code(handle.code)

    assert (handle.input_schema, handle.description, handle.output_schema) == (
        again.input_schema,
        again.description,
        again.output_schema,
    )


@pytest.mark.parametrize("text", ['says "a"', "ends in \\", '""""', "two\nlines", "null \0"], ids=ascii)
def test_ah_30_description_cannot_end_the_docstring(text: str) -> None:
    """Reading the code returns the same docstring; control characters are escaped."""

    def nothing() -> None:
        pass

    handle = ToolSpec.from_function(nothing, description=text)

    assert handle.docstring == ast.get_docstring(ast.parse(handle.code).body[-1])  # type: ignore[arg-type]


def test_ah_31_signature_is_a_call(search: ToolSpec) -> None:
    """It shows required and optional arguments, and rejects invalid ones."""
    assert "search_database(query='example', limit=10)" == search.signature(query="example", limit="10")
    assert "search_database(query, limit=10)" == search.signature()
    with pytest.raises(ArgumentError, match="nope: expected only query, limit, got an unknown name of type int"):
        search.signature(nope=1)


def test_ah_31_signature_shows_none_for_an_optional_argument_without_a_default() -> None:
    """Upstream raises a ValueError."""

    def maybe(text: str, tags: list[str] | None = None) -> str:
        return text

    assert "maybe(text='a', tags=None)" == ToolSpec.from_function(maybe).signature(text="a")


def test_ah_31_signature_hides_secrets_and_is_python() -> None:
    """A name that is not a Python identifier is in a map; such a tool has no definition."""
    args = (ArgSpec("user-id", ArgType.STRING), ArgSpec("key", ArgType.STRING, secret=True))
    handle = ToolSpec(ToolImplementation(NeuroToolSpec("go", "x", args), lambda rt, *values: None))

    assert "go(**{'user-id': 'a'}, key=...)" == handle.signature(**{"user-id": "a", "key": "k"})
    with pytest.raises(SpecError, match="cannot write a definition: user-id is not a valid Python name"):
        assert handle.code


def test_ah_32_prompt_describes_the_whole_tool(search: ToolSpec) -> None:
    """With the name of the handle."""
    assert """\
search_database(query: string, limit: int = 10) -> map
  Search the database for matching records.
  Arguments:
    query: string, required. The search query string
    limit: int, default 10. Maximum number of results to return
  Returns: map. Search results with matched records""" == search.to_prompt()


def test_ah_33_to_mcp_returns_a_tool_of_the_sdk(search: ToolSpec) -> None:
    """With both schemas; a result that is an object is not wrapped."""
    definition = search.to_mcp()

    assert isinstance(definition, MCPTool)
    assert ("search_database", search.description, search.input_schema) == (
        definition.name,
        definition.description,
        definition.input_schema,
    )
    assert {"type": "object", "description": "Search results with matched records"} == definition.output_schema


def test_ah_33_to_mcp_hides_bound_arguments_and_shows_the_output_schema() -> None:
    """Bindings are applied; the default of a secret is hidden."""

    def fetch(query: str, user_id: str, key: Annotated[str, Arg(secret=True)] = "sesame") -> Any:
        return {"n": 1}

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    handle = ToolSpec.from_function(fetch, output_schema=schema).bind("user_id", default="u")
    definition = handle.to_mcp()

    assert (["query", "key"], ["query"]) == (
        [*definition.input_schema["properties"]],
        definition.input_schema["required"],
    )
    assert "sesame" not in definition.model_dump_json()
    assert schema == definition.output_schema


def over_fastmcp(handle: ToolSpec, *calls: dict[str, Any]) -> list[Any]:
    """Return what a client of a FastMCP server receives for the tool of a handle: its definition and each result."""

    async def run() -> list[Any]:
        server: FastMCP[Any] = FastMCP("mine")
        server.add_tool(handle.to_fastmcp())
        async with FastMCPClient(server) as client:
            (definition,) = await client.list_tools()
            return [definition, *[await client.call_tool_mcp(handle.name, each) for each in calls]]

    return asyncio.run(run())


def test_ah_34_fastmcp_server_serves_the_tool_without_bound_arguments(action: ToolSpec) -> None:
    """Our coercion comes first, the state is used, and an error says what to do."""
    made = action.to_fastmcp()
    definition, first, wrong = over_fastmcp(action, {"action": "login"}, {"action": 5, "user_id": "mallory"})
    action.state["user_id"] = "user456"
    _, second = over_fastmcp(action, {"action": "logout"})

    assert isinstance(made, FastMCPTool)
    assert (action.name, action.input_schema) == (definition.name, definition.input_schema)
    assert {"result": "User user123 performed: login"} == first.structured_content
    assert {"result": "User user456 performed: logout"} == second.structured_content
    assert wrong.is_error
    assert (
        "error arg.invalid: action: expected string, got int; user_id: expected only action, got an unknown name of type "
        "str. Fix the arguments and call again."
    ) == wrong.content[0].text


def test_ah_34_fastmcp_tool_has_the_explicit_output_schema() -> None:
    """A map is the structured content itself; other values are under ``result``."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    def count(text: str) -> Any:
        return {"n": len(text)}

    definition, answer = over_fastmcp(ToolSpec.from_function(count, output_schema=schema), {"text": "abc"})

    assert schema == definition.output_schema
    assert {"n": 3} == answer.structured_content


def test_ah_34_fastmcp_tool_wraps_a_schema_that_is_not_an_object() -> None:
    """Under ``result``, as the value, because MCP results are objects; FastMCP resolves the references."""
    schema = {"$ref": "#/$defs/word", "$defs": {"word": {"type": "string"}}}

    def first(text: str) -> Any:
        return text[0]

    definition, answer = over_fastmcp(ToolSpec.from_function(first, output_schema=schema), {"text": "abc"})

    assert {
        "type": "object",
        "properties": {"result": {"type": "string"}},
        "required": ["result"],
    } == definition.output_schema
    assert ({"result": "a"}, False) == (answer.structured_content, answer.is_error)


def test_ah_34_fastmcp_tool_survives_a_round_trip(search: ToolSpec) -> None:
    """From a handle to a FastMCP tool and back."""
    again = ToolSpec.from_fastmcp(search.to_fastmcp())

    assert (search.name, search.params) == (again.name, again.params)
    assert {"results": ["a", "a"]} == again(query="a", limit="2")


def test_ah_35_json_schema_is_flat_and_strict(search: ToolSpec) -> None:
    """The format of OpenAI's Responses API."""
    assert {
        "type": "function",
        "name": "search_database",
        "description": "Search the database for matching records.",
        "strict": True,
    } == {key: value for key, value in search.to_jsonschema().items() if key != "parameters"}


def test_ah_36_strict_schema_requires_every_property(search: ToolSpec) -> None:
    """Other properties are forbidden; null means that an argument is omitted, and calls accept it."""
    parameters = search.to_jsonschema()["parameters"]

    assert (["query", "limit"], False) == (parameters["required"], parameters["additionalProperties"])
    assert ["integer", "null"] == parameters["properties"]["limit"]["type"]
    assert "default" not in parameters["properties"]["limit"]
    assert 10 == len(search(query="a", limit=None)["results"])


def test_ah_36_tool_with_a_free_map_is_not_strict() -> None:
    """It has no strict schema, so it is not marked as strict."""
    handle = make_tool(dict[str, Any])

    assert (False, handle.input_schema) == (handle.to_jsonschema()["strict"], handle.to_jsonschema()["parameters"])


def test_ah_36_strict_schema_includes_lists_and_nested_objects(search: ToolSpec) -> None:
    """Nested objects are closed, and their properties are required; unsupported keywords are omitted."""
    schema = make_tool(list[Point]).to_jsonschema()

    assert schema["strict"]
    assert {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "y": {"type": ["integer", "null"]}},
            "required": ["x", "y"],
            "additionalProperties": False,
        },
    } == schema["parameters"]["properties"]["x"]


@pytest.mark.parametrize(
    ("annotation", "strict"),
    [
        (Annotated[str, Arg(secret=True)], {"type": "string"}),
        (Annotated[int, Arg(minimum=1)], {"type": "integer", "minimum": 1}),
        (Annotated[str, Arg(max_length=3)], None),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list[Any], None),
        (Any, None),
    ],
    ids=["secret", "bounds", "length", "list", "any list", "any"],
)
def test_ah_36_unsupported_rules_make_a_schema_not_strict(annotation: Any, strict: Any) -> None:
    """Descriptive keywords are omitted from a strict schema; without an enforced rule it is not strict."""
    schema = make_tool(annotation).to_jsonschema()

    assert (strict is not None) == schema["strict"]
    assert strict is None or strict == schema["parameters"]["properties"]["x"]


def test_ah_36_input_schema_is_valid_for_anthropic(search: ToolSpec) -> None:
    """An Anthropic tool is a name, a description and this schema, as the migration page shows."""
    assert search.input_schema == search.to_jsonschema(strict=False)["parameters"]


def test_ah_37_to_jsonschema_adds_and_replaces_members(search: ToolSpec) -> None:
    """The name too."""
    schema = search.to_jsonschema(custom_field="value", name="other")

    assert ("value", "other") == (schema["custom_field"], schema["name"])
