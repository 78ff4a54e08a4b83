"""Every snippet of neurosurfer's documents of ToolSpec and BaseTool, unchanged except for `CHANGED`.

The documents are beside the project, in ``../shared/seeds``; without them, these tests are skipped. That of BaseTool
has no fences, so `LINES` contains the lines of its snippets.
"""

from __future__ import annotations

import ast
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.interop.neurosurfer_tools import EchoTool, engine_of

from neuroscript.interop.neurosurfer import BaseTool, ToolParam, ToolResponse, ToolReturn, ToolSpec

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
DOCUMENTS = {"spec": SEEDS / "000_08dd6e51017637ef.txt", "tool": SEEDS / "002_61b3b34d3d445ee5.txt"}
LINES = {
    "tool 1": (31, 37),
    "tool 2": (41, 51),
    "tool 3": (77, 81),
    "tool 4": (87, 89),
    "tool 5": (98, 113),
    "tool 6": (117, 134),
    "tool 7": (138, 153),
}
"""The first and the last line of each snippet of the document of BaseTool."""

SPEC = ("from neurosurfer.tools.tool_spec import", "from neuroscript.interop.neurosurfer.tool_spec import")
TOOL = ("from neurosurfer.tools.base_tool import", "from neuroscript.interop.neurosurfer.base_tool import")
CHANGED: Mapping[str, list[tuple[str, str]]] = {
    "spec 1": [SPEC],
    "spec 2": [SPEC],
    "spec 3": [SPEC],
    "spec 5": [TOOL, SPEC],
    "tool 1": [TOOL],
    "tool 2": [TOOL],
    "tool 5": [TOOL, SPEC],
}
"""The text of the document and its replacement for each snippet; each pair changes one import."""

SUPPLIED: Mapping[str, Mapping[str, Any]] = {
    "spec 4": {"tool": EchoTool(), "raw_inputs": {"text": "a"}, "runtime_ctx": {"llm": None}},
    "tool 3": {"ToolSpec": ToolSpec},
    "tool 4": {"abstractmethod": abstractmethod, "Any": Any, "ToolResponse": ToolResponse},
}
"""By snippet the names that its document leaves to its reader; no other is given."""

RAISING = {"spec 6": "Input 'text' expected string, got int"}
"""Snippets of which the document says that they raise a ValueError, and what it says."""


def snippets(document: str) -> dict[str, str]:
    """Return the Python of a document, by number and in order."""
    text = DOCUMENTS[document].read_text(encoding="utf-8")
    if document == "spec":
        found = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        return {f"spec {number}": code for number, code in enumerate(found, 1)}
    lines = text.splitlines(keepends=True)
    return {number: "".join(lines[first - 1 : last]) for number, (first, last) in LINES.items()}


def changed(number: str, code: str) -> str:
    """Return a snippet with its changes applied; each change must match."""
    for old, new in CHANGED.get(number, ()):
        assert code.count(old) == 1, (number, old)
        code = code.replace(old, new)
    return code


def run(code: str, names: dict[str, Any]) -> Any:
    """Run a snippet, and return the value of its last expression, or None."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<seed>", "exec", dont_inherit=True), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "<seed>", "eval", dont_inherit=True), names)


def is_valid(names: dict[str, Any], value: Any) -> bool:
    """The document's calculator has three inputs, and is valid."""
    return names["spec"].validate() is None and ["operation", "a", "b"] == [each.name for each in names["spec"].inputs]


def echoes(names: dict[str, Any], value: Any) -> bool:
    """The tool works alone and in an engine."""
    with engine_of(names["EchoTool"]()) as engine:
        called = engine.call("neurosurfer.echo", ("hi",))
    return called == "hi" and names["EchoTool"]()(text="hi") == ToolResponse(True, "hi")


def streams(names: dict[str, Any], value: Any) -> bool:
    """The answer is final, and its observation yields the lines."""
    return value.final_answer and list(value.observation) == ["Step 1...", "Step 2...", "Done."]


def looks_at_the_spec(names: dict[str, Any], value: Any) -> bool:
    """The constructor in the document raises the same error as ours."""
    own = type("YourTool", (), {"__init__": names["__init__"]})
    ours = type("YourTool", (BaseTool,), {"__call__": EchoTool.__call__})
    raised = []
    for cls in (own, ours):
        with pytest.raises(TypeError) as caught:
            cls()
        raised.append(str(caught.value))
    return raised == ["YourTool must define a ToolSpec 'spec'."] * 2


def is_abstract(names: dict[str, Any], value: Any) -> bool:
    """A class with the method in the document is abstract, and so is ours without one."""
    own = type("Own", (ABC,), {"__call__": names["__call__"]})
    for cls in (own, type("NoCall", (BaseTool,), {"spec": EchoTool.spec})):
        with pytest.raises(TypeError, match="abstract"):
            cls()
    return True


def queries(names: dict[str, Any], value: Any) -> bool:
    """With a database engine it returns rows, without one an error message; a limit applies as its text says."""
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.row_factory = sqlite3.Row
    database.execute("create table users (id integer, name text)")
    database.executemany("insert into users values (?, ?)", [(1, "ada"), (2, "bob"), (3, "eve")])
    tool, query = names["SQLQueryTool"](), "select id, name from users order by id"
    with engine_of(tool) as engine:
        without = engine.call("neurosurfer.sql_query", (query,))
    with engine_of(tool, context={"db_engine": database}) as engine:
        some = engine.call("neurosurfer.sql_query", (query, "2"))
        everything = engine.call_named("neurosurfer.sql_query", {"query": query})
    database.close()
    assert {"rows": [{"id": 1, "name": "ada"}, {"id": 2, "name": "bob"}]} == some
    return without == "DB engine not available." and len(everything["rows"]) == 3


def gives_lines(names: dict[str, Any], value: Any) -> bool:
    """The tool yields its lines one by one."""
    with engine_of(names["StreamLinesTool"]()) as engine:
        items = engine.stream("neurosurfer.stream_lines", (["a", "b"],))
        return next(items) == "a" and list(items) == ["b"]


CHECKS: Mapping[str, Callable[[dict[str, Any], Any], bool]] = {
    "spec 1": lambda _, value: value == ToolParam("query", "string", "SQL to execute"),
    "spec 2": lambda _, value: value == ToolReturn("object", "Query results as a JSON object"),
    "spec 3": is_valid,
    "spec 4": lambda names, _: (names["validated"], names["result"]) == ({"text": "a"}, ToolResponse(True, "a")),
    "spec 5": echoes,
    "spec 6": lambda _, value: value == "raised",
    "tool 1": lambda _, value: value.extras == {"row_ids": [1, 2, 3]} and not value.final_answer,
    "tool 2": streams,
    "tool 3": looks_at_the_spec,
    "tool 4": is_abstract,
    "tool 5": echoes,
    "tool 6": queries,
    "tool 7": gives_lines,
}
"""What holds after each snippet, as the document has it."""


def present() -> None:
    """Skip the test if the documents are missing."""
    if not all(path.is_file() for path in DOCUMENTS.values()):
        pytest.skip("the seeds are not beside the project")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_snippets_of_a_document_run_in_order(document: str) -> None:
    """The statements of each snippet are true."""
    present()
    names: dict[str, Any] = {"__name__": "snippet"}
    for number, code in snippets(document).items():
        names.update(SUPPLIED.get(number, {}))
        if number in RAISING:
            with pytest.raises(ValueError) as caught:
                run(changed(number, code), names)
            assert RAISING[number] == str(caught.value)
            value = "raised"
        else:
            value = run(changed(number, code), names)
        assert CHECKS[number](names, value), number


def test_every_snippet_runs() -> None:
    """All Python of the documents is in a snippet, and every table entry refers to one."""
    present()
    numbers = {number for document in DOCUMENTS for number in snippets(document)}
    lines = DOCUMENTS["tool"].read_text(encoding="utf-8").splitlines()
    code = re.compile(r"(from|import|class|def|@abstractmethod|ToolResponse\()\b ?[a-zA-Z_]*|ToolResponse\(")
    outside = [
        line
        for number, line in enumerate(lines, 1)
        if code.match(line) and not any(first <= number <= last for first, last in LINES.values())
    ]

    assert numbers == set(CHECKS)
    assert numbers >= set(CHANGED) | set(SUPPLIED) | set(RAISING)
    assert [] == outside
