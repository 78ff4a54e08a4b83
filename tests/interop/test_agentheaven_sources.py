"""Functions, code, FastMCP tools and MCP definitions as a ToolSpec of AgentHeaven."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import os
from typing import Any, Optional

import pytest
from fastmcp import FastMCP
from fastmcp.tools import Tool as FastMCPTool
from mcp_types import Tool as MCPTool
from tests.interop.agentheaven_tools import CODE, make_tool, search_database, user_action
from tests.interop.agentheaven_tools import search as search

from neuroscript import (
    CallError,
    Engine,
    ExecutionPolicy,
    PolicyError,
    Runtime,
    SpecError,
    ToolFailed,
    ToolImplementation,
    ToolPolicy,
    Toolset,
)
from neuroscript.interop.agentheaven import ToolSpec

# The tool and its sources


def test_ah_01_public_names_are_in_one_module() -> None:
    """The import line of every snippet works with another module name."""
    from neuroscript.interop import agentheaven

    assert ["ToolRegistry", "ToolResult", "ToolSpec", "reg_toolspec"] == sorted(agentheaven.__all__)


def test_ah_02_fastmcp_tool_has_state_bindings_and_examples() -> None:
    """It runs in this process; bound parameters are not arguments."""
    handle = ToolSpec.from_fastmcp(FastMCPTool.from_function(user_action))
    handle.examples.append({"action": "login"})
    handle.bind("user_id", "session.user", default="user123")

    assert ("user_action", "Perform an action for a user.") == (handle.name, handle.description)
    assert {"session": {"user": "user123"}} == handle.state
    assert {"user_id": "session.user"} == handle.binds
    assert [{"action": "login"}] == handle.clone().examples
    assert "User user123 performed: login" == handle(action="login")
    assert {"result": "User user123 performed: logout"} == handle.exec(action="logout").structured_content


def test_ah_02_fastmcp_tool_needs_a_grant_and_an_approval_in_an_engine() -> None:
    """A direct call of the handle is the choice of its caller; a call of a model is not."""
    handle = ToolSpec.from_fastmcp(FastMCPTool.from_function(user_action))

    with Engine(plugins="none", toolsets=[Toolset("agentheaven", (handle.tool,))]) as engine:
        with pytest.raises(PolicyError) as caught:
            engine.call_named("agentheaven.user_action", {"user_id": "u", "action": "a"})

    assert ("policy.approval", "host") == (caught.value.code, caught.value.retry)
    assert ("mcp:call:agentheaven/user_action",) == handle.tool.policy.capabilities
    assert handle.tool.policy.requires_approval
    assert "User u performed: a" == handle.clone()(user_id="u", action="a")


def test_ah_02_server_is_not_a_tool() -> None:
    """The error names the function for servers."""
    with pytest.raises(SpecError) as caught:
        ToolSpec.from_fastmcp(FastMCP("x"))

    expected = "ToolSpec: expected one tool; use neuroscript.interop.fastmcp.from_fastmcp for a server"
    assert expected == str(caught.value)


def test_ah_03_function_becomes_a_tool(search: ToolSpec) -> None:
    """The docstring is parsed by default."""
    assert ("search_database", []) == (search.name, search.examples)
    assert {"results": ["a", "a"]} == search(query="a", limit=2)


def test_ah_03_unparsed_docstring_is_the_description() -> None:
    """The whole docstring, unchanged."""
    handle = ToolSpec.from_function(search_database, parse_docstring=False)

    assert handle.description.startswith("Search the database for matching records.\n\nArgs:\n")
    assert {"type": "string"} == handle.params["query"]


def test_ah_04_type_hints_and_docstring_make_the_schema(search: ToolSpec) -> None:
    """Types and defaults come from annotations, descriptions from the docstring."""
    assert "Search the database for matching records." == search.description
    assert {
        "query": {"type": "string", "description": "The search query string"},
        "limit": {"type": "integer", "description": "Maximum number of results to return", "default": 10},
    } == search.params


def test_ah_04_a_docstring_is_never_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A default in the docstring is text; upstream executes it."""
    monkeypatch.delenv("RAN", raising=False)

    def careless(text: str = "a") -> str:
        """Echo.

        Args:
            text: A string. Defaults to __import__('os').environ.setdefault('RAN', '1').
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
    """The ``self`` of a method is not an argument."""
    method = ToolSpec.from_function(Counter(5).after)

    assert (["step"], 7) == (list(method.params), method(step=2))
    assert 3 == ToolSpec.from_function(Counter(5))(step=2)
    assert 7 == ToolSpec.from_function(functools.partial(Counter.after, Counter(5)), name="after")(step=2)


def test_ah_05_decorated_function_becomes_a_tool() -> None:
    """With the parameters and defaults of the wrapped function, including keyword-only ones."""

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
def test_ah_04_bare_container_has_items_of_any_type(annotation: Any, kind: str) -> None:
    """As in the document; items of a list of maps are maps with any values."""
    assert kind == make_tool(annotation).tool.spec.args[0].type


def test_ah_04_typing_names_are_bare_containers() -> None:
    """As in older code."""
    code = "from typing import Dict, List\ndef f(a: List, b: Dict) -> List:\n    return [a, b]\n"

    assert [[1], {"c": 2}] == ToolSpec.from_code(code)(a=[1], b={"c": 2})


def test_ah_05_variadic_and_unnamed_functions_are_rejected() -> None:
    """A handle passes known arguments by name; a lambda needs an explicit name."""

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


def test_ah_06_name_description_and_output_schema_can_be_set() -> None:
    """An output schema does not affect calls."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    handle = ToolSpec.from_function(Counter(5).after, name="add", description="Adds.", output_schema=schema)

    assert ("add", "Adds.", schema) == (handle.name, handle.description, handle.output_schema)
    assert 7 == handle(step=2)


def test_ah_07_from_mcp_accepts_a_tool_definition() -> None:
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
    """Its only function is found, and may be recursive."""
    assert 120 == ToolSpec.from_code(CODE)(n=5)
    assert 6 == ToolSpec.from_code(CODE + "\ndef g(n: int) -> int:\n    return f(n)\n", func_name="g")(n=3)
    assert 4 == ToolSpec.from_code("def h(n: int) -> int:\n    return n + ONE\n", env={"ONE": 1})(n=3)


@pytest.mark.parametrize(
    ("code", "func_name"),
    [("x = 1", None), ("def f() -> None: ...\ndef g() -> None: ...", None), (CODE, "zz")],
    ids=["none", "two", "another"],
)
def test_ah_08_code_without_exactly_one_matching_function_is_rejected(code: str, func_name: str | None) -> None:
    """No function, several, or none with that name."""
    with pytest.raises(SpecError, match="callable"):
        ToolSpec.from_code(code, func_name=func_name)


# Tools of any source


def test_tool_with_needs_is_called_through_an_engine() -> None:
    """A handle grants nothing; its tool can be added to any engine, where its state applies."""

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


def test_every_tool_implementation_gets_a_handle() -> None:
    """For example the result of an importer."""
    from neuroscript import tool

    implementation = tool(user_action, group="users")
    handle = ToolSpec(implementation)

    assert isinstance(implementation, ToolImplementation)
    assert ("user_action", "users.user_action") == (handle.name, handle.tool.name)
    assert "User u performed: a" == handle(user_id="u", action="a")


def test_every_first_party_tool_gets_a_handle() -> None:
    """Every export works; its code is valid Python with the arguments of the tool in order."""
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
    """The error for a function names the right class method."""
    with pytest.raises(SpecError, match=r"use ToolSpec\.from_function"):
        ToolSpec(user_action)  # type: ignore[arg-type]


def test_name_of_a_handle_keeps_its_case() -> None:
    """The canonical name of the tool is in lower case."""

    def getUser(user: str) -> str:
        return user

    handle = ToolSpec.from_function(getUser)

    assert ("getUser", "agentheaven.getuser") == (handle.name, handle.tool.name)
    assert ("getUser(user)", "getUser") == (handle.signature(), handle.to_jsonschema()["name"])
    assert isinstance(handle.exec().error, CallError)
