"""Tools and results in the format of MCP: plain data that the SDK and every client accept."""

from __future__ import annotations

import subprocess
import sys
from array import array
from base64 import b64encode
from typing import Any

import jsonschema
import pytest
from mcp_types import CallToolResult, Tool
from tests.interop.mcp_plugin import PICTURE

from neuroscript import (
    ArgSpec,
    ArgType,
    Engine,
    ToolCall,
    ToolImplementation,
    ToolPolicy,
    ToolResult,
    ToolSpec,
)
from neuroscript._imports import install_hint
from neuroscript.interop.mcp import to_mcp, to_result
from neuroscript.runtime.wire_names import WireNames


def test_the_sdk_accepts_each_tool() -> None:
    """All tools of the standard library, with object schemas only."""
    with Engine() as engine:
        tools = to_mcp(engine.tools.values())

    for tool in tools:
        assert Tool.model_validate(tool).name == tool["name"]
        assert tool["inputSchema"]["type"] == "object"
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        if "outputSchema" in tool:
            assert tool["outputSchema"]["type"] == "object"
            jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])
    assert len(tools) > 100


def test_a_tool_is_described_completely() -> None:
    """In the terms of the protocol, with a name that the APIs of models accept."""
    spec = ToolSpec(
        "add", "math", (ArgSpec("a", ArgType.INT),), return_type=ArgType.INT, description="Add.", when_to_use="To add."
    )
    tool = ToolImplementation(spec, lambda rt, a: a, ToolPolicy(effects=("pure",)))

    assert to_mcp([tool]) == [
        {
            "name": "math__add",
            "title": "math.add",
            "description": "Add. To add.",
            "inputSchema": {
                "type": "object",
                "description": "Add.",
                "properties": {"a": {"type": "integer"}},
                "required": ["a"],
                "additionalProperties": False,
            },
            "outputSchema": {
                "type": "object",
                "properties": {"result": {"type": "integer"}},
                "required": ["result"],
                "additionalProperties": False,
            },
            "annotations": {
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            },
        }
    ]


def test_the_default_of_a_secret_is_hidden() -> None:
    """A client would show it to a model, and log it."""
    spec = ToolSpec("ping", "net", (ArgSpec("key", ArgType.STRING, secret=True, default="sesame"),))

    assert to_mcp([spec])[0]["inputSchema"]["properties"] == {"key": {"type": ["string", "null"], "writeOnly": True}}


@pytest.mark.parametrize(
    ("effects", "hints"),
    [
        ((), None),
        (("reads",), (True, False, False, False)),
        (("reads", "net"), (True, False, False, True)),
        (("net",), (False, True, False, True)),
        (("writes", "idempotent"), (False, True, True, False)),
        (("exec",), (False, True, False, True)),
        (("deletes", "reads"), (False, True, False, False)),
        (("prompts", "clock"), (True, False, False, False)),
    ],
)
def test_hints_come_from_effects(effects: tuple[str, ...], hints: tuple[bool, ...] | None) -> None:
    """A tool without effects has no hints."""
    tool = ToolImplementation(ToolSpec("t", "g"), lambda rt: None, ToolPolicy(effects=effects))
    reported = to_mcp([tool])[0].get("annotations")

    assert (None if reported is None else tuple(reported.values())) == hints


@pytest.mark.parametrize(
    ("labels", "is_open"),
    [
        ({"sources": ("private",), "sinks": ("storage", "people")}, False),
        ({"sources": ("untrusted",)}, True),
        ({"sinks": ("outside:crm",)}, True),
        ({"sinks": ("public",)}, True),
    ],
)
def test_labels_that_involve_outsiders_make_a_tool_open(labels: dict[str, Any], is_open: bool) -> None:
    """The effects alone would not say so."""
    tool = ToolImplementation(ToolSpec("t", "g"), lambda rt: None, ToolPolicy(effects=("reads",), **labels))

    assert to_mcp([tool])[0]["annotations"]["openWorldHint"] is is_open


def test_names_are_those_that_the_client_receives() -> None:
    """At most 64 characters, unless a table says otherwise."""
    spec = ToolSpec("t" * 60, "a.b")

    assert len(to_mcp([spec])[0]["name"]) == 64
    assert to_mcp([spec], names=WireNames({spec.full_name: "mine"}, {"mine": spec.full_name}))[0]["name"] == "mine"


KINDS = [
    (ArgType.INT, 5, {"result": 5}),
    (ArgType.STRING, "five", {"result": "five"}),
    (ArgType.SLICE_STRING, ["a"], {"result": ["a"]}),
    (ArgType.MAP, {"a": 1}, {"a": 1}),
    (ArgType.MAP_STRING_INT, {"a": 1}, {"a": 1}),
    (ArgType.MAP_ANY_ANY, {1: b"x"}, {"1": {"$base64": "eA=="}}),
    (ArgType.NIL, None, {"result": None}),
    (ArgType.VOID, None, {"result": None}),
    (ArgType.EMBEDDING, array("f", [0.5]), {"result": [0.5]}),
]


@pytest.mark.parametrize(("kind", "value", "structured"), KINDS, ids=[str(kind) for kind, *_ in KINDS])
def test_a_structured_result_matches_its_schema(kind: ArgType, value: Any, structured: Any) -> None:
    """Clients validate it, and drop results that do not match."""
    tool = ToolImplementation(ToolSpec("t", "g", return_type=kind), lambda rt: value)
    with Engine(plugins="none") as engine:
        engine.register(tool)
        result = to_result(engine.execute(ToolCall("g.t")), tool.spec)

    schema = to_mcp([tool])[0]["outputSchema"]
    assert result["structuredContent"] == structured
    jsonschema.Draft202012Validator(schema).validate(result["structuredContent"])
    assert CallToolResult.model_validate(result).is_error is False


def test_a_stream_is_a_list() -> None:
    """Of its items."""
    spec = ToolSpec("t", "g", return_type=ArgType.INT, stream=True)

    assert to_mcp([spec])[0]["outputSchema"]["properties"]["result"] == {"type": "array", "items": {"type": "integer"}}
    assert to_result(ToolResult("", "g.t", [1, 2]), spec)["structuredContent"] == {"result": [1, 2]}


@pytest.mark.parametrize(
    ("value", "kind", "media"),
    [
        (PICTURE, "image", "image/png"),
        (b"\xff\xd8\xff\xe0", "image", "image/jpeg"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "audio", "audio/wav"),
        (b"%PDF-1.7", "resource", "application/pdf"),
        (b"hello", "text", ""),
    ],
)
def test_bytes_have_their_media_type(value: bytes, kind: str, media: str) -> None:
    """An image, audio, a resource, or else a base64 string; there is no second copy."""
    spec = ToolSpec("t", "g", return_type=ArgType.BLOB)
    result = to_result(ToolResult("", "g.t", value), spec)
    content = result["content"][0]
    data = b64encode(value).decode()

    assert "outputSchema" not in to_mcp([spec])[0]
    assert CallToolResult.model_validate(result).structured_content is None
    assert content["type"] == kind
    match kind:
        case "text":
            assert content["text"] == f'{{"$base64": "{data}"}}'
        case "resource":
            assert content["resource"] == {"uri": "neuroscript:result/g.t", "mimeType": media, "blob": data}
        case _:
            assert (content["data"], content["mimeType"]) == (data, media)


def test_an_error_is_a_result() -> None:
    """It names the argument, and says what to do, with the names that the client knows."""
    with Engine() as engine:
        names = WireNames.of(engine.tools.values())
        wrong = to_result(engine.execute(ToolCall("math.add", {"num1": "x", "num2": 1})), None, names)
        unknown = to_result(engine.execute(ToolCall("math.ad")), None, names)

    assert wrong["isError"] is unknown["isError"] is True
    assert "num1: expected float, got str" in wrong["content"][0]["text"]
    assert "did you mean math__add" in unknown["content"][0]["text"]
    assert "structuredContent" not in wrong


def test_shapes_do_not_need_the_sdk() -> None:
    """Neither they nor the package import it."""
    code = "import sys; from neuroscript.interop.mcp import to_mcp, to_result; print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


def test_the_error_without_the_sdk_names_the_extra() -> None:
    """In one sentence."""
    code = (
        "import sys; sys.modules['mcp'] = sys.modules['mcp_types'] = None\n"
        "import neuroscript.interop.mcp as mcp\n"
        "try: mcp.serve\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == f"serving over MCP needs its SDK; install it with: {install_hint('mcp')}\n"
