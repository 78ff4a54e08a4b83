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
from tests.interop.agentheaven_tools import Point, search_database, taking
from tests.interop.agentheaven_tools import action as action
from tests.interop.agentheaven_tools import search as search

from neuroscript import Arg, ArgSpec, ArgType, ArgumentError, SpecError, ToolImplementation, spec_from_schema
from neuroscript import ToolSpec as NeuroToolSpec
from neuroscript.interop.agentheaven import ToolSpec


def test_ah_26_the_input_schema_says_what_must_be_given(search: ToolSpec) -> None:
    """Nothing is required that may be left out, and nothing is said where nothing is required."""
    assert ["query"] == search.input_schema["required"]
    assert {"type": "object", "properties": {}} == ToolSpec.from_function(dict_of_nothing).input_schema


def dict_of_nothing() -> dict[str, int]:
    """Return nothing."""
    return {}


def test_ah_26_what_is_done_to_a_schema_reaches_no_other(search: ToolSpec) -> None:
    """Each is new."""
    search.input_schema["properties"].clear()

    assert ["query", "limit"] == list(search.input_schema["properties"])


def test_ah_26_a_schema_of_others_is_what_it_was() -> None:
    """Strict mode supports a pattern, but not the length of a string."""
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


def test_ah_27_params_are_the_properties(search: ToolSpec) -> None:
    """The shorthand of the document."""
    assert search.input_schema["properties"] == search.params


def test_ah_28_the_output_schema_is_that_of_the_structured_content(search: ToolSpec) -> None:
    """A result of unknown type has no schema."""
    result = {"type": "object", "description": "Search results with matched records"}

    assert {"type": "object", "properties": {"result": result}} == search.output_schema
    assert taking(Any).output_schema is None


def test_ah_28_of_a_stream_it_is_a_list() -> None:
    """For a call gives the list of its items."""

    def count(n: int) -> Iterator[int]:
        yield from range(n)

    handle = ToolSpec.from_function(count)

    assert {"type": "array", "items": {"type": "integer"}} == handle.output_schema["properties"]["result"]  # type: ignore[index]
    assert [0, 1] == handle(n=2)


def test_ah_28_a_schema_that_was_given_can_not_be_changed_through_a_handle() -> None:
    """Each is new."""
    handle = ToolSpec.from_function(search_database, output_schema={"type": "object", "properties": {"results": {}}})
    handle.output_schema["properties"].clear()  # type: ignore[index]

    assert ["results"] == list(handle.output_schema["properties"])  # type: ignore[index]
    assert ["a"] == handle(query="a", limit=1)


def test_ah_29_the_docstring_is_of_googles_style(search: ToolSpec) -> None:
    """A default is a sentence of its own."""
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


def test_ah_30_the_code_is_a_whole_definition(search: ToolSpec) -> None:
    """It is Python, and a tool like this one can be made of it."""
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


def test_ah_30_the_code_is_python_whatever_the_tool_says() -> None:
    """An argument that must be given after one that need not, choices, and quotes that would end a docstring."""

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
def test_ah_30_no_description_ends_its_docstring(text: str) -> None:
    """What is written is read again as it was; what steers a terminal is written as an escape."""

    def nothing() -> None:
        pass

    handle = ToolSpec.from_function(nothing, description=text)

    assert handle.docstring == ast.get_docstring(ast.parse(handle.code).body[-1])  # type: ignore[arg-type]


def test_ah_31_a_signature_is_a_call(search: ToolSpec) -> None:
    """What must be given and is not stands by its name; what does not fit is refused."""
    assert "search_database(query='example', limit=10)" == search.signature(query="example", limit="10")
    assert "search_database(query, limit=10)" == search.signature()
    with pytest.raises(ArgumentError, match="nope: expected only query, limit, got an unknown name of type int"):
        search.signature(nope=1)


def test_ah_31_an_optional_argument_without_a_default_is_left_out() -> None:
    """Upstream raises a ValueError."""

    def maybe(text: str, tags: list[str] | None = None) -> str:
        return text

    assert "maybe(text='a', tags=None)" == ToolSpec.from_function(maybe).signature(text="a")


def test_ah_31_a_signature_shows_no_secret_and_is_python() -> None:
    """A name that is none in Python is given in a map; such a tool has no definition."""
    args = (ArgSpec("user-id", ArgType.STRING), ArgSpec("key", ArgType.STRING, secret=True))
    handle = ToolSpec(ToolImplementation(NeuroToolSpec("go", "x", args), lambda rt, *values: None))

    assert "go(**{'user-id': 'a'}, key=...)" == handle.signature(**{"user-id": "a", "key": "k"})
    with pytest.raises(SpecError, match="cannot write a definition: user-id is not a valid Python name"):
        assert handle.code


def test_ah_32_the_prompt_tells_a_model_all_it_needs(search: ToolSpec) -> None:
    """The name is that of the handle."""
    assert """\
search_database(query: string, limit: int = 10) -> map
  Search the database for matching records.
  Arguments:
    query: string, required. The search query string
    limit: int, default 10. Maximum number of results to return
  Returns: map. Search results with matched records""" == search.to_prompt()


def test_ah_33_a_tool_is_written_for_the_sdk_of_mcp(search: ToolSpec) -> None:
    """The type of the SDK with both schemas; the returned object is not wrapped."""
    told = search.to_mcp()

    assert isinstance(told, MCPTool)
    assert ("search_database", search.description, search.input_schema) == (
        told.name,
        told.description,
        told.input_schema,
    )
    assert {"type": "object", "description": "Search results with matched records"} == told.output_schema


def test_ah_33_what_is_bound_is_not_told_and_the_authors_schema_is() -> None:
    """Binds are applied; the default of a secret is not shown."""

    def fetch(query: str, user_id: str, key: Annotated[str, Arg(secret=True)] = "sesame") -> Any:
        return {"n": 1}

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    handle = ToolSpec.from_function(fetch, output_schema=schema).bind("user_id", default="u")
    told = handle.to_mcp()

    assert (["query", "key"], ["query"]) == ([*told.input_schema["properties"]], told.input_schema["required"])
    assert "sesame" not in told.model_dump_json()
    assert schema == told.output_schema


def over_fastmcp(handle: ToolSpec, *calls: dict[str, Any]) -> list[Any]:
    """Return what a client of a FastMCP server receives for the tool of a handle: its definition and each result."""

    async def run() -> list[Any]:
        server: FastMCP[Any] = FastMCP("mine")
        server.add_tool(handle.to_fastmcp())
        async with FastMCPClient(server) as client:
            (told,) = await client.list_tools()
            return [told, *[await client.call_tool_mcp(handle.name, each) for each in calls]]

    return asyncio.run(run())


def test_ah_34_a_fastmcp_server_takes_the_tool_without_what_is_bound(action: ToolSpec) -> None:
    """Our coercion comes first, the state is used, and an error says what to do."""
    made = action.to_fastmcp()
    told, first, wrong = over_fastmcp(action, {"action": "login"}, {"action": 5, "user_id": "mallory"})
    action.state["user_id"] = "user456"
    _, second = over_fastmcp(action, {"action": "logout"})

    assert isinstance(made, FastMCPTool)
    assert (action.name, action.input_schema) == (told.name, told.input_schema)
    assert {"result": "User user123 performed: login"} == first.structured_content
    assert {"result": "User user456 performed: logout"} == second.structured_content
    assert wrong.is_error
    assert (
        "error arg.invalid: action: expected string, got int; user_id: expected only action, got an unknown name of type "
        "str. Fix the arguments and call again."
    ) == wrong.content[0].text


def test_ah_34_the_authors_schema_is_that_of_the_structured_content() -> None:
    """Of a map as it is, of all else under ``result``."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    def count(text: str) -> Any:
        return {"n": len(text)}

    told, answer = over_fastmcp(ToolSpec.from_function(count, output_schema=schema), {"text": "abc"})

    assert schema == told.output_schema
    assert {"n": 3} == answer.structured_content


def test_ah_34_a_schema_of_what_is_no_object_is_told_under_result() -> None:
    """As the value is, for MCP knows results that are objects alone; FastMCP finds what it refers to."""
    schema = {"$ref": "#/$defs/word", "$defs": {"word": {"type": "string"}}}

    def first(text: str) -> Any:
        return text[0]

    told, answer = over_fastmcp(ToolSpec.from_function(first, output_schema=schema), {"text": "abc"})

    assert {
        "type": "object",
        "properties": {"result": {"type": "string"}},
        "required": ["result"],
    } == told.output_schema
    assert ({"result": "a"}, False) == (answer.structured_content, answer.is_error)


def test_ah_34_there_and_back_a_tool_is_what_it_was(search: ToolSpec) -> None:
    """Of a handle a tool of FastMCP, and of that a handle."""
    again = ToolSpec.from_fastmcp(search.to_fastmcp())

    assert (search.name, search.params) == (again.name, again.params)
    assert {"results": ["a", "a"]} == again(query="a", limit="2")


def test_ah_35_the_json_schema_is_flat_and_strict(search: ToolSpec) -> None:
    """As OpenAI's Responses API has it."""
    assert {
        "type": "function",
        "name": "search_database",
        "description": "Search the database for matching records.",
        "strict": True,
    } == {key: value for key, value in search.to_jsonschema().items() if key != "parameters"}


def test_ah_36_strict_mode_takes_the_schema(search: ToolSpec) -> None:
    """Each property is required and nothing else let in; null stands for what is left out, and a call takes it so."""
    parameters = search.to_jsonschema()["parameters"]

    assert (["query", "limit"], False) == (parameters["required"], parameters["additionalProperties"])
    assert ["integer", "null"] == parameters["properties"]["limit"]["type"]
    assert "default" not in parameters["properties"]["limit"]
    assert 10 == len(search(query="a", limit=None)["results"])


def test_ah_36_a_tool_that_takes_any_map_is_not_strict() -> None:
    """There is no strict schema of it, and none is claimed."""
    handle = taking(dict[str, Any])

    assert (False, handle.input_schema) == (handle.to_jsonschema()["strict"], handle.to_jsonschema()["parameters"])


def test_ah_36_of_a_list_and_a_class_the_strict_schema_goes_down(search: ToolSpec) -> None:
    """Every object within is closed, and its properties are required; what strict mode does not take is not there."""
    schema = taking(list[Point]).to_jsonschema()

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
def test_ah_36_nothing_is_claimed_that_strict_mode_does_not_take(annotation: Any, strict: Any) -> None:
    """What only describes is left out, what would no longer be asked makes it not strict."""
    schema = taking(annotation).to_jsonschema()

    assert (strict is not None) == schema["strict"]
    assert strict is None or strict == schema["parameters"]["properties"]["x"]


def test_ah_36_anthropic_takes_the_input_schema(search: ToolSpec) -> None:
    """Its tools are a name, a description and that; the page on coming from AgentHeaven shows it."""
    assert search.input_schema == search.to_jsonschema(strict=False)["parameters"]


def test_ah_37_further_members_are_added_and_replaced(search: ToolSpec) -> None:
    """The name, too."""
    schema = search.to_jsonschema(custom_field="value", name="other")

    assert ("value", "other") == (schema["custom_field"], schema["name"])
