"""What the host and its clients learn from a server's definition of a tool, and what of it was accepted."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from neuroscript import (
    Content,
    Engine,
    ExecutionPolicy,
    SpecError,
    ToolResult,
    ToolSpec,
    Value,
    spec_from_data,
    spec_to_data,
)
from neuroscript.interop.fastmcp import to_fastmcp
from neuroscript.interop.mcp import from_mcp, serve, to_mcp, to_result
from neuroscript.interop.mcp.client.accepted_definitions import Definition, differences, read, write
from neuroscript.interop.mcp.client.connection import Unconnected
from neuroscript.interop.mcp.client.definition import Trust, single_tool
from neuroscript.interop.mcp.client.results import promise_of, value_of
from neuroscript.runtime.wire_names import WireNames

LONG = "Look.\n\n" + "\tmind this\n" * 200
TOOL: dict[str, Any] = {
    "name": "look-up",
    "title": "Look",
    "description": LONG,
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string", "description": LONG, "examples": ["tea"]}, "n": {"type": "integer"}},
        "required": ["text"],
    },
    "outputSchema": {"type": "object", "properties": {"found": {"type": "number", "x-unit": "kg"}}},
    "annotations": {"title": "Look", "openWorldHint": False, "destructiveHint": False},
    "icons": [{"src": "https://shop.example/a.png"}],
    "_meta": {"shop/rank": [1, None]},
}


def tool_of(belief: Trust, **changed: Any) -> Any:
    return single_tool(Definition.of_data({**TOOL, **changed}), "shop", Unconnected(), belief)


def listed(belief: Trust, **changed: Any) -> dict[str, Any]:
    """Return what clients see of a server's tool under its bare name."""
    tool = tool_of(belief, **changed)
    (data,) = to_mcp([tool], names=WireNames.of([tool], "bare"))
    found: dict[str, Any] = json.loads(json.dumps(data))
    return found


def test_accepted_definition_is_passed_on_whole() -> None:
    """With annotations if the host trusts them."""
    assert listed(Trust(annotations=True, description_chars=None)) == TOOL
    assert tool_of(Trust(description_chars=None)).spec.description == LONG


def test_tool_without_a_title_or_annotations_stays_without() -> None:
    bare = dict.fromkeys(("title", "description", "annotations", "icons", "_meta", "outputSchema"))

    assert listed(Trust(annotations=True, description_chars=None), **bare).keys() == {"name", "inputSchema"}
    titled = listed(Trust(annotations=True, description_chars=None), description=None)
    assert (titled["title"], "description" in titled) == ("Look", False)


def test_annotations_of_other_servers_are_those_of_the_policy() -> None:
    """They are the safe ones, because the annotations are claims that nobody has checked."""
    hints = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}

    assert listed(Trust(description_chars=None))["annotations"] == hints


def test_definition_that_was_not_accepted_is_limited() -> None:
    """Each description is on one line of at most 1,000 characters, and unknown keywords are left out."""
    data = listed(Trust())

    assert (len(data["description"]), "\n" in data["description"]) == (1000, False)
    text = data["inputSchema"]["properties"]["text"]
    assert (len(text["description"]), text.keys()) == (1000, {"type", "description"})
    assert data["outputSchema"]["properties"]["found"] == {"type": "number"}
    assert len(listed(Trust(description_chars=40))["description"]) == 40


def test_control_characters_are_escaped() -> None:
    data = listed(Trust(description_chars=None), description="a\x1b[2J\u202eb\r\nc\td", title="x\x07")

    assert (data["description"], data["title"]) == ("a\\x1b[2J\\u202eb\nc\td", "x\\x07")
    hints = listed(Trust(annotations=True), annotations={"title": "x\x1b[2J", "readOnlyHint": True})["annotations"]
    assert hints == {"title": "x\\x1b[2J", "readOnlyHint": True}


def test_hidden_argument_is_not_listed() -> None:
    """The schema is then that of the remaining arguments."""
    hidden = tool_of(Trust()).with_injected(n=Value(3))
    (data,) = to_mcp([hidden])

    assert [*data["inputSchema"]["properties"]] == ["text"]


def test_definition_is_part_of_the_spec() -> None:
    spec = tool_of(Trust()).spec

    assert spec_from_data(spec_to_data(spec)) == spec
    assert to_mcp([spec_from_data(spec_to_data(spec))]) == to_mcp([spec])
    for text, problem in (
        ("[]", "definition must be the JSON text of an object"),
        ("{", "definition: line 1, column 2 is not JSON"),
    ):
        with pytest.raises(SpecError) as caught:
            attrs.evolve(spec, definition=text)
        assert caught.value.problems == (problem,)


# Files of accepted definitions


def old_file(path: Path) -> Path:
    """Write a file of the first format, in which a definition has no icons and no metadata."""
    definition = {"name": "add", "description": "Add.", "inputSchema": {"type": "object"}}
    data = {
        "mcp": 1,
        "tools": {
            "add": {
                "digest": hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest(),
                "definition": definition,
            }
        },
    }
    path.write_text(json.dumps(data))
    return path


def test_file_of_the_first_format_accepts_what_it_contains(tmp_path: Path) -> None:
    """What it does not contain was not reviewed, so it changes nothing, until the host accepts the definitions again."""
    old = read(old_file(tmp_path / "old.json"))
    more = {"name": "add", "description": "Add.", "inputSchema": {"type": "object"}, "_meta": {"a": 1}}
    new = {"add": Definition.of_data(more)}

    assert old["add"].accepts(new["add"])
    assert differences(old, new) == ()
    assert not old["add"].accepts(Definition.of_data({**more, "description": "Subtract."}))
    write(tmp_path / "new.json", new)
    accepted = read(tmp_path / "new.json")["add"]
    assert accepted.accepts(new["add"])
    assert not accepted.accepts(Definition.of_data({**more, "_meta": {"a": 2}}))
    assert [str(each) for each in differences({"add": accepted}, {"add": old["add"]})] == []
    changed = {"add": Definition.of_data({**more, "icons": [{"src": "x:y"}], "_meta": {}})}
    assert [str(each) for each in differences({"add": accepted}, changed)] == ["add has changed: icons, _meta"]


@pytest.mark.parametrize(("key", "value"), [("icons", {}), ("_meta", []), ("execution", "required")])
def test_new_parts_of_a_definition_are_checked(key: str, value: Any) -> None:
    with pytest.raises(SpecError) as caught:
        Definition.of_data({**TOOL, key: value})

    assert caught.value.problems == (f"{key}: expected a {'list' if key == 'icons' else 'JSON object'}",)


# Results


FOUND = promise_of({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
WRAPPED = promise_of({"type": "object", "properties": {"result": {"type": "array"}}, "required": ["result"]})


@pytest.mark.parametrize(
    ("promise", "structured", "texts", "is_plain"),
    [
        (FOUND, {"n": 1}, ['{\n "n": 1\n}'], True),
        (FOUND, {"n": 1}, [], True),
        (FOUND, {"n": 1}, ["one"], False),
        (FOUND, {"n": 1}, ['{"n": 1}', "one"], False),
        (WRAPPED, {"result": ["a", 2]}, ["a", "2"], True),
        (WRAPPED, {"result": ["a", 2]}, ['["a", 2]'], True),
        (WRAPPED, {"result": ["a", 2]}, ["a"], False),
        (promise_of(None), {"n": 1}, ['{"n": 1}'], True),
    ],
)
def test_text_that_repeats_structured_content_is_left_out(
    promise: Any, structured: dict[str, Any], texts: list[str], is_plain: bool
) -> None:
    """Any other block is not: the value is then content, with the structured content."""
    blocks = [{"type": "text", "text": each} for each in texts]
    value = value_of({"content": blocks, "structuredContent": structured}, promise)
    plain = structured.get("result", structured)

    assert value == (plain if is_plain else Content(*texts, structured=plain))


def test_metadata_of_a_result_stays() -> None:
    """That of the protocol describes a connection, and a mark of FastMCP is set again where its schema says so."""
    text = [{"type": "text", "text": "a"}]

    assert value_of({"content": text, "_meta": {"took": 3}}, promise_of(None)) == Content("a", meta={"took": 3})
    assert value_of({"content": text, "_meta": {"io.modelcontextprotocol/serverInfo": {}}}, promise_of(None)) == "a"
    marked = {"content": text, "structuredContent": {"result": ["a"]}, "_meta": {"fastmcp": {"wrap_result": True}}}
    assert value_of(marked, WRAPPED) == ["a"]


def test_content_of_our_own_tool_is_sent_block_by_block() -> None:
    """Beside text items of a stream too."""
    spec = ToolSpec("plot", "t")
    items = ToolResult("", "t.plot", ["one", Content("two", structured={"n": 1}), 3])

    assert [each["text"] for each in to_result(items, spec)["content"]] == ["one", "two", "3"]
    single = to_result(ToolResult("", "t.plot", Content("two", structured={"n": 1}, meta={"a": 1})), spec)
    assert single == {
        "content": [{"type": "text", "text": "two"}],
        "isError": False,
        "structuredContent": {"n": 1},
        "_meta": {"a": 1},
    }
    typed = ToolSpec("plot", "t", return_type="slice_int")
    assert to_result(ToolResult("", "t.plot", Content("two", structured=[1])), typed)["structuredContent"] == {
        "result": [1]
    }


def test_number_of_a_server_is_sent_on_as_it_wrote_it() -> None:
    """Its schema says ``number``, so it is a float here; JSON has no difference, but a text has one."""
    spec = tool_of(Trust()).spec
    value = {"found": 33.0, "more": [1.5, 1e300, {"deep": -2.0}], "flag": True}
    whole = {"found": 33, "more": [1.5, 1e300, {"deep": -2}], "flag": True}

    sent = to_result(ToolResult("", "shop.look_up", value), spec)
    content = to_result(ToolResult("", "shop.look_up", Content("a", structured=value)), spec)

    assert sent["content"] == [{"type": "text", "text": json.dumps(whole)}]
    assert repr(sent["structuredContent"]) == repr(content["structuredContent"]) == repr(whole)
    own = ToolSpec("get", "t", return_type="map")
    assert repr(to_result(ToolResult("", "t.get", value), own)["structuredContent"]) == repr(value)


# Names


def test_bare_names() -> None:
    """A tool of a server has its name there; tools with equal names have their groups."""
    tool = tool_of(Trust())
    others = [ToolSpec("add", "math"), ToolSpec("add", "list"), ToolSpec("len", "str"), ToolSpec("x", "len")]

    assert WireNames.of([tool, *others], "bare").wires == {
        "shop.look_up": "look-up",
        "math.add": "math__add",
        "list.add": "list__add",
        "str.len": "len",
        "len.x": "x",
    }
    odd = tool_of(Trust(), name="look up!")
    assert WireNames.of([odd], "bare").wires == {"shop.look_up": "look_up"}
    taken = tool_of(Trust(), name="str__len")
    assert WireNames.of([taken, ToolSpec("len", "str"), ToolSpec("len", "list")], "bare").tool("str__len") == "str.len"


def test_exported_tool_is_the_tool_of_the_server() -> None:
    """In FastMCP too."""
    with Engine(plugins="none", policy=ExecutionPolicy(grants=["mcp:call:**"])) as engine:
        engine.register(tool_of(Trust(trusted=True, annotations=True, description_chars=None)))
        (exported,) = to_fastmcp(engine, names="bare")

    data = exported.to_mcp_tool().model_dump(mode="json", by_alias=True, exclude_none=True)
    data["_meta"].pop("fastmcp", None)
    assert data == TOOL


def test_unknown_style_of_names_is_refused() -> None:
    with Engine(plugins="none") as engine, pytest.raises(SpecError) as caught:
        serve(engine, names="short")  # type: ignore[arg-type]

    assert str(caught.value) == "serve: names must be 'grouped' or 'bare'"


def test_limit_of_descriptions_is_a_positive_number() -> None:
    with pytest.raises(SpecError) as caught:
        from_mcp(["server"], group="shop", description_chars=0)

    assert caught.value.problems == ("description_chars: expected a positive integer",)
