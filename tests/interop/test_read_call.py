"""Calls in the documented formats of APIs, and objects that are not calls."""

from __future__ import annotations

from typing import Any

import pytest

from neuroscript import ArgumentError, ToolCall
from neuroscript.llm.wire import anthropic, call_id, gemini, openai, read_call, shape_of

TEXT = '{"num1": "2", "num2": 3}'
MAP = {"num1": "2", "num2": 3}

CHAT = {"id": "c1", "type": "function", "function": {"name": "math__add", "arguments": TEXT}}
RESPONSES = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "math__add",
    "arguments": TEXT,
    "status": "completed",
}
ANTHROPIC = {"type": "tool_use", "id": "c1", "name": "math__add", "input": MAP}
GEMINI = {"functionCall": {"id": "c1", "name": "math__add", "args": MAP}, "thoughtSignature": "c2lnbmVk"}
GEMINI_SDK = {
    "text": None,
    "thought": None,
    "function_call": {"id": "c1", "name": "math__add", "args": MAP, "partial_args": None, "will_continue": None},
}
PLAIN = {"id": "c1", "name": "math__add", "arguments": MAP}


@pytest.mark.parametrize(
    ("data", "title", "arguments"),
    [
        pytest.param(CHAT, "OpenAI Chat", TEXT, id="openai chat"),
        pytest.param({**CHAT, "type": None, "index": 0}, "OpenAI Chat", TEXT, id="chat of a server without types"),
        pytest.param(RESPONSES, "OpenAI Responses", TEXT, id="openai responses"),
        pytest.param(ANTHROPIC, "Anthropic", MAP, id="anthropic"),
        pytest.param({**ANTHROPIC, "input": TEXT}, "Anthropic", TEXT, id="anthropic, input put together from a stream"),
        pytest.param(GEMINI, "Gemini", MAP, id="gemini"),
        pytest.param(GEMINI_SDK, "Gemini", MAP, id="gemini as the python sdk dumps it"),
        pytest.param(PLAIN, "plain", MAP, id="plain"),
        pytest.param({**PLAIN, "arguments": TEXT}, "plain", TEXT, id="plain with text"),
        pytest.param({**PLAIN, "arguments": [2, 3]}, "plain", [2, 3], id="plain in order"),
        pytest.param({**PLAIN, "arguments": None}, "plain", (), id="null for no arguments"),
        pytest.param({"id": "c1", "name": "math__add"}, "plain", (), id="no arguments and nothing else"),
    ],
)
def test_every_documented_format_is_read(data: dict[str, Any], title: str, arguments: Any) -> None:
    """Name, arguments and id arrive unchanged, and the format is recognized."""
    call, shape = read_call(data), shape_of(data)

    assert ToolCall("math__add", arguments, id="c1") == call
    assert title == shape.title


@pytest.mark.parametrize(
    ("data", "read"),
    [
        pytest.param(CHAT, openai.read_call, id="openai chat"),
        pytest.param(RESPONSES, openai.read_call, id="openai responses"),
        pytest.param(ANTHROPIC, anthropic.read_call, id="anthropic"),
        pytest.param(GEMINI, gemini.read_call, id="gemini"),
        pytest.param(GEMINI_SDK, gemini.read_call, id="gemini sdk"),
    ],
)
def test_each_module_reads_the_calls_of_its_api(data: dict[str, Any], read: Any) -> None:
    """A caller that knows the API does not have to guess the format."""
    call = read(data)

    assert read_call(data) == call


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"name": "math.add", "arguments": []}, id="plain"),
        pytest.param({"function": {"name": "math.add", "arguments": {}}}, id="chat of a local server"),
        pytest.param({"functionCall": {"name": "math.add"}}, id="gemini without id and args"),
        pytest.param({"type": "tool_use", "name": "math.add", "id": None, "input": {}}, id="null"),
    ],
)
def test_a_call_may_have_no_id(data: dict[str, Any]) -> None:
    """Some servers send none; the result's id is empty then."""
    call = read_call(data)

    assert "" == call.id


ARGUMENTS = "expected a map, a list or JSON text"
MISSING = [
    pytest.param({}, "name: expected the name of a tool, got nothing", id="nothing at all"),
    pytest.param({"name": None}, "name: expected the name of a tool, got None", id="no name"),
    pytest.param({"name": ""}, "name: expected the name of a tool, got an empty string", id="an empty name"),
    pytest.param(
        {"name": ["x"], "arguments": 5},
        f"name: expected the name of a tool, got list; arguments: {ARGUMENTS}, got int",
        id="both",
    ),
    pytest.param({**PLAIN, "id": 5}, "id: expected string, got int", id="a number for an id"),
    pytest.param(
        {"name": "x", "parameters": {}}, f"arguments: {ARGUMENTS}, got nothing", id="arguments under another name"
    ),
    pytest.param({"name": "x", "args": {}}, f"arguments: {ARGUMENTS}, got nothing", id="args in the plain shape"),
    pytest.param(
        {"type": "function"}, "function: expected a map with the call, got nothing", id="chat without function"
    ),
    pytest.param(
        {**CHAT, "function": "math__add"}, "function: expected a map with the call, got str", id="chat with a string"
    ),
    pytest.param(
        {"function": {"name": "x", "parameters": {}}},
        f"function['arguments']: {ARGUMENTS}, got nothing",
        id="chat with parameters",
    ),
    pytest.param(
        {"type": "function_call", "id": "fc_1", "arguments": "{}"},
        "call_id: expected string, got nothing; name: expected the name of a tool, got nothing",
        id="responses without call_id",
    ),
    pytest.param(
        {"type": "tool_use", "name": "x", "arguments": {}},
        f"input: {ARGUMENTS}, got nothing",
        id="anthropic without input",
    ),
    pytest.param({**ANTHROPIC, "input": True}, f"input: {ARGUMENTS}, got bool", id="anthropic with a boolean"),
    pytest.param(
        {"function_call": None}, "function_call: expected a map with the call, got None", id="a part without a call"
    ),
    pytest.param(
        {"function_call": {"name": "x", "arguments": "{}"}},
        f"function_call['args']: {ARGUMENTS}, got nothing",
        id="openai's old function_call is not taken for gemini's",
    ),
    pytest.param(
        {"functionCall": {"name": "x", "args": {}, "willContinue": True}},
        "functionCall['willContinue']: expected a complete call, got a partial one",
        id="a piece of a call",
    ),
    pytest.param(
        {"type": "server_tool_use", "name": "x", "input": {}},
        "type: expected one of function, function_call, tool_use, or no type, got another string",
        id="a call that ran elsewhere",
    ),
    pytest.param(
        {**PLAIN, "type": 5},
        "type: expected one of function, function_call, tool_use, or no type, got int",
        id="a number for a type",
    ),
    pytest.param([], "expected a map that is a tool call, got list", id="a list"),
    pytest.param("text", "expected a map that is a tool call, got str", id="a string"),
    pytest.param(None, "expected a map that is a tool call, got None", id="null"),
]


@pytest.mark.parametrize(("data", "text"), MISSING)
def test_missing_fields_are_reported(data: Any, text: str) -> None:
    """An object that is not a call reports all missing fields at once, with types and without values."""
    with pytest.raises(ArgumentError) as caught:
        read_call(data)

    assert text == str(caught.value)


@pytest.mark.parametrize(
    ("data", "id"),
    [
        pytest.param({"id": "a"}, "a", id="an id"),
        pytest.param({"id": "item", "call_id": "a"}, "a", id="a call's id before an item's"),
        pytest.param({"functionCall": {"id": "a"}}, "a", id="within"),
        pytest.param({"id": 5, "functionCall": 7}, "", id="no text"),
        pytest.param([], "", id="no map"),
    ],
)
def test_the_id_of_an_invalid_call_is_read_too(data: Any, id: str) -> None:
    """An error can be sent back if the id is readable."""
    found = call_id(data)

    assert id == found
