"""The documented behavior of AgentHeaven, as listed in ``docs/how-to/coming-from-agentheaven.md``.

Each row has a test with its id in the name, or is in `LISTED` with the reason why it has none.
"""

from __future__ import annotations

import ast
import asyncio
import copy
import functools
import inspect
import json
import os
import re
import threading
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pytest
from fastmcp import Client as FastMCPClient
from fastmcp import Context as FastMCPContext
from fastmcp import FastMCP
from fastmcp.tools import Tool as FastMCPTool
from mcp.client.client import Client as MCPClient
from mcp_types import Tool as MCPTool

from neuroscript import (
    Arg,
    ArgSpec,
    ArgType,
    ArgumentError,
    CallError,
    Engine,
    Example,
    ExecutionPolicy,
    PolicyError,
    ReturnError,
    Runtime,
    SpecError,
    ToolFailed,
    ToolImplementation,
    ToolPolicy,
    Toolset,
    spec_from_schema,
)
from neuroscript import ToolSpec as NeuroToolSpec
from neuroscript.interop.agentheaven import ToolRegistry, ToolResult, ToolSpec, reg_toolspec

LISTED = {"AH-58": "the document does not name to_ukf, and upstream's raises NotImplementedError"}
"""Rows without a test, and why."""


def search_database(query: str, limit: int = 10) -> dict:  # type: ignore[type-arg]
    """Search the database for matching records.

    Args:
        query: The search query string
        limit: Maximum number of results to return

    Returns:
        dict: Search results with matched records
    """
    return {"results": [query] * limit}


def user_action(user_id: str, action: str) -> str:
    """Perform an action for a user."""
    return f"User {user_id} performed: {action}"


@pytest.fixture
def search() -> ToolSpec:
    """The tool of the document's section 3.1."""
    return ToolSpec.from_function(search_database)


@pytest.fixture
def action() -> ToolSpec:
    """The tool of the document's section 4.1, with its user bound."""
    return ToolSpec.from_function(user_action).bind(param="user_id", default="user123")


def taking(annotation: Any) -> ToolSpec:
    """Return a tool that gives back its argument ``x`` of a type."""

    def echo(x: Any) -> Any:
        return x

    echo.__annotations__["x"] = annotation
    return ToolSpec.from_function(echo)


def test_each_row_has_a_test_or_a_reason() -> None:
    """Seventy rows; one of them is listed instead of tested."""
    tested = {f"AH-{int(name.split('_')[2])}" for name in globals() if name.startswith("test_ah_")}

    assert {f"AH-{number}" for number in range(1, 71)} == tested | set(LISTED)
    assert not tested & set(LISTED)
    assert len(LISTED) == 1


def test_the_page_has_every_row() -> None:
    """In their order, each with what became of it; nothing is left for later."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "coming-from-agentheaven.md"
    rows = re.findall(r"^\| (AH-\d+) \| [^|]+ \| (same|fixed|different) \|", page.read_text(), re.MULTILINE)

    assert [f"AH-{number}" for number in range(1, 71)] == [row for row, _ in rows]


# The tool, and where it comes from


def test_ah_01_three_names_are_imported_from_one_place() -> None:
    """The import line of every snippet, with another module."""
    from neuroscript.interop import agentheaven

    assert ["ToolRegistry", "ToolResult", "ToolSpec", "reg_toolspec"] == sorted(agentheaven.__all__)


def test_ah_02_a_tool_of_fastmcp_is_wrapped_with_a_state_bindings_and_examples() -> None:
    """It runs in this process; what is bound is no argument any more."""
    handle = ToolSpec.from_fastmcp(FastMCPTool.from_function(user_action))
    handle.examples.append({"action": "login"})
    handle.bind("user_id", "session.user", default="user123")

    assert ("user_action", "Perform an action for a user.") == (handle.name, handle.description)
    assert {"session": {"user": "user123"}} == handle.state
    assert {"user_id": "session.user"} == handle.binds
    assert [{"action": "login"}] == handle.clone().examples
    assert "User user123 performed: login" == handle(action="login")
    assert {"result": "User user123 performed: logout"} == handle.exec(action="logout").structured_content


def test_ah_02_a_tool_of_fastmcp_needs_what_a_foreign_tool_needs_in_an_engine_of_a_host() -> None:
    """Who calls its handle has chosen it; a model that calls it by an engine has not."""
    handle = ToolSpec.from_fastmcp(FastMCPTool.from_function(user_action))

    with Engine(plugins="none", toolsets=[Toolset("agentheaven", (handle.tool,))]) as engine:
        with pytest.raises(PolicyError) as caught:
            engine.call_named("agentheaven.user_action", {"user_id": "u", "action": "a"})

    assert ("policy.approval", "host") == (caught.value.code, caught.value.retry)
    assert ("mcp:call:agentheaven/user_action",) == handle.tool.policy.capabilities
    assert handle.tool.policy.requires_approval
    assert "User u performed: a" == handle.clone()(user_id="u", action="a")


def test_ah_02_a_server_is_no_tool() -> None:
    """It says who takes servers."""
    with pytest.raises(SpecError) as caught:
        ToolSpec.from_fastmcp(FastMCP("x"))

    expected = "ToolSpec: expected one tool; use neuroscript.interop.fastmcp.from_fastmcp for a server"
    assert expected == str(caught.value)


def test_ah_03_a_function_becomes_a_tool(search: ToolSpec) -> None:
    """The docstring is read by default, and examples are kept."""
    assert ("search_database", []) == (search.name, search.examples)
    assert {"results": ["a", "a"]} == search(query="a", limit=2)


def test_ah_03_a_docstring_that_is_not_to_be_parsed_is_the_description() -> None:
    """All of it, as it stands."""
    handle = ToolSpec.from_function(search_database, parse_docstring=False)

    assert handle.description.startswith("Search the database for matching records.\n\nArgs:\n")
    assert {"type": "string"} == handle.params["query"]


def test_ah_04_hints_and_docstring_make_the_schema(search: ToolSpec) -> None:
    """Types and defaults are of the annotations, words of the docstring."""
    assert "Search the database for matching records." == search.description
    assert {
        "query": {"type": "string", "description": "The search query string"},
        "limit": {"type": "integer", "description": "Maximum number of results to return", "default": 10},
    } == search.params


def test_ah_04_a_docstring_is_never_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in it as a default is text; upstream ran it."""
    monkeypatch.delenv("RAN", raising=False)

    def careless(text: str = "a") -> str:
        """Echo.

        Args:
            text: A text. Defaults to __import__('os').environ.setdefault('RAN', '1').
        """
        return text

    assert "a" == ToolSpec.from_function(careless)()
    assert "RAN" not in os.environ


class Counter:
    """An object with a method, and one that can be called."""

    def __init__(self, start: int) -> None:
        self.start = start

    def after(self, step: int) -> int:
        return self.start + step

    def __call__(self, step: int) -> int:
        return self.start - step


def test_ah_05_methods_and_callables_are_tools() -> None:
    """The ``self`` of a method is no argument."""
    method = ToolSpec.from_function(Counter(5).after)

    assert (["step"], 7) == (list(method.params), method(step=2))
    assert 3 == ToolSpec.from_function(Counter(5))(step=2)
    assert 7 == ToolSpec.from_function(functools.partial(Counter.after, Counter(5)), name="after")(step=2)


def test_ah_05_what_a_decorator_has_wrapped_is_a_tool_too() -> None:
    """With the parameters of the function within, and its defaults, those by name alone too."""

    def loud(func: Any) -> Any:
        @functools.wraps(func)
        def called(*args: Any, **named: Any) -> Any:
            return func(*args, **named).upper()

        return called

    def joined(words: list, *, by: str = "-") -> str:  # type: ignore[type-arg]
        return by.join(words)

    assert "A-B" == ToolSpec.from_function(loud(joined))(words=["a", "b"])
    assert "a-b" == ToolSpec.from_function(joined)(words=["a", "b"])


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        (list, "slice_any"),
        (dict, "map"),
        (Optional[dict], "map"),
        (list | None, "slice_any"),
        (list[dict], "slice_map"),
    ],
    ids=str,
)
def test_ah_04_a_bare_container_holds_anything(annotation: Any, kind: str) -> None:
    """As the document writes them; an element of a list of maps is one of any."""
    assert kind == taking(annotation).tool.spec.args[0].type


def test_ah_04_the_names_of_typing_are_bare_containers_too() -> None:
    """As code of some years ago has them."""
    code = "from typing import Dict, List\ndef f(a: List, b: Dict) -> List:\n    return [a, b]\n"

    assert [[1], {"c": 2}] == ToolSpec.from_code(code)(a=[1], b={"c": 2})


def test_ah_05_a_lambda_needs_a_name_and_surplus_arguments_are_refused() -> None:
    """A handle gives arguments by name, and by names that are known."""

    def surplus(*values: int) -> int:
        return len(values)

    def names(**values: int) -> int:
        return len(values)

    def nothing(text: str) -> str:
        return text

    nothing.__name__ = "<lambda>"
    for func in (surplus, names, nothing):
        with pytest.raises(SpecError):
            ToolSpec.from_function(func)

    assert "a" == ToolSpec.from_function(nothing, name="echo")(text="a")


def test_ah_06_name_description_and_output_schema_can_be_given() -> None:
    """A schema of the result spoils no call."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    handle = ToolSpec.from_function(Counter(5).after, name="add", description="Adds.", output_schema=schema)

    assert ("add", "Adds.", schema) == (handle.name, handle.description, handle.output_schema)
    assert 7 == handle(step=2)


CODE = '''
def f(n: int) -> int:
    """Return a factorial."""
    return 1 if n < 2 else n * f(n - 1)
'''


def test_ah_07_from_mcp_takes_a_definition_of_the_protocol() -> None:
    """An object of the SDK; calling it needs a connection to its server."""
    schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    tool = ToolSpec.from_mcp(MCPTool(name="my_tool", description="Find\nit.", input_schema=schema))

    assert (tool.name, tool.tool.spec.description) == ("my_tool", "Find it.")
    assert tool.params["query"]["type"] == "string"
    with pytest.raises(ToolFailed) as caught:
        tool(query="a")
    assert (caught.value.code, caught.value.retry) == ("mcp.closed", "host")
    with pytest.raises(SpecError, match=r"^definition: inputSchema: expected a JSON object$"):
        ToolSpec.from_mcp({"name": "my_tool"})
    for _ in range(500):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(SpecError, match=r"^definition: inputSchema: nests deeper than 64 levels$"):
        ToolSpec.from_mcp({"name": "my_tool", "inputSchema": schema})
    with pytest.raises(SpecError, match=r"^definition: nests deeper than the SDK supports$"):
        ToolSpec.from_mcp(MCPTool(name="my_tool", input_schema=schema))


def test_ah_08_code_becomes_a_tool() -> None:
    """The one function in it is found, and may call itself."""
    assert 120 == ToolSpec.from_code(CODE)(n=5)
    assert 6 == ToolSpec.from_code(CODE + "\ndef g(n: int) -> int:\n    return f(n)\n", func_name="g")(n=3)
    assert 4 == ToolSpec.from_code("def h(n: int) -> int:\n    return n + ONE\n", env={"ONE": 1})(n=3)


@pytest.mark.parametrize(
    ("code", "func_name"),
    [("x = 1", None), ("def f() -> None: ...\ndef g() -> None: ...", None), (CODE, "zz")],
    ids=["none", "two", "another"],
)
def test_ah_08_code_without_the_one_function_is_refused(code: str, func_name: str | None) -> None:
    """No function, several, or none of that name."""
    with pytest.raises(SpecError, match="callable"):
        ToolSpec.from_code(code, func_name=func_name)


# What is bound


def test_ah_09_a_bound_argument_need_not_be_given(action: ToolSpec) -> None:
    """It is taken from the state."""
    assert "User user123 performed: login" == action(action="login")


def test_ah_10_bind_returns_the_handle() -> None:
    """So that bindings can be chained."""
    handle = ToolSpec.from_function(user_action)

    assert handle is handle.bind("user_id", None, "u").bind("action", default="login")
    assert "User u performed: login" == handle()


def test_ah_11_a_bound_argument_is_in_no_schema(action: ToolSpec) -> None:
    """Nor in anything else that is written of the tool."""
    texts = (action.docstring, action.code, action.signature(), action.to_prompt(), str(action.to_jsonschema()))

    assert {
        "type": "object",
        "properties": {"action": {"type": "string"}},
        "required": ["action"],
    } == action.input_schema
    assert not [text for text in texts if "user_id" in text]


def test_ah_12_the_default_goes_into_the_state_unless_something_is_there(action: ToolSpec) -> None:
    """The key is the name of the argument where none is given."""
    action.bind("user_id", default="other")

    assert ({"user_id": "user123"}, {"user_id": "user_id"}) == (action.state, action.binds)
    assert {"user_id": "user123"} == action.bind("action").state


def test_ah_13_a_change_of_the_state_counts_from_the_next_call(action: ToolSpec) -> None:
    """After a first call, too; upstream keeps what it saw then."""
    action(action="login")
    action.state["user_id"] = "user456"

    assert "User user456 performed: logout" == action(action="logout")


def test_ah_14_a_key_with_dots_reaches_into_the_state() -> None:
    """The state may be replaced as a whole, after calls too."""
    handle = ToolSpec.from_function(user_action).bind("user_id", "config.api.key", "default_key")

    assert {"config": {"api": {"key": "default_key"}}} == handle.state
    assert "User default_key performed: a" == handle(action="a")

    handle.state = {"config": {"api": {"key": "mine"}}}

    assert "User mine performed: a" == handle(action="a")


def test_ah_14_a_state_that_holds_something_else_there_is_refused() -> None:
    """A default does not take the place of what stands there."""
    handle = ToolSpec.from_function(user_action)
    handle.state = {"config": "text"}

    with pytest.raises(SpecError, match="config is no map"):
        handle.bind("user_id", "config.api.key", "k")
    assert ({"config": "text"}, {}) == (handle.state, handle.binds)


def test_ah_14_a_state_without_it_is_the_hosts_fault(action: ToolSpec) -> None:
    """The model that called could not have given it."""
    action.state.clear()
    with pytest.raises(ToolFailed) as caught:
        action(action="a")

    assert "host" == caught.value.retry
    assert str(caught.value) == (
        "agentheaven.user_action: user_id: expected string, got nothing: the state has no user_id (the host supplies this argument)"
    )


def test_ah_15_what_is_unbound_has_to_be_given_again(action: ToolSpec) -> None:
    """The state stays, and an unknown name is ignored."""
    action.unbind("nope")
    action.unbind(param="user_id")

    with pytest.raises(ArgumentError, match="user_id: expected string, got nothing"):
        action(action="x")
    assert {"user_id": "user123"} == action.state


def test_ah_16_a_wrong_name_is_refused_when_it_is_bound(action: ToolSpec) -> None:
    """Not by every call from then on."""
    with pytest.raises(SpecError) as caught:
        action.bind("acton")

    assert "agentheaven.user_action: it has no argument acton (did you mean action?)" == str(caught.value)
    assert "User user123 performed: x" == action(action="x")


def test_ah_17_nobody_who_calls_sets_what_is_bound(action: ToolSpec) -> None:
    """It is an argument that the tool does not have."""
    with pytest.raises(ArgumentError, match="user_id: expected only action, got an unknown name"):
        action(action="x", user_id="mallory")


# Calls


def test_ah_18_call_returns_the_main_value(search: ToolSpec) -> None:
    """What the function returned."""
    assert {"results": ["a"]} == search.call(query="a", limit=1)


def test_ah_19_a_handle_is_called_as_its_call_is(search: ToolSpec) -> None:
    """The shorthand of the document."""
    assert search.call(query="a", limit=3) == search(query="a", limit=3)


def test_ah_20_arguments_are_given_by_name_alone(search: ToolSpec) -> None:
    """One by position is a TypeError, before anything is called."""
    with pytest.raises(TypeError, match="positional"):
        search("x")  # type: ignore[misc]


def test_ah_20_any_name_of_an_argument_can_be_given() -> None:
    """Also those that a method of Python has taken."""

    def odd(self: str, name: str) -> str:
        return self + name

    handle = ToolSpec.from_function(functools.partial(odd), name="odd")

    assert "ab" == handle.call(self="a", name="b") == handle(self="a", name="b")


def test_ah_21_exec_returns_the_content_with_time_and_error(search: ToolSpec) -> None:
    """An error is a part of what is returned, as the document has it."""
    good, bad = search.exec(query="x", limit=1), search.exec(limit=1)

    assert isinstance(good, ToolResult)
    assert ({"result": {"results": ["x"]}}, None, True) == (good.structured_content, good.error, good.ok)
    assert good.seconds > 0
    assert (None, False) == (bad.structured_content, bad.ok)
    assert "agentheaven.search_database: query: expected string, got nothing" == str(bad.error)


def test_ah_22_acall_returns_what_call_does(search: ToolSpec) -> None:
    """Of a coroutine function too."""

    async def wait(text: str) -> str:
        """Wait.

        Returns:
            str: The text.
        """
        await asyncio.sleep(0)
        return text

    assert search(query="a") == asyncio.run(search.acall(query="a"))
    assert "a" == asyncio.run(ToolSpec.from_function(wait).acall(text="a"))


def test_ah_23_aexec_returns_what_exec_does(search: ToolSpec) -> None:
    """The content, or the error."""
    good, bad = asyncio.run(search.aexec(query="a", limit=1)), asyncio.run(search.aexec(limit=1))

    assert search.exec(query="a", limit=1).structured_content == good.structured_content
    assert str(search.exec(limit=1).error) == str(bad.error)
    assert good.seconds > 0


def test_ah_24_of_a_schema_with_one_property_that_property_is_the_value() -> None:
    """Of more, or where nothing is known of the result, all of it is."""

    def pair(a: int) -> dict[str, Any]:
        return {"a": a, "b": 2}

    def schema(*names: str) -> dict[str, Any]:
        return {"type": "object", "properties": {name: {} for name in names}}

    one = ToolSpec.from_function(pair, output_schema=schema("a"))
    two = ToolSpec.from_function(pair, output_schema=schema("a", "b"))

    assert (1, {"a": 1, "b": 2}) == (one(a=1), one.exec(a=1).structured_content)
    assert {"a": 1, "b": 2} == two(a=1) == two.exec(a=1).structured_content
    assert {"a": 1, "b": 2} == ToolSpec.from_function(pair)(a=1)


def test_ah_24_without_an_output_schema_the_value_is_returned() -> None:
    """Upstream raises an AttributeError."""

    def untold(a: int):  # type: ignore[no-untyped-def]
        return [a]

    handle = ToolSpec.from_function(untold)

    assert (None, [1], {"result": [1]}) == (handle.output_schema, handle(a=1), handle.exec(a=1).structured_content)


def test_ah_25_a_call_within_a_running_loop_works(search: ToolSpec) -> None:
    """Of a function and of a coroutine function."""

    async def later(text: str) -> str:
        await asyncio.sleep(0)
        return text

    async def within() -> tuple[Any, Any]:
        return search(query="a", limit=1), ToolSpec.from_function(later)(text="b")

    assert ({"results": ["a"]}, "b") == asyncio.run(within())


# What is written of it


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
    """Whatever it says; a pattern can be said in strict mode, the length of a text can not."""
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
    """Of a result of which nothing is known there is none."""
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
    """The SDK's own type, with both schemas; the object that it returns stands in no other."""
    told = search.to_mcp()

    assert isinstance(told, MCPTool)
    assert ("search_database", search.description, search.input_schema) == (
        told.name,
        told.description,
        told.input_schema,
    )
    assert {"type": "object", "description": "Search results with matched records"} == told.output_schema


def test_ah_33_what_is_bound_is_not_told_and_the_authors_schema_is() -> None:
    """Binds are applied; a secret's default is told to nobody."""

    def fetch(query: str, user_id: str, key: Annotated[str, Arg(secret=True)] = "sesame") -> Any:
        return {"n": 1}

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    handle = ToolSpec.from_function(fetch, output_schema=schema).bind("user_id", default="u")
    told = handle.to_mcp()

    assert (["query", "key"], ["query"]) == ([*told.input_schema["properties"]], told.input_schema["required"])
    assert "sesame" not in told.model_dump_json()
    assert schema == told.output_schema


def over_fastmcp(handle: ToolSpec, *calls: dict[str, Any]) -> list[Any]:
    """Return what a client of a FastMCP server is told that has the tool of a handle: of it, and of each call."""

    async def run() -> list[Any]:
        server: FastMCP[Any] = FastMCP("mine")
        server.add_tool(handle.to_fastmcp())
        async with FastMCPClient(server) as client:
            (told,) = await client.list_tools()
            return [told, *[await client.call_tool_mcp(handle.name, each) for each in calls]]

    return asyncio.run(run())


def test_ah_34_a_fastmcp_server_takes_the_tool_without_what_is_bound(action: ToolSpec) -> None:
    """Our coercion comes first, the state counts, and an error is told with what to do about it."""
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


# The registry


class Base(ToolRegistry):
    """A class with tools."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    @reg_toolspec(parse_docstring=True)
    def search(self, query: str, limit: int = 10) -> list:  # type: ignore[type-arg]
        """Search."""
        return [self.number, query, limit]

    @reg_toolspec
    def add_item(self, title: str) -> dict:  # type: ignore[type-arg]
        """Add an item."""
        return {"title": title, "number": self.number}

    def helper(self) -> None:
        """Is no tool."""

    @reg_toolspec
    def _hidden(self) -> None:
        """Is none, by its name."""


class Extended(Base):
    """A class with one more."""

    @reg_toolspec
    def extra(self) -> int:
        """Return the number."""
        return self.number


def test_ah_38_a_mixin_gives_a_class_tools() -> None:
    """Those that are marked, and no others."""
    assert ["search", "add_item"] == list(Base().to_toolspecs())


def test_ah_39_the_decorator_is_written_with_arguments_or_without() -> None:
    """An option that there is not is refused where it is written."""
    assert ["search", "add_item"] == Base().list_toolspecs()
    with pytest.raises(TypeError):
        reg_toolspec(nope=1)  # type: ignore[call-overload]


def test_ah_40_a_class_is_looked_at_when_it_is_made() -> None:
    """Mixins that know nothing of registries count, and static and class methods, in either order of marks."""

    class Mixin:
        @reg_toolspec
        def mixed(self) -> str:
            return "mixed"

    class Whole(Mixin, ToolRegistry):
        @reg_toolspec
        @staticmethod
        def outside(x: int) -> int:
            return x

        @staticmethod
        @reg_toolspec
        def inside(x: int) -> int:
            return x

        @classmethod
        @reg_toolspec
        def made(cls) -> str:
            return cls.__name__

    handles = Whole().to_toolspecs()

    assert ["mixed", "outside", "inside", "made"] == list(handles)
    assert ("mixed", 1, 2, "Whole") == (
        handles["mixed"](),
        handles["outside"](x=1),
        handles["inside"](x=2),
        handles["made"](),
    )


def test_ah_41_what_was_said_is_kept_in_toolspecs() -> None:
    """Of the class, not of its instances."""
    assert ["search", "add_item"] == list(Base._toolspecs)
    assert {} == ToolRegistry._toolspecs


def test_ah_42_a_tool_is_made_when_it_is_asked_for() -> None:
    """A method that can be none spoils neither its class nor the others."""

    class Partly(ToolRegistry):
        @reg_toolspec
        def good(self) -> int:
            return 1

        @reg_toolspec
        def bad(self, thing: object) -> int:
            return 2

    assert 1 == Partly().toolspec("good")()
    with pytest.raises(SpecError, match="thing: object is not supported"):
        Partly().toolspec("bad")


def test_ah_43_each_tool_is_of_its_instance_and_new() -> None:
    """Its ``self`` is in no schema."""
    one, two = Base(42), Base(99)

    assert ([42, "a", 1], [99, "a", 1]) == tuple(each.toolspec("search")(query="a", limit=1) for each in (one, two))
    assert ["query", "limit"] == list(one.to_toolspecs()["search"].params)
    assert one.to_toolspecs()["search"] is not one.to_toolspecs()["search"]


def test_ah_44_names_are_listed_as_they_are_defined_inherited_ones_first() -> None:
    """Upstream loses those of the classes above."""
    assert ["search", "add_item", "extra"] == Extended(7).list_toolspecs()
    assert ([7, "a", 1], 7) == (
        Extended(7).to_toolspecs()["search"](query="a", limit=1),
        Extended(7).toolspec("extra")(),
    )


def test_ah_44_a_class_takes_away_or_changes_what_is_above_it() -> None:
    """Whoever speaks last of a name decides."""

    class Less(Base):
        add_item = None  # type: ignore[assignment]

        @reg_toolspec
        def search(self, query: str) -> str:  # type: ignore[override]
            return query.upper()

    assert ["search"] == Less().list_toolspecs()
    assert "A" == Less().toolspec("search")(query="a")


def test_ah_45_a_method_stays_a_method() -> None:
    """It is called as it was."""
    assert [5, "a", 10] == Base(5).search("a")


def test_ah_46_options_are_those_of_from_function() -> None:
    """What is said of the result spoils no call."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    class Said(ToolRegistry):
        @reg_toolspec(description="Custom description", examples=[1], output_schema=schema, name="other")
        def count(self) -> int:
            return 1

    handle = Said().toolspec("count")

    assert ("Custom description", [1], schema, "other") == (
        handle.description,
        handle.examples,
        handle.output_schema,
        handle.name,
    )
    assert 1 == handle()


# Advanced


def test_ah_47_a_clone_has_a_state_of_its_own(action: ToolSpec) -> None:
    """Its calls are its own; what is nested in the state is not shared, and what is no map is."""
    thing = object()
    action.bind("action", "deep.er", "login").state.update(thing=thing, items=[[1]])
    for other in (action.clone(), copy.copy(action), copy.deepcopy(action)):
        other.state["user_id"] = "different_user"
        other.state["deep"]["er"] = "logout"
        other.state["items"][0].append(2)

        assert "User different_user performed: logout" == other() == other.exec().structured_content["result"]  # type: ignore[index]
        assert thing is other.state["thing"]
    action.clone().unbind("action")

    assert ("User user123 performed: login", [[1]]) == (action(), action.state["items"])


def test_ah_48_binded_is_the_tool_without_what_is_bound(action: ToolSpec, search: ToolSpec) -> None:
    """A handle on which nothing is bound is its own; a change of the state counts there too."""
    binded = action.binded
    action.state["user_id"] = "u"

    assert (["action"], "User u performed: a") == (list(binded.params), binded(action="a"))
    assert search is search.binded


def test_ah_49_the_cache_can_be_cleared_and_need_not(action: ToolSpec) -> None:
    """What is bound or not shows in everything at once."""
    before = (action.docstring, action.code, action.input_schema)
    action(action="a")
    action.unbind("user_id")
    after = (action.docstring, action.code, action.input_schema)
    action(action="a", user_id="u")
    action.bind("user_id")
    assert "User user123 performed: a" == action(action="a")
    action._clear_cache()

    assert "user_id" in after[0] and "user_id" in after[1] and "user_id" in after[2]["properties"]
    assert before == (action.docstring, action.code, action.input_schema)
    assert "User user123 performed: a" == action(action="a")


def test_ah_50_examples_are_kept_and_shown() -> None:
    """Those of ours are tried when the tool is made, and stand in the prompt."""
    example = Example({"query": "a", "limit": 1}, {"results": ["a"]})
    handle = ToolSpec.from_function(search_database, examples=[example, {"anything": 1}])

    assert [example, {"anything": 1}] == handle.examples == handle.clone().examples
    assert 'Example: {"name": "search_database", "arguments": {"query": "a", "limit": 1}}' in handle.to_prompt()
    with pytest.raises(SpecError, match="example 1"):
        ToolSpec.from_function(search_database, examples=[Example({"nope": 1})])


def test_ah_51_what_is_missing_unknown_or_wrong_raises(search: ToolSpec) -> None:
    """All of it at once, and a failure of the function as a failure of the tool."""

    def failing(text: str) -> str:
        raise ValueError(text)

    with pytest.raises(ArgumentError) as caught:
        search(limit="x", nope=1)
    with pytest.raises(ToolFailed) as failed:
        ToolSpec.from_function(failing)(text="secret")

    assert {"query", "limit", "nope"} == {each.where for each in caught.value.problems}
    assert "secret" not in str(failed.value)


def test_ah_51_a_result_that_is_not_what_was_promised_raises() -> None:
    """A function that says int returns one."""

    def lying() -> int:
        return "1"  # type: ignore[return-value]

    with pytest.raises(ReturnError):
        ToolSpec.from_function(lying)()


def test_ah_52_an_argument_without_a_hint_is_refused() -> None:
    """The document advises against it; upstream then takes anything. Raises of a docstring is kept."""

    def untyped(query, limit=10):  # type: ignore[no-untyped-def]
        return query

    def told(a: int) -> int:
        """Count.

        Raises:
            ValueError: When a is invalid
        """
        return a

    with pytest.raises(SpecError, match="query: has no annotation; use str"):
        ToolSpec.from_function(untyped)
    assert "Raises:\n    ValueError: When a is invalid" in ToolSpec.from_function(told).docstring


def far_server() -> FastMCP[Any]:
    """Return a server with the tool ``add`` of the row, and others."""
    server: FastMCP[Any] = FastMCP("far")

    @server.tool
    def add(a: int, b: int = 1) -> int:
        """Add."""
        return a + b

    return server


def agent_server() -> FastMCP[Any]:
    """Return a server with tools that answer in texts, fail and wait."""
    server: FastMCP[Any] = FastMCP("agent")

    @server.tool(output_schema=None)
    def agent(name: str) -> str:
        """Tell the number of an agent."""
        if name != "bond":
            raise ValueError("nobody")
        return "007"

    @server.tool
    async def wait(seconds: float) -> None:
        """Wait."""
        BEGUN.set()
        try:
            await asyncio.sleep(seconds)
        finally:
            STOPPED.set()

    return server


BEGUN, STOPPED = threading.Event(), threading.Event()

CLIENTS: dict[str, Callable[[FastMCP[Any]], Any]] = {
    "fastmcp": FastMCPClient,
    "sdk": lambda server: MCPClient(server._mcp_server),
}


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("is_session", [False, True], ids=["client", "session"])
def test_ah_53_a_tool_of_a_connected_client_is_called_over_it(kind: str, is_session: bool) -> None:
    """Under its own schema, with exact values; what is bound is given in each call."""

    async def run() -> list[Any]:
        async with CLIENTS[kind](far_server()) as client:
            handle = await ToolSpec.from_client(client.session if is_session else client, "add")
            bound = handle.clone().bind("b", default="40")
            values = [await handle.acall(a="2"), await bound.acall(a=2), (await handle.aexec(a=1)).structured_content]
            wrong = await handle.aexec(a="x", c=1)
            return [handle.name, handle.description, handle.input_schema["required"], [*bound.params], *values, wrong]

    *found, wrong = asyncio.run(run())

    assert ["add", "Add.", ["a"], ["a"], 3, 42, {"result": 2}] == found
    assert (
        "agentheaven.add: a: expected int, got str (a string must be a decimal integer, such as 42); "
        "c: expected only a, b, got an unknown name of type int"
    ) == str(wrong.error)


def test_ah_53_a_tool_that_is_missing_is_told_with_those_that_are_there() -> None:
    """In the words of the row; something that is no client is told, too."""

    async def run() -> tuple[str, str, str]:
        client = FastMCPClient(far_server())
        async with client:
            with pytest.raises(ValueError) as missing:
                await ToolSpec.from_client(client, "zz")
        with pytest.raises(SpecError) as closed:
            await ToolSpec.from_client(client, "add")
        with pytest.raises(SpecError) as none:
            await ToolSpec.from_client("client", "add")
        return str(missing.value), str(closed.value), str(none.value)

    missing, closed, none = asyncio.run(run())

    assert "Tool 'zz' not found on server. Available tools: ['add']" == missing
    assert "client: expected a connected session or client of the MCP SDK or of FastMCP" == closed == none


def test_ah_53_results_and_errors_are_those_of_any_foreign_tool() -> None:
    """A text stays one; upstream made 7 of it."""

    async def run() -> tuple[Any, Any]:
        async with FastMCPClient(agent_server()) as client:
            handle = await ToolSpec.from_client(client, "agent")
            return await handle.acall(name="bond"), (await handle.aexec(name="smith")).error

    value, error = asyncio.run(run())

    assert "007" == value
    assert "agentheaven.agent: the server says: Error calling tool 'agent': nobody" == str(error)
    assert ("mcp.error", "model") == (error.code, error.retry)


def test_ah_53_who_waits_on_the_loop_of_the_client_is_refused_and_another_thread_is_not() -> None:
    """Nothing hangs; once the client is closed there is an error, too."""

    async def run() -> tuple[Any, Any, Any]:
        async with FastMCPClient(far_server()) as client:
            handle = (await ToolSpec.from_client(client, "add")).bind("b", default=2).binded
            waiting = handle.exec(a=1)
            value = await asyncio.to_thread(handle.call, a=1)
        return waiting.error, value, await asyncio.to_thread(handle.exec, a=1)

    waiting, value, closed = asyncio.run(run())

    assert (
        "agentheaven.add: the client's event loop is blocked by this call; use await with acall or aexec in that loop"
    ) == str(waiting)
    assert (3, "mcp.waiting", "host") == (value, waiting.code, waiting.retry)
    assert ("mcp.closed", "later") == (closed.error.code, closed.error.retry)


def test_ah_53_a_call_that_is_cancelled_is_cancelled_on_the_server() -> None:
    """Whoever awaited it goes on at once."""

    async def run() -> bool:
        async with FastMCPClient(agent_server()) as client:
            handle = await ToolSpec.from_client(client, "wait")
            call = asyncio.create_task(handle.acall(seconds=60))
            await asyncio.to_thread(BEGUN.wait, 10)
            call.cancel()
            return await asyncio.to_thread(STOPPED.wait, 10)

    assert asyncio.run(run())


def test_ah_53_in_an_engine_of_a_host_the_tool_needs_a_grant_and_an_approval() -> None:
    """As all foreign tools do; the engine calls it over the client."""

    async def run() -> tuple[Any, Any]:
        async with FastMCPClient(far_server()) as client:
            toolset = Toolset("far", ((await ToolSpec.from_client(client, "add", group="far")).tool,))
            policy = ExecutionPolicy(grants=("mcp:call:far/*",), preapproved=("far.add",))
            with Engine(plugins="none", toolsets=[toolset]) as poor, pytest.raises(PolicyError) as caught:
                await poor.acall("far.add", (1,))
            with Engine(plugins="none", toolsets=[toolset], policy=policy) as engine:
                return (caught.value.code, caught.value.retry), await engine.acall("far.add", ("1",))

    assert (("policy.approval", "host"), 2) == asyncio.run(run())


def test_ah_54_a_tool_of_this_process_is_available(search: ToolSpec) -> None:
    """It always can be called."""
    assert search.available()


def test_ah_55_a_function_with_the_parameters_of_the_tool(search: ToolSpec) -> None:
    """By position too; what does not fit it is a TypeError, as of any function."""
    function = search.to_function()

    assert ("search_database", search.docstring) == (function.__name__, function.__doc__)
    assert {"results": ["a", "a"]} == function("a", 2) == function("a", limit="2")
    with pytest.raises(TypeError):
        function()


def test_ah_55_what_must_be_given_after_what_need_not_is_given_by_name() -> None:
    """As Python asks of a signature."""

    def odd(a: int = 1, *, b: int, c: int = 3) -> int:
        return a + b + c

    function = ToolSpec.from_function(odd).to_function()

    assert "(a: int = 1, *, b: int, c: int = 3) -> int" == str(inspect.signature(function))
    assert {"a": int, "b": int, "c": int, "return": int} == typing.get_type_hints(function)
    assert 6 == function(1, b=2)


def test_ah_56_the_class_is_a_decorator() -> None:
    """With the options of from_function."""

    @ToolSpec(name="plus", description="Adds.")
    def add(a: int, b: int) -> int:
        return a + b

    assert isinstance(add, ToolSpec)
    assert ("plus", "Adds.", 3) == (add.name, add.description, add(a=1, b=2))


def test_ah_57_one_tool_of_a_registry_by_name() -> None:
    """An unknown one is a KeyError."""
    assert [1, "a", 10] == Base(1).toolspec("search")(query="a")
    with pytest.raises(KeyError):
        Base(1).toolspec("nope")


# Values: the contract goes before what pydantic lets pass


def outcome(annotation: Any, value: Any) -> Any:
    """Return what a tool gets for a value, or ArgumentError where it is refused."""
    try:
        return taking(annotation)(x=value)
    except ArgumentError:
        return ArgumentError


REFUSED = ArgumentError


@pytest.mark.parametrize(("value", "expected"), [("5", 5), (" 5 ", 5), ("2.0", 2), (5.0, 5), (True, REFUSED)], ids=repr)
def test_ah_59_whole_numbers_in_other_spellings(value: Any, expected: Any) -> None:
    """As in AgentHeaven, except for True, which is not a number."""
    assert expected == outcome(int, value)


@pytest.mark.parametrize("value", ["5.5", 2.5, "x", None, 10**30], ids=repr)
def test_ah_60_what_is_no_whole_number(value: Any) -> None:
    """As in AgentHeaven, and values outside 64 bits are rejected too."""
    assert REFUSED is outcome(int, value)


@pytest.mark.parametrize(
    ("value", "expected"), [("1e3", 1000.0), ("nan", REFUSED), (True, REFUSED), (1, 1.0)], ids=repr
)
def test_ah_61_numbers(value: Any, expected: Any) -> None:
    """As in AgentHeaven, except for numbers that are not finite."""
    assert expected == outcome(float, value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("true", True),
        ("1", True),
        (1, True),
        (0.0, False),
        ("yes", REFUSED),
        ("off", REFUSED),
        (2, REFUSED),
        ("", REFUSED),
    ],
    ids=repr,
)
def test_ah_62_truth_values(value: Any, expected: Any) -> None:
    """As in AgentHeaven, except for words such as yes."""
    assert expected == outcome(bool, value)


@pytest.mark.parametrize("value", [5, True, None, b"a"], ids=repr)
def test_ah_63_only_a_text_is_a_text(value: Any) -> None:
    """As in AgentHeaven, and bytes are rejected too."""
    assert REFUSED is outcome(str, value)


@pytest.mark.parametrize(
    ("value", "expected"), [((1, 2), [1, 2]), ("[1]", [1]), ({1}, REFUSED), ("a", REFUSED), ({}, REFUSED)], ids=repr
)
def test_ah_64_lists(value: Any, expected: Any) -> None:
    """The text of a JSON array is accepted; a set is rejected, because it has no order."""
    assert expected == outcome(list, value)


@pytest.mark.parametrize(("kind", "value", "expected"), [(int, ["1", "2"], [1, 2]), (str, [1], REFUSED)], ids=repr)
def test_ah_65_each_element_is_of_its_type(kind: type, value: Any, expected: Any) -> None:
    """As upstream."""
    assert expected == outcome(list[kind], value)  # type: ignore[valid-type]


@pytest.mark.parametrize(("value", "expected"), [([("a", 1)], REFUSED), ('{"a": 1}', {"a": 1})], ids=repr)
def test_ah_66_maps(value: Any, expected: Any) -> None:
    """Pairs are rejected, as in AgentHeaven; the text of a JSON object is accepted."""
    assert expected == outcome(dict, value)


def test_ah_67_literals_and_optional_values() -> None:
    """An enumeration and null stand in the schema."""

    def chosen(d: Literal["x", "y"], note: Optional[str] = None, e: Literal["z"] = "z") -> str:
        return d

    handle = ToolSpec.from_function(chosen)

    assert {"type": "string", "enum": ["x", "y"]} == handle.params["d"]
    assert {"type": ["string", "null"], "default": None} == handle.params["note"]
    assert {"type": "string", "enum": ["z"], "default": "z"} == handle.params["e"]
    assert {"type": ["string", "null"], "enum": ["z", None]} == handle.to_jsonschema()["parameters"]["properties"]["e"]
    with pytest.raises(ArgumentError):
        handle(d="z")


@dataclass
class Point:
    """A place."""

    x: int
    y: int = 0


def test_ah_68_a_class_is_a_nested_object() -> None:
    """A dataclass, an attrs class or a TypedDict, made from a map; pydantic's models are not ours to know."""

    def far(point: Point) -> int:
        return point.x + point.y

    handle = ToolSpec.from_function(far)

    assert {"type": "integer"} == handle.params["point"]["properties"]["x"]
    assert ["x"] == handle.params["point"]["required"]
    assert 3 == handle(point={"x": "3"})


async def where(city: str, ctx: FastMCPContext) -> str:
    """Tell which server asks."""
    return f"{city} by {ctx.fastmcp.name}"


def test_ah_69_the_context_of_fastmcp_is_hidden_and_still_given() -> None:
    """No caller sees it or sets it."""
    handle = ToolSpec.from_fastmcp(FastMCPTool.from_function(where))
    wrong = handle.exec(city="Rome", ctx=1)

    assert ["city"] == list(handle.params) == list(handle.to_mcp().input_schema["properties"])
    assert "Rome by neuroscript" == handle(city="Rome")
    assert "agentheaven.where: ctx: expected only city, got an unknown name of type int" == str(wrong.error)


def test_ah_70_bound_values_are_held_to_the_type() -> None:
    """They are repaired as arguments are, and refused as the host's fault."""

    def double(n: int) -> int:
        return 2 * n

    handle = ToolSpec.from_function(double).bind("n", default="4")

    assert 8 == handle()
    handle.state["n"] = "four"
    with pytest.raises(ToolFailed) as caught:
        handle()
    assert "host" == caught.value.retry
    assert "four" not in str(caught.value)


# In the house


def test_a_tool_that_needs_something_is_called_through_an_engine_of_its_host() -> None:
    """A handle grants nothing itself; the tool that it is goes into any engine, and its state counts there."""

    def read(rt: Runtime, path: str, user: str) -> str:
        return f"{user}: {rt.get_var('greeting')}"

    handle = ToolSpec.from_function(read, policy=ToolPolicy(capabilities=("fs:read:{path}",))).bind("user", default="a")
    with pytest.raises(PolicyError):
        handle(path="x")
    policy = ExecutionPolicy(grants=("fs:read:**",))
    with Engine(plugins="none", policy=policy, toolsets=[Toolset("mine", (handle.tool,))]) as engine:
        handle.state["user"] = "b"
        result = engine.call_named("agentheaven.read", {"path": "x"})

    assert "b: None" == result


def test_any_tool_of_the_house_gets_a_handle() -> None:
    """What an importer returns, for example."""
    from neuroscript import tool

    implementation = tool(user_action, group="users")
    handle = ToolSpec(implementation)

    assert isinstance(implementation, ToolImplementation)
    assert ("user_action", "users.user_action") == (handle.name, handle.tool.name)
    assert "User u performed: a" == handle(user_id="u", action="a")


def test_every_first_party_tool_gets_a_handle() -> None:
    """All that can be written of it is written; its code is Python, with the arguments of the tool in their order."""
    with Engine() as engine:
        handles = [ToolSpec(each) for each in engine.tools.values()]
    assert len(handles) > 100
    for handle in handles:
        made = ast.parse(handle.code).body[-1]
        names = [arg.name for arg in handle.tool.spec.args]

        assert isinstance(made, ast.FunctionDef)
        assert names == [each.arg for each in ast.walk(made.args) if isinstance(each, ast.arg)]
        assert handle.docstring == ast.get_docstring(made) or "Defaults to" in handle.docstring
        assert json.loads(json.dumps(handle.to_jsonschema()))["name"] == handle.name
        assert names == list(inspect.signature(handle.to_function()).parameters) == list(handle.params)


def test_only_a_tool_gets_a_handle() -> None:
    """A function is told where to go."""
    with pytest.raises(SpecError, match=r"write ToolSpec\.from_function"):
        ToolSpec(user_action)  # type: ignore[arg-type]


def test_names_keep_the_case_in_which_they_were_written() -> None:
    """Though the house has its own spelling."""

    def getUser(user: str) -> str:
        return user

    handle = ToolSpec.from_function(getUser)

    assert ("getUser", "agentheaven.getuser") == (handle.name, handle.tool.name)
    assert ("getUser(user)", "getUser") == (handle.signature(), handle.to_jsonschema()["name"])
    assert isinstance(handle.exec().error, CallError)
