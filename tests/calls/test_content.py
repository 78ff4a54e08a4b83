"""Content that a tool returns: it is valid once it exists, and passes everything that a result passes, unchanged."""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.picture_tools import EVERY_BLOCK, PNG, pictures

from neuroscript import (
    ArgSpec,
    Content,
    EmbeddedResource,
    Engine,
    ExecutionPolicy,
    FlowRule,
    Host,
    Image,
    Isolation,
    Limits,
    MemoryAudit,
    Recording,
    Resource,
    ResourceLink,
    SpecError,
    Spill,
    Text,
    ToolCall,
    ToolPolicy,
    ToolResult,
    Toolset,
    ToolSpec,
    result_to_data,
    tool,
)
from neuroscript.coercion.content import MAX_BLOCKS, MAX_CONTENT_BYTES
from neuroscript.coercion.plain_data import to_plain
from neuroscript.formats.tagged_values import tag, untag
from neuroscript.interop.mcp.server.resources import contents
from neuroscript.interop.mcp.server.results import to_result
from neuroscript.isolation.frames import ProtocolError, parse_frame
from neuroscript.llm.wire.images import texts_and_images
from neuroscript.runtime.result_text import result_text
from neuroscript.testing.replay import replay
from neuroscript.workflow import load_trace, plan_of_toml, run, save_trace
from neuroscript.workflow.durable.encoding import text_of, value_of

DATA = "iVBORw0KGgoAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHw=="


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(toolsets=pictures, plugins="none") as made:
        yield made


# What content is


def test_content_comes_back_from_its_data() -> None:
    """With every block and every field; the data is new each time, so nobody can change the content."""
    data = EVERY_BLOCK.data

    assert Content.of_data(data) == EVERY_BLOCK
    assert Content.of_data(json.loads(json.dumps(EVERY_BLOCK.wire))) == EVERY_BLOCK
    data["content"][1]["_meta"]["k"].append(2)
    data["structuredContent"]["rows"].clear()
    assert Content.of_data(EVERY_BLOCK.data) == EVERY_BLOCK


def test_structured_content_may_have_every_exact_value() -> None:
    """JSON has the form that it has in any other result."""
    made = Content("a", structured={"data": b"a", "at": datetime.datetime(2026, 1, 2)})

    assert made.wire["structuredContent"] == {"data": {"$base64": "YQ=="}, "at": "2026-01-02T00:00:00"}
    assert value_of(text_of(made)) == made


def test_parts_of_content_are_read_only() -> None:
    given = {"audience": ["user"]}
    made = Text("a", annotations=given)
    given["audience"].append("assistant")

    assert made.annotations == {"audience": ["user"]}
    assert made.annotations is not None
    with pytest.raises(TypeError):
        made.annotations["audience"].append("assistant")


class Shout(str):
    """A string of a class of its own."""

    def __str__(self) -> str:
        return "LOUD"


def test_parts_of_content_are_exact() -> None:
    made = Content(Text(Shout("a")), Image(bytearray(b"GIF89a"), "image/gif"), structured={Shout("k"): (1, True)})

    assert made == Content("a", Image(b"GIF89a", "image/gif"), structured={"k": [1, True]})
    assert type(made.blocks[0].text) is str  # type: ignore[attr-defined]
    assert type(made.blocks[1].data) is bytes  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Content(b"a"), "Content: blocks[0] must be a string, Text, Image, Audio, ResourceLink or EmbeddedResource, not bytes"),  # type: ignore[arg-type]
        (lambda: Content("a", structured={1: object()}), "Content: structured must be plain data, not dict"),
        (lambda: Content("\ud800"), "Text: text must be valid Unicode"),
        (lambda: Image("a", 5), "Image: data must be bytes, not str; media_type must be a string, not int"),  # type: ignore[arg-type]
        (lambda: Image(b"a", None), "Image: media_type must be a string, not None"),  # type: ignore[arg-type]
        (lambda: EmbeddedResource("a:b", None), "EmbeddedResource: content must be a string, not None"),  # type: ignore[arg-type]
        (lambda: ResourceLink("a:b", "c", size=-1), "ResourceLink: size must be a non-negative integer, or None"),
        (lambda: Content.of_data({"content": [{"type": "video"}]}), "Content: a block has an unsupported content type"),
        (lambda: Content.of_data([]), "Content: expected a map with a list under content"),
        (
            lambda: Content.of_data({"content": [{"type": "image", "data": "?", "mimeType": "image/png"}]}),
            "Content: a block contains invalid base64",
        ),
        (lambda: Content(structured=[Content("a")]), "Content: structured content and metadata cannot contain content"),
        (
            lambda: Content(Text("a", meta={"k": Content("b")})),
            "Content: structured content and metadata cannot contain content",
        ),
        (lambda: Content(*["a"] * (MAX_BLOCKS + 1)), "Content: expected at most 10000 blocks, got 10001"),
        (
            lambda: Content(Image(bytes(MAX_CONTENT_BYTES), "image/png")),
            "Content: expected at most 33554432 bytes, got 33554469",
        ),
    ],
)  # fmt: skip
def test_invalid_content_is_refused_when_it_is_made(make: Any, problem: str) -> None:
    with pytest.raises(SpecError) as caught:
        make()

    assert str(caught.value) == problem


# The type of a result


def test_every_entry_point_returns_content(engine: Engine) -> None:
    call = ToolCall("pictures.every")

    assert engine.call("pictures.every") == EVERY_BLOCK
    assert asyncio.run(engine.acall("pictures.every")) == EVERY_BLOCK
    assert engine.execute(call).value == EVERY_BLOCK
    assert [each.text for each in engine.stream("pictures.each", [2])] == [
        "0\n[image/png, 40 bytes]",
        "1\n[image/png, 40 bytes]",
    ]
    assert engine.call("pictures.each", [2])[1].blocks[0] == Text("1")
    assert engine.call("pictures.echo", [[EVERY_BLOCK, {"a": EVERY_BLOCK}]]) == [EVERY_BLOCK, {"a": EVERY_BLOCK}]


def test_annotation_of_a_result() -> None:
    """Alone, in a union or as an item; an argument cannot be content, because no caller can write it."""

    def made(text: str) -> Content | str | None:
        """Return something."""

    found = tool(made, group="t").spec
    assert (str(found.return_type), found.returns) == ("any", None)

    def taken(value: Content) -> None:
        """Take something."""

    with pytest.raises(SpecError) as caught:
        tool(taken, group="t")
    hint = "Content is supported only as a result or item, alone or in a union; use Any"
    assert str(caught.value) == f"taken: value: {hint}"


def typed(value: Any, **spec: Any) -> Any:
    """Return the result of a tool with a declared type, or its error."""
    made = Toolset("t")
    made.add(ToolSpec("get", "t", **spec), lambda rt: value)
    with Engine(toolsets=made, plugins="none") as engine:
        result = engine.execute(ToolCall("t.get"))
    return result.value if result.ok else str(result.error)


def test_structured_content_has_the_declared_type() -> None:
    """It is coerced as a result is; the blocks stay."""
    keys = ArgSpec("result", "map", keys=(ArgSpec("n", "float"),))
    found = typed(Content("a", structured={"n": 1}), returns=keys)

    assert found == Content("a", structured={"n": 1.0})
    assert type(found.structured["n"]) is float
    assert typed(Content("a", structured=[1]), return_type="map") == "t.get: result: expected map, got list"
    assert typed(Content("a"), return_type="map") == "t.get: result: expected map, got Content"
    assert typed(Content("a"), return_type="string") == "t.get: result: expected string, got Content"


class Forged(Content):
    """Content of a class of its own."""


def test_only_content_itself_is_accepted() -> None:
    assert typed(Forged("a")) == "t.get: result: expected a JSON-like value, got Forged"


def test_content_counts_against_the_limit_of_results() -> None:
    policy = ExecutionPolicy(limits=Limits(result_bytes=500))
    with Engine(toolsets=pictures, plugins="none", policy=policy) as engine:
        assert engine.execute(ToolCall("pictures.say", ["a"])).ok
        result = engine.execute(ToolCall("pictures.say", ["a" * 500]))

    assert result.error is not None
    assert (result.error.code, result.error.retry) == ("limit.result_bytes", "host")


# What a model and a user read


def test_text_of_content() -> None:
    """Texts as they are, and a note for each other block."""
    assert EVERY_BLOCK.text.splitlines() == [
        "The plot:",
        "for people",
        "[image/png, 40 bytes]",
        "[audio/wav, 5 bytes]",
        "[A: shop:a.csv]",
        "grüße",
        "[note:2, unknown type, 2 bytes]",
    ]
    assert Content(Image(PNG, "image/png"), structured={"n": 1}).text == '{"n": 1}\n[image/png, 40 bytes]'


def test_structured_content_without_a_text_is_shown() -> None:
    """A reader of blocks sees it as JSON, in results, resources and models' pictures; it is never lost."""
    image = Image(PNG, "image/png")
    text, picture = {"type": "text", "text": "[1]"}, image.facts | {"data": DATA}
    made = ToolResult("", "t.get", Content(image, structured=[1]))

    assert to_result(made, ToolSpec("get", "t", return_type="any")) == {"content": [text, picture], "isError": False}
    assert [each.get("text", DATA) for each in contents("a:b", Resource("a:b"), made.value)] == ["[1]", DATA]
    assert texts_and_images(made) == ["[1]", image]
    assert to_result(
        attrs.evolve(made, value=Content(structured={"n": 1})), ToolSpec("get", "t", return_type="map")
    ) == {
        "content": [{"type": "text", "text": '{"n": 1}'}],
        "isError": False,
        "structuredContent": {"n": 1},
    }


def test_result_text_and_data(engine: Engine) -> None:
    result = engine.execute(ToolCall("pictures.every"))

    assert result_text(result) == EVERY_BLOCK.text
    assert result_to_data(result)["value"] == to_plain(EVERY_BLOCK) == EVERY_BLOCK.wire
    assert json.loads(json.dumps(EVERY_BLOCK.wire))["content"][2]["data"].startswith("iVBORw0KGgo")


# Secrets, labels and logs


def test_secrets_in_content_are_redacted() -> None:
    word = "sesame-42-and-open"
    with Engine(toolsets=pictures, plugins="none", host=Host(secrets={"word": word})) as engine:
        found = engine.execute(ToolCall("pictures.say", [word])).value

        assert word not in repr(found.data)
        assert found == Content.of_data(Content.of_data(found.data).data)
        assert found.blocks[0] == Text("[secret]")
        assert found.structured == {"[secret]": ["[secret]"]}


def test_redacted_content_may_exceed_the_limit() -> None:
    """The mark is longer than a short secret, and a call must not fail because of that."""
    full = Content("x" * (MAX_CONTENT_BYTES - 50))

    assert len(full.mapped(lambda value: f"{value}{'[secret]' * 10}" if value else value).text) > MAX_CONTENT_BYTES


def test_texts_of_content_carry_labels() -> None:
    reads, sends = ToolPolicy(sources=("private",), sinks=()), ToolPolicy(sources=(), sinks=("outside",))
    made = Toolset("t")
    made.add(
        ToolSpec("read", "t"), lambda rt: Content("x", EmbeddedResource("b:c", "the access code is 4471-beta")), reads
    )
    made.add(ToolSpec("send", "t", (ArgSpec("text", "string"),)), lambda rt, text: None, sends)
    policy = ExecutionPolicy(flow=[FlowRule(["private"], ["outside"], then="refuse")])
    with Engine(toolsets=made, plugins="none", policy=policy) as engine:
        assert engine.execute(ToolCall("t.send", ["the access code is 4471-beta"])).ok
        assert engine.execute(ToolCall("t.read")).labels == ("private",)
        refused = engine.execute(ToolCall("t.send", ["the access code is 4471-beta"]))
        passed = engine.execute(ToolCall("t.send", ["nothing of it"]))

    assert refused.error is not None
    assert (refused.error.code, refused.error.retry, passed.ok) == ("policy.flow", "host", True)


def test_audit_log_contains_nothing_of_content() -> None:
    log = MemoryAudit()
    with Engine(toolsets=pictures, plugins="none", audit=log) as engine:
        engine.call("pictures.echo", [EVERY_BLOCK])
        engine.call("pictures.echo", [EVERY_BLOCK])
        engine.call("pictures.echo", [Content("other")])

    records = [each for each in log.records if each.kind != "intent"]
    assert [each.types for each in records] == [(Content,)] * 3
    assert records[0].digest == records[1].digest != records[2].digest
    assert "The plot" not in repr(log.records)


def test_recorded_content_is_replayed(tmp_path: Path) -> None:
    made = Toolset("t")
    made.add(ToolSpec("get", "t"), lambda rt: EVERY_BLOCK, ToolPolicy(effects=("pure",)))
    path = tmp_path / "calls.jsonl"
    with Engine(toolsets=made, plugins="none", recording=Recording(path)) as engine:
        engine.call("t.get")
    with Engine(toolsets=made, plugins="none") as engine:
        done = replay(path, engine)

    assert "$content" in path.read_text()
    assert (done.run, done.ok) == (1, True)


# Files, plans, processes


def test_large_content_is_written_to_a_file(tmp_path: Path) -> None:
    """As a whole, while the model reads the beginning of its text."""
    spill = Spill(threshold_bytes=100, preview_chars=20)
    with Engine(toolsets=pictures, plugins="none", spill=spill, host=Host(sandbox_dir=tmp_path)) as engine:
        small = engine.execute(ToolCall("pictures.echo", [Content("a", Image(PNG, "image/png"))]))
        large = engine.execute(ToolCall("pictures.every"))
        items = engine.execute(ToolCall("pictures.each", [3]))

    assert small.spilled is None
    assert large.spilled is not None
    assert items.spilled is not None
    assert large.value.startswith("The plot:\nfor people\n[beginning of a result of ")
    assert Content.of_data(json.loads((tmp_path / large.spilled.path).read_text())) == EVERY_BLOCK
    lines = (tmp_path / items.spilled.path).read_text().splitlines()
    assert [Content.of_data(json.loads(each)).blocks[0] for each in lines] == [Text("0"), Text("1"), Text("2")]


PLAN = """
name = "draw"

[nodes.drawn]
tool = "pictures.every"

[nodes.passed]
tool = "pictures.echo"
inputs = { value = "${drawn}" }

[nodes.row]
tool = "pictures.echo"
inputs = { value = "${drawn.rows[1]}" }

[nodes.told]
tool = "pictures.echo"
inputs = { value = "It says: ${drawn}" }
"""


def test_content_passes_through_a_plan(engine: Engine, tmp_path: Path) -> None:
    """As a whole, as its text inside a string, or a part of its structured content; the trace stores it."""
    trace = run(engine, plan_of_toml(PLAN))
    save_trace(trace, tmp_path / "trace.json")

    assert {each.name: each.result for each in trace.nodes} == {
        "drawn": EVERY_BLOCK,
        "passed": EVERY_BLOCK,
        "row": 2.5,
        "told": f"It says: {EVERY_BLOCK.text}",
    }
    assert load_trace(tmp_path / "trace.json").nodes[0].result == EVERY_BLOCK


def test_isolated_tool_returns_content() -> None:
    """With each block, and as items and arguments."""
    policy = ExecutionPolicy(isolate=Isolation(tools=("pictures.*",)))
    with Engine(toolsets=pictures, plugins="none", policy=policy) as engine:
        assert engine.call("pictures.every") == EVERY_BLOCK
        assert engine.call("pictures.echo", [[EVERY_BLOCK]]) == [EVERY_BLOCK]
        assert [each.blocks[0] for each in engine.stream("pictures.each", [2])] == [Text("0"), Text("1")]


@pytest.mark.parametrize("data", ['{"content":[{"type":"video"}]}', "1", '{"content":[{"type":"text","text":5}]}'])
def test_worker_cannot_forge_content(data: str) -> None:
    with pytest.raises(ProtocolError):
        parse_frame(f'["value",{{"$content":{data}}}]'.encode(), [])


def test_stored_content_comes_back() -> None:
    """From the database of durable plans, and from the examples of a schema."""
    assert value_of(text_of([EVERY_BLOCK])) == [EVERY_BLOCK]
    assert untag(json.loads(json.dumps(tag({"a": EVERY_BLOCK})))) == {"a": EVERY_BLOCK}
