"""Every snippet of AgentHeaven's ToolSpec document, unchanged except for `CHANGED`.

The document is beside the project, in ``../shared/seeds``; without it, these tests are skipped.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from neuroscript import ArgumentError
from neuroscript.interop.agentheaven import ToolRegistry, ToolSpec, reg_toolspec

SEED = Path(__file__).parents[3] / "shared" / "seeds" / "001_80124a1ca3d57db0.txt"
IMPORTS = "from neuroscript.interop.agentheaven import ToolSpec, ToolRegistry, reg_toolspec"
CHANGED: Mapping[str, list[tuple[str, str]]] = {
    "3.1": [("from ahvn.tool import ToolSpec", IMPORTS), ("[...]", "[query] * limit")],
    "3.2": [
        ("from ahvn.tool import ToolSpec", IMPORTS),
        ("{...}", '{"type": "object", "properties": {"query": {"type": "string"}}}'),
    ],
    "3.3": [("from ahvn.tool import ToolSpec", IMPORTS)],
    "4.1": [("from ahvn.tool import ToolSpec", IMPORTS)],
    "8.1": [("from ahvn.tool import ToolRegistry, reg_toolspec", IMPORTS)],
    "8.3": [
        ("output_schema={...}", 'output_schema={"type": "object", "properties": {"n": {"type": "integer"}}}'),
        ("examples=[...]", 'examples=[{"text": "a"}]'),
        ("(self, ...)", "(self, text: str)"),
    ],
    "10.4": [("(self, ...)", "(self, text: str)"), ("(self, ...)", "(self, text: str)")],
}
"""The text of the document and its replacement for each snippet; each pair changes one place."""


def search_database(query: str, limit: int = 10) -> dict[str, Any]:
    """Search the database for matching records.

    Args:
        query: The search query string
        limit: Maximum number of results to return
    """
    return {"results": [query] * limit}


def fetch(query: str, api_key: str) -> str:
    """Return what a key may read."""
    return f"{query} with {api_key}"


def visit(action: str, user_id: str, api_key: str, user_session: str) -> str:
    """Do something in a session."""
    return f"{user_id} {action} {api_key} {user_session}"


def presupposed() -> dict[str, Callable[[], dict[str, Any]]]:
    """Return for each snippet the names that it needs and that no snippet of its section defines."""

    def visited() -> ToolSpec:
        return ToolSpec.from_function(visit).bind("user_id", default="user123")

    return {
        "4.3": lambda: {"tool": ToolSpec.from_function(fetch)},
        "4.4": lambda: {"tool": visited()},
        "5.1": lambda: {"tool": ToolSpec.from_function(search_database)},
        "6.1": lambda: {"tool": ToolSpec.from_function(search_database)},
        "7.1": lambda: {"tool": ToolSpec.from_function(search_database)},
        "8.3": lambda: {"reg_toolspec": reg_toolspec},
        "9.1": lambda: {"tool": visited()},
        "10.1": lambda: {"Any": Any, "Dict": dict, "List": list},
        "10.3": lambda: {"tool": visited()},
        "10.4": lambda: {"ToolRegistry": ToolRegistry, "reg_toolspec": reg_toolspec},
    }


def snippets() -> dict[str, str]:
    """Return the Python of each section of the document, by number and in order."""
    text = SEED.read_text(encoding="utf-8")
    parts = re.findall(r"^### (\d+\.\d+)\.|^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    found: dict[str, str] = {}
    number = ""
    for heading, code in parts:
        number = heading or number
        if code:
            assert number not in found
            found[number] = code
    return found


def changed(number: str, code: str) -> str:
    """Return a snippet with its changes applied; each change must match."""
    for old, new in CHANGED.get(number, ()):
        assert old in code, (number, old)
        code = code.replace(old, new, 1)
    return code


def run(code: str, names: dict[str, Any]) -> None:
    """Run a snippet, in a coroutine if it awaits."""
    compiled = compile(code, "<seed>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if compiled.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(compiled, names))
    else:
        exec(compiled, names)


def check(number: str, names: dict[str, Any]) -> None:
    """Check that a snippet did what the document says."""
    for each in CHECKS[number]:
        if callable(each):
            each(names)
        else:
            assert eval(each, names), (number, each)


def section(number: str) -> dict[str, Any]:
    """Run the snippets of a section in order, check each one, and return the names that they define."""
    if not SEED.is_file():
        pytest.skip("the seeds are not beside the project")
    names: dict[str, Any] = {"__name__": "snippet"}
    for each, code in snippets().items():
        if each.partition(".")[0] == number:
            names.update(presupposed().get(each, dict)())
            run(changed(each, code), names)
            check(each, names)
    return names


def has_kb(names: dict[str, Any]) -> None:
    """Section 8.1 leaves the search and add methods to the reader."""
    names["MyKnowledgeBase"]._perform_search = lambda self, query, limit: [query] * limit
    names["MyKnowledgeBase"]._add_to_kb = lambda self, title, content: {title: content}

    assert ["search", "add_item"] == names["tool_names"] == list(names["tools"])
    assert ["a", "a"] == names["tools"]["search"](query="a", limit=2)
    assert {"a": "b"} == names["tools"]["add_item"](title="a", content="b")


def has_options(names: dict[str, Any]) -> None:
    """Section 8.3 marks a method, which is a tool of its class."""
    made = type("Made", (ToolRegistry,), {"my_tool": names["my_tool"]})()

    assert "Custom description" == made.toolspec("my_tool").description
    assert [{"text": "a"}] == made.toolspec("my_tool").examples
    assert made.toolspec("my_tool")(text="a") is None


def unbound(names: dict[str, Any]) -> None:
    """Section 4.4 says that it is required again."""
    with pytest.raises(ArgumentError, match="user_id: expected string, got nothing"):
        names["tool"](action="a", api_key="k", user_session="s")


def cloned(names: dict[str, Any]) -> None:
    """Section 9.1 says that the copy has its own state."""
    words = {"action": "did", "api_key": "k", "user_session": "s"}

    assert ("user123 did k s", "different_user did k s") == (names["tool"](**words), names["new_tool"](**words))


def bound(names: dict[str, Any]) -> None:
    """Section 10.3 binds a value that the host adds to the state later."""
    names["tool"].state = {"config": {"api_key": "k"}, "session": "s", "user_id": "u"}

    assert ["action"] == list(names["tool"].params)
    assert "u did k s" == names["tool"](action="did")


CHECKS: Mapping[str, list[str | Callable[[dict[str, Any]], None]]] = {
    "3.1": ["tool(query='a', limit=2) == {'results': ['a', 'a']}"],
    "3.2": ["tool.name == 'my_tool'", "list(tool.params) == ['query']"],
    "3.3": ["tool(a=3, b=4) == 7"],
    "4.1": ["result == 'User user123 performed: login'"],
    "4.2": ["result == 'User user456 performed: logout'"],
    "4.3": ["result == 'test with my_secret_key'"],
    "4.4": [unbound],
    "5.1": ["len(result['results']) == 10", "full_result.structured_content == {'result': {'results': ['test'] * 5}}"],
    "5.2": ["result == {'results': ['test'] * 5}", "full_result.structured_content == {'result': result}"],
    "6.1": [
        "input_schema['required'] == ['query']",
        "input_schema['properties']['limit']['default'] == 10",
        "list(params) == ['query', 'limit']",
        "list(output_schema['properties']) == ['result']",
    ],
    "6.2": [
        "docstring.startswith('Search the database')",
        "code.count('def search_database(') == 1",
        "signature == \"search_database(query='example', limit=10)\"",
    ],
    "6.3": ["prompt.startswith('search_database(')"],
    "7.1": ["type(mcp_tool) is MCPTool", "mcp_tool.input_schema == tool.input_schema"],
    "7.2": ["isinstance(fastmcp_tool, FastMCPTool)", "fastmcp_tool.parameters == tool.input_schema"],
    "7.3": [
        "list(schema) == ['type', 'name', 'description', 'parameters', 'strict']",
        "(schema['type'], schema['strict']) == ('function', True)",
    ],
    "7.4": ["schema['custom_field'] == 'value'"],
    "8.1": [has_kb],
    "8.3": [has_options],
    "9.1": [cloned],
    "9.2": ["list(binded.params) == ['action', 'api_key', 'user_session']"],
    "9.3": ["tool.state['user_id'] == 'user123'"],
    "10.1": ["search.__name__ == 'search'"],
    "10.2": ["my_tool.__name__ == 'my_tool'"],
    "10.3": [bound],
    "10.4": ["MyService().list_toolspecs() == ['tool1', 'tool2']"],
}
"""What holds after each snippet, as the document has it: an expression over its names, or a function that looks."""


@pytest.mark.parametrize("number", [str(each) for each in range(3, 11)])
def test_snippets_of_a_section_run_in_order(number: str) -> None:
    """The comments of each snippet are true."""
    assert len(section(number)) > 1


def test_every_snippet_runs() -> None:
    """Every change and every check has a snippet."""
    if not SEED.is_file():
        pytest.skip("the seeds are not beside the project")
    numbers = set(snippets())

    assert numbers == set(CHECKS)
    assert numbers >= set(CHANGED) | set(presupposed())
    assert {str(each) for each in range(3, 11)} == {each.partition(".")[0] for each in numbers}
