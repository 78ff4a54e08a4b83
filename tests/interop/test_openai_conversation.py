"""Conversations in the types of OpenAI's APIs, and back to the same turns."""

from __future__ import annotations

import copy
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
from openai.types.responses import Response
from openai.types.responses.response_input_item_param import ResponseInputItemParam
from pydantic import TypeAdapter
from pytest_httpserver import HTTPServer
from tests.interop import openai_wire as wire

from neuroscript import Engine, ExecutionPolicy, ToolCall, ToolResult
from neuroscript.errors import ToolNotFound
from neuroscript.llm.wire.openai import CHAT, RESPONSES, to_items, to_messages
from neuroscript.runtime.interfaces import Turn
from neuroscript.runtime.wire_names import WireNames

NAMES = WireNames()
MESSAGES: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
ITEMS: TypeAdapter[Any] = TypeAdapter(list[ResponseInputItemParam])

CALLS = (
    ToolCall("math.add", '{"a": 1', id="c1"),
    ToolCall("fs.read", {"path": "é"}, id="c2"),
    ToolCall("a.b", id="c3"),
)
RESULTS = (ToolResult("c1", "math.add", 3), ToolResult("c2", "fs.read", "text"), ToolResult("c3", "a.b", None))
TURNS = (
    Turn("system", "Be brief."),
    Turn("user", "Add."),
    Turn("assistant", "Wait.", CALLS),
    Turn("tool", tool_results=RESULTS),
    Turn("assistant", "3"),
)


def test_a_conversation_as_chat_messages() -> None:
    """Arguments that are a map are sent as JSON, and a string is sent as the model wrote it."""
    body = CHAT.conversation(TURNS, NAMES)

    assert body == {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Add."},
            {
                "role": "assistant",
                "content": "Wait.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "math__add", "arguments": '{"a": 1'}},
                    {"id": "c2", "type": "function", "function": {"name": "fs__read", "arguments": '{"path": "é"}'}},
                    {"id": "c3", "type": "function", "function": {"name": "a__b", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "3"},
            {"role": "tool", "tool_call_id": "c2", "content": "text"},
            {"role": "tool", "tool_call_id": "c3", "content": "null"},
            {"role": "assistant", "content": "3"},
        ]
    }
    MESSAGES.validate_python(body["messages"])


def test_a_conversation_as_input_items() -> None:
    """The system turns at the beginning become the instructions."""
    body = RESPONSES.conversation([Turn("system", "You add."), *TURNS], NAMES)

    assert body == {
        "instructions": "You add.\n\nBe brief.",
        "input": [
            {"type": "message", "role": "user", "content": "Add."},
            {"type": "message", "role": "assistant", "content": "Wait."},
            {"type": "function_call", "call_id": "c1", "name": "math__add", "arguments": '{"a": 1'},
            {"type": "function_call", "call_id": "c2", "name": "fs__read", "arguments": '{"path": "é"}'},
            {"type": "function_call", "call_id": "c3", "name": "a__b", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "3"},
            {"type": "function_call_output", "call_id": "c2", "output": "text"},
            {"type": "function_call_output", "call_id": "c3", "output": "null"},
            {"type": "message", "role": "assistant", "content": "3"},
        ],
    }
    ITEMS.validate_python(body["input"])


def test_a_later_system_turn_stays_in_place() -> None:
    """In both APIs; without a system turn there are no instructions."""
    turns = [Turn("user", "Hello."), Turn("system", "Be brief.")]

    assert [each["role"] for each in CHAT.conversation(turns, NAMES)["messages"]] == ["user", "system"]
    assert RESPONSES.conversation(turns, NAMES) == {
        "input": [
            {"type": "message", "role": "user", "content": "Hello."},
            {"type": "message", "role": "system", "content": "Be brief."},
        ]
    }


def test_a_turn_of_the_model_is_sent_back_unchanged() -> None:
    """To its own API only; the other one gets what a generic turn contains."""
    calls = wire.turns(1)[0]
    output = [
        wire.REASONING,
        wire.said({"type": "output_text", "text": "Wait.", "annotations": []}),
        *map(wire.item, calls),
    ]
    turn = RESPONSES.read(Response.model_validate(wire.response(output)), NAMES).turn
    chat = CHAT.read(ChatCompletion.model_validate(wire.chat_reply(calls, reasoning_content="Hm.")), NAMES).turn

    message, *_ = CHAT.conversation([chat], NAMES)["messages"]

    assert RESPONSES.conversation([turn], NAMES)["input"][: len(output)] == output
    assert message["reasoning_content"] == "Hm."
    assert message["tool_calls"] == [wire.chat_call(call) for call in calls]
    assert CHAT.conversation([turn], NAMES)["messages"][0] == {
        "role": "assistant",
        "content": "Wait.",
        "tool_calls": [wire.chat_call(call) for call in calls],
    }
    ITEMS.validate_python(RESPONSES.conversation([turn, chat], NAMES)["input"])
    MESSAGES.validate_python(CHAT.conversation([turn, chat], NAMES)["messages"])


def test_sent_turns_are_read_as_the_same_calls() -> None:
    """Each API's form of a turn equals the reply of the other one."""
    for calls in wire.turns(300):
        message, *results = CHAT.conversation([Turn("assistant", tool_calls=tuple(calls))], NAMES)["messages"]
        items = RESPONSES.conversation([Turn("assistant", tool_calls=tuple(calls))], NAMES)["input"]

        assert (message["content"], len(results), len(items)) == (None, len(calls), 2 * len(calls))
        assert list(CHAT.read({"choices": [{"message": message}]}, NAMES).turn.tool_calls) == calls
        assert list(RESPONSES.read({"output": items}, NAMES).turn.tool_calls) == calls


def test_calls_without_ids_match_their_results() -> None:
    """Turns of another API may lack ids; calls and results get them by position."""
    turns = [
        Turn("assistant", tool_calls=(ToolCall("a.b"), ToolCall("a.b"))),
        Turn("tool", tool_results=(ToolResult("", "a.b", 1), ToolResult("", "a.b", 2))),
    ]

    assistant, *results = CHAT.conversation(turns, NAMES)["messages"]
    items = RESPONSES.conversation(turns, NAMES)["input"]

    assert (
        [call["id"] for call in assistant["tool_calls"]]
        == [each["tool_call_id"] for each in results]
        == ["call_1", "call_2"]
    )
    assert [item["call_id"] for item in items] == ["call_1", "call_2"] * 2


UNMADE = "error call.failed: this call was not made. The same call may succeed later."


@pytest.mark.parametrize("is_native", [True, False], ids=["its own turn", "of another API"])
def test_every_call_is_answered_right_after_its_turn(is_native: bool) -> None:
    """In the order of the calls, without results of unknown calls; the APIs reject anything else."""
    calls = [ToolCall("a.b", "{}", id=id) for id in ("c1", "c2", "c3")]
    results = (ToolResult("c3", "a.b", 3), ToolResult("c1", "a.b", 1), ToolResult("c9", "a.b", 9))
    request = Turn("assistant", tool_calls=tuple(calls))
    rest = [Turn("tool", tool_results=results), Turn("user", "Go on.")]
    chat = CHAT.read(wire.chat_reply(calls)).turn if is_native else request
    responses = RESPONSES.read(wire.response(list(map(wire.item, calls)))).turn if is_native else request

    messages = CHAT.conversation([chat, *rest], NAMES)["messages"]
    items = RESPONSES.conversation([responses, *rest], NAMES)["input"]

    reported = [("c1", "1"), ("c2", UNMADE), ("c3", "3")]
    assert [each["role"] for each in messages] == ["assistant", "tool", "tool", "tool", "user"]
    assert [(each["tool_call_id"], each["content"]) for each in messages[1:4]] == reported
    assert [(each["call_id"], each["output"]) for each in items[3:6]] == reported
    assert (len(items), items[6]["content"]) == (7, "Go on.")


@pytest.mark.parametrize(("api", "longest"), [(CHAT, 40), (RESPONSES, 64)], ids=["chat", "responses"])
def test_ids_of_other_apis_are_unique_and_short_enough(api: Any, longest: int) -> None:
    """Some are longer than the APIs accept, and others start again in each turn."""
    calls = (*(ToolCall("a.b", {}, id=id) for id in ("call_1", "f" * 65, "call_3", "call_1")), ToolCall("a.b", {}))
    results = tuple(ToolResult(call.id, "a.b", number) for number, call in enumerate(calls))
    turns = [Turn("assistant", tool_calls=calls), Turn("tool", tool_results=results)] * 2

    body = next(iter(api.conversation(turns, NAMES).values()))

    requests = [call["id"] for each in body for call in each.get("tool_calls", ())]
    requests = requests or [each["call_id"] for each in body if each["type"] == "function_call"]
    reported = [
        each.get("tool_call_id", each.get("call_id")) for each in body if "output" in each or "tool_call_id" in each
    ]
    values = [each.get("output", each.get("content")) for each in body if "output" in each or "tool_call_id" in each]
    assert len(set(requests)) == 10
    assert max(map(len, requests)) <= longest
    assert reported == requests
    assert values == ["0", "1", "2", "3", "4"] * 2


def test_an_id_gives_way_to_that_of_an_unchanged_turn() -> None:
    """Even if that comes later, because Responses finds a call by its id alone."""
    call = ToolCall("a.b", "{}", id="c1")
    native = RESPONSES.read(wire.response([wire.item(call)])).turn
    results = Turn("tool", tool_results=(ToolResult("c1", "a.b", 1),))

    items = RESPONSES.conversation([Turn("assistant", tool_calls=(call,)), results, native, results], NAMES)["input"]

    assert [item["call_id"] for item in items] == ["c1_2", "c1_2", "c1", "c1"]


def test_an_error_is_sent_with_its_remedy() -> None:
    """With the tool names that the model knows."""
    missing = ToolResult("c1", "math.plus", error=ToolNotFound("math.plus", near=("math.add",)))
    names = WireNames({"math.add": "sum"}, {"sum": "math.add"})

    (message,), (item,) = to_messages([missing], names=names), to_items([missing], names=names)

    assert message["content"] == item["output"]
    assert "did you mean sum?" in item["output"]


def test_text_in_a_tool_turn_is_sent() -> None:
    """No part of a turn is dropped."""
    turn = Turn("tool", "No answer.")

    assert CHAT.conversation([turn], NAMES)["messages"] == [{"role": "user", "content": "No answer."}]
    assert RESPONSES.conversation([turn], NAMES)["input"] == [
        {"type": "message", "role": "user", "content": "No answer."}
    ]


def test_an_empty_turn_is_sent() -> None:
    """A user may say nothing, and the server decides what that means."""
    turn = Turn("user")

    assert CHAT.conversation([turn], NAMES)["messages"] == [{"role": "user", "content": ""}]
    assert RESPONSES.conversation([turn], NAMES)["input"] == [{"type": "message", "role": "user", "content": ""}]


@pytest.mark.parametrize("wire_", [CHAT, RESPONSES], ids=["chat", "responses"])
def test_sending_a_turn_does_not_modify_it(wire_: Any) -> None:
    """Modifying the request does not modify the stored turn."""
    calls = wire.turns(1)[0]
    reply = wire.chat_reply(calls) if wire_ is CHAT else wire.response([wire.item(call) for call in calls])
    turn = wire_.read(reply, NAMES).turn
    before = copy.deepcopy(turn)

    for messages in wire_.conversation([turn], NAMES).values():
        messages[0].clear()

    assert turn == before
    assert turn.native == before.native


def test_a_model_behind_the_sdk_receives_the_results_of_its_calls(httpserver: HTTPServer) -> None:
    """Tools, turns and results go through the SDK to a server, with both APIs, and the calls run."""
    calls = [ToolCall("math.add", '{"num1": "2", "num2": 3}', id="c1"), ToolCall("math.add", "{", id="c2")]
    answers = {
        "/v1/chat/completions": wire.chat_reply(calls),
        "/v1/responses": wire.response([wire.REASONING, *map(wire.item, calls)]),
    }
    for path, answer in answers.items():
        httpserver.expect_request(path).respond_with_json(answer)
    with (
        Engine(policy=ExecutionPolicy(allow=("math.*",))) as engine,
        openai.OpenAI(api_key="k", base_url=httpserver.url_for("/v1"), max_retries=0) as client,
    ):
        tools = [engine.tools["math.add"]]
        for api, create in ((CHAT, client.chat.completions.create), (RESPONSES, client.responses.create)):
            ask: Any = create
            turns = [Turn("system", "Add."), Turn("user", "2 and 3")]
            request = {"model": "m", "tools": api.tools(tools, NAMES)}
            turn = api.read(ask(**request, **api.conversation(turns, NAMES)), NAMES).turn
            results = tuple(engine.execute(call) for call in turn.tool_calls)
            turns += [turn, Turn("tool", tool_results=results)]
            ask(**request, **api.conversation(turns, NAMES))

    sent = [request.get_json() for request, _ in httpserver.log]
    chat, responses = sent[1]["messages"][-2:], sent[3]["input"]
    assert sent[0]["tools"][0]["function"]["strict"] is True
    assert responses[1:4] == [wire.REASONING, *map(wire.item, calls)]
    assert [each["content"] for each in chat] == [each["output"] for each in responses[4:]]
    assert chat[0] == {"role": "tool", "tool_call_id": "c1", "content": "5.0"}
    assert chat[1]["content"].startswith("error arg.not_json: ")
