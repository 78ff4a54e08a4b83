"""The cases of AgentHeaven and related systems in ``tests/vectors/seed_systems.json``.

A case is a description; its check is in `CHECKS` under its id.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from fastmcp import Client, FastMCP
from tests.interop.agentheaven_tools import CODE, Base, Extended, search_database, user_action

from neuroscript import ArgumentError, SpecError, ToolFailed
from neuroscript.formats.json_schema import spec_from_schema, spec_to_schema
from neuroscript.interop.agentheaven import ToolRegistry, ToolSpec, reg_toolspec
from neuroscript.llm.wire import read_call
from neuroscript.names import from_wire

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "seed_systems.json").read_text())
OURS = {each["id"]: each for each in VECTORS if each["system"] in ("agentheaven", "interop")}


DEFINED = {
    "name": "my_tool",
    "description": "Find it.",
    "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}},
}
"""A definition as the wire has it."""


def search() -> ToolSpec:
    """Return the tool that most cases use."""
    return ToolSpec.from_function(search_database, parse_docstring=True)


def bound() -> ToolSpec:
    """Return the tool of the cases about binding."""
    return ToolSpec.from_function(user_action).bind(param="user_id", default="user123")


def refused(call: Callable[[], Any], kind: type[Exception] = ArgumentError) -> bool:
    """Return whether a call is refused with this error; any other error fails the test."""
    try:
        call()
    except kind:
        return True
    return False


async def within_a_loop() -> Any:
    """Call a tool while a loop is running."""
    return search()(query="a", limit=1)


async def awaited(text: str) -> str:
    """Echo.

    Returns:
        str: The text.
    """
    await asyncio.sleep(0)
    return text


def untyped(n):  # type: ignore[no-untyped-def]
    return n


untyped.__annotations__["n"] = int


def flag(f: bool, d: Literal["x", "y"] = "x") -> list[Any]:
    """Take a boolean and a choice."""
    return [f, d]


def rest(*args: int) -> int:
    """Take any number of values."""
    return len(args)


def names(**kw: int) -> int:
    """Take any name."""
    return len(kw)


class Options(ToolRegistry):
    """A class with a method that has options."""

    @reg_toolspec(
        description="Custom description", examples=[1], output_schema={"type": "object", "properties": {"a": {}}}
    )
    def one(self) -> int:
        """Return one."""
        return 1


def has_options(_: Any) -> bool:
    """Return whether options are stored and do not affect calls."""
    handle = Options().toolspec("one")
    return (handle.description, handle.examples, handle()) == ("Custom description", [1], 1)


def follows_the_state(_: Any) -> bool:
    """Return whether a change of the state applies after a first call."""
    handle = bound()
    handle(action="login")
    handle.state["user_id"] = "user456"
    return bool(handle(action="logout") == "User user456 performed: logout")


def has_nested_state(expected: str) -> bool:
    """Return whether a default is at its path in the state."""
    handle = ToolSpec.from_function(lambda_with_key).bind("api_key", "config.api.key", "default_key")
    return f"{handle.state}, binds {handle.binds}" == expected


def lambda_with_key(api_key: str) -> str:
    """Echo a key."""
    return api_key


def is_unbound(_: Any) -> bool:
    """Return whether an argument is required again and the state is restored."""
    handle = bound().unbind(param="user_id")
    return refused(lambda: handle(action="x")) and handle.state == {"user_id": "user123"}


def shows_schema(expected: Mapping[str, Any]) -> bool:
    """Return whether a tool is exported to OpenAI with a schema for strict mode."""
    schema = search().to_jsonschema()
    words = {key: each for key, each in expected.items() if key != "parameters"}
    return schema == {**words, "parameters": schema["parameters"]} and schema["parameters"]["required"] == [
        "query",
        "limit",
    ]


def comes_back(_: Any) -> bool:
    """Return whether a schema survives conversion to a spec."""
    schema = json.loads(re.findall(r"of (\{.*\})$", OURS["interop-010"]["given"])[0].replace("'", '"'))
    spec = spec_from_schema("t", schema, group="g")
    args = {arg.name: arg for arg in spec.args}
    again = spec_to_schema(spec, exact=False)
    return (
        again["properties"] == schema["properties"]
        and [key.name for key in args["p"].keys] == ["x"]
        and args["u"].nullable
    )


def reads_both_shapes(_: Any) -> bool:
    """Return whether calls of both APIs are read, and the tool is exported flat."""
    chat = {"type": "function", "function": {"name": "math__add", "arguments": "{}"}}
    flat = {"type": "function_call", "call_id": "1", "name": "math__add", "arguments": "{}"}
    return read_call(chat).name == read_call(flat).name and "function" not in search().to_jsonschema()


def as_mcp(expected: str) -> bool:
    """Return whether a tool is exported to MCP with everything that the case lists."""
    definition = search().to_mcp().model_dump(by_alias=True, exclude_none=True)
    return expected == "MCP Tool with name, description, inputSchema, outputSchema" and (
        (definition["name"], definition["description"])
        == ("search_database", "Search the database for matching records.")
        and definition["inputSchema"] == search().input_schema
        and definition["outputSchema"]["type"] == "object"
    )


def answers(handle: ToolSpec, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Return what a client of a server with this tool receives."""

    async def run() -> list[Any]:
        server: FastMCP[Any] = FastMCP("mine")
        server.add_tool(handle.to_fastmcp())
        async with Client(server) as client:
            return [await client.call_tool_mcp(*each) for each in calls]

    return asyncio.run(run())


def numbers(count: int) -> list[int]:
    """Return this number of numbers."""
    return [*range(count)]


def gives_a_list(_: Any) -> bool:
    """Return whether a list is under ``result``, in the schema and in what a client receives."""
    handle = ToolSpec.from_function(numbers)
    schema = handle.to_mcp().output_schema
    (answer,) = answers(handle, ("numbers", {"count": "2"}))
    return (
        (schema["type"], schema["required"], schema["properties"]["result"]["type"]) == ("object", ["result"], "array")
        and schema == {**schema, "properties": {"result": {"type": "array", "items": {"type": "integer"}}}}
        and answer.structured_content == {"result": [0, 1]}
    )


def breaks(kind: str) -> int:
    """Raise an error that is meant for the caller."""
    raise ToolFailed(f"broken like a {kind}")


def tells_errors_as_results(_: Any) -> bool:
    """Return whether every failure is an error result with the message."""
    calls = [("breaks", {"kind": "cup"}), ("breaks", {"kind": 5}), ("nope", {})]
    found = answers(ToolSpec.from_function(breaks), *calls)
    messages = ["broken like a cup", "kind: expected string, got int", "Unknown tool: 'nope'"]
    return all(each.is_error and text in each.content[0].text for each, text in zip(found, messages, strict=True))


CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "agentheaven-001": lambda expected: {"name": search().name, "input_schema": search().input_schema} == expected,
    "agentheaven-003": lambda expected: search().output_schema == expected,
    "agentheaven-004": lambda expected: search().signature(query="example", limit=10) == expected,
    "agentheaven-005": lambda expected: search().signature() == expected,
    "agentheaven-012": lambda _: refused(lambda: search()("x"), TypeError),  # type: ignore[misc]
    "agentheaven-013": lambda expected: str(search().exec(query="x", limit=1).structured_content) == expected,
    "agentheaven-014": lambda _: asyncio.run(search().acall(query="x")) == search().call(query="x"),
    "agentheaven-015": lambda _: asyncio.run(within_a_loop()) == {"results": ["a"]},
    "agentheaven-016": lambda _: ToolSpec.from_function(untyped)(n=5) == 5,
    "agentheaven-017": lambda _: ToolSpec.from_function(awaited)(text="a") == "a",
    "agentheaven-022": lambda _: refused(lambda: search()(query="x", limit=2.5)),
    "agentheaven-023": lambda _: refused(lambda: search()(query="x", limit=True)),
    "agentheaven-025": lambda _: refused(lambda: search()(query=None)),
    "agentheaven-030": lambda _: refused(lambda: ToolSpec.from_function(flag)(f="yes")),
    "agentheaven-031": lambda _: refused(lambda: ToolSpec.from_function(flag)(f=2)),
    "agentheaven-032": lambda _: refused(lambda: ToolSpec.from_function(flag)(f=True, d="z")),
    "agentheaven-035": lambda expected: bound()(action="login") == expected,
    "agentheaven-036": lambda _: ["action"] == list(bound().params) == bound().input_schema["required"],
    "agentheaven-038": follows_the_state,
    "agentheaven-039": has_nested_state,
    "agentheaven-045": is_unbound,
    "agentheaven-046": lambda _: bound().unbind("nope").binds == {"user_id": "user_id"},
    "agentheaven-048": lambda _: (handle := search()).binded is handle and list(bound().binded.params) == ["action"],
    "agentheaven-055": lambda _: [*ToolSpec.from_mcp(DEFINED).params] == ["query"],
    "agentheaven-053": lambda _: ToolSpec.from_code(CODE)(n=5) == 120,
    "agentheaven-059": as_mcp,
    "agentheaven-060": shows_schema,
    "agentheaven-064": lambda expected: str(Extended().list_toolspecs()).replace(" ", "") == expected,
    "agentheaven-065": has_options,
    "agentheaven-066": lambda _: [Base(n).toolspec("search")(query="a")[0] for n in (42, 99)] == [42, 99],
    "agentheaven-067": lambda _: all(refused(lambda f=f: ToolSpec.from_function(f), SpecError) for f in (rest, names)),
    "interop-001": lambda _: (
        (spec := search().tool.spec).wire_name == "agentheaven__search_database"
        and from_wire(spec.wire_name) == spec.full_name
    ),
    "interop-005": reads_both_shapes,
    "interop-006": gives_a_list,
    "interop-008": tells_errors_as_results,
    "interop-010": comes_back,
}
"""What holds, given what the case expects. Of 023 and 030 it is what the contract has instead of pydantic's lax values."""


def test_each_case_has_a_check() -> None:
    """No case is missing."""
    assert set(OURS) == set(CHECKS)


@pytest.mark.parametrize("case", CHECKS)
def test_case_passes(case: str) -> None:
    """Through the handle, as a user would."""
    assert CHECKS[case](OURS[case]["expect"])
