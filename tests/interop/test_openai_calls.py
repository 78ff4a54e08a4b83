"""Calls from OpenAI's APIs: every way to send them gives the same calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pytest_httpserver import HTTPServer
from tests.interop import openai_wire as wire
from werkzeug import Response as Answer

from neuroscript import ToolCall
from neuroscript.llm.wire.api import Wire
from neuroscript.llm.wire.openai import CHAT, RESPONSES, read_calls
from neuroscript.runtime.replies import Reply, Usage
from neuroscript.runtime.wire_names import WireNames

TURNS = wire.turns(300)
EVENTS = {
    get_args(each.model_fields["type"].annotation)[0]: each for each in get_args(get_args(ResponseStreamEvent)[0])
}
"""The classes of events, by their type."""

NAMES = WireNames()
APIS = pytest.mark.parametrize("api", ["chat", "responses"])

WIRES = {"chat": CHAT, "responses": RESPONSES}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
WHOLE: dict[str, Callable[[list[ToolCall]], dict[str, Any]]] = {
    "chat": wire.chat_reply,
    "responses": lambda calls: wire.response([wire.REASONING, *map(wire.item, calls)]),
}
PIECES: dict[str, Callable[..., Iterator[dict[str, Any]]]] = {
    "chat": wire.chat_pieces,
    "responses": wire.response_pieces,
}
OBJECTS: dict[str, Callable[[Any], Any]] = {"chat": ChatCompletion.model_validate, "responses": Response.model_validate}
PIECE_OBJECTS: dict[str, Callable[[Any], Any]] = {
    "chat": ChatCompletionChunk.model_validate,
    "responses": lambda event: EVENTS[event["type"]].model_validate(event),
}


def assembled(api: Wire, pieces: Iterable[Any]) -> Reply:
    """Return the reply that is assembled from pieces."""
    assembler = api.assembler(NAMES)
    texts = [assembler.take(piece) for piece in pieces]
    reply = assembler.reply()
    assert "".join(texts) == reply.turn.content
    return reply


def check(reply: Reply, calls: list[ToolCall]) -> None:
    """Assert that a reply requests these calls."""
    assert list(reply.turn.tool_calls) == calls
    assert (reply.stop, reply.usage) == ("tools", Usage(11, 5))


@APIS
def test_calls_arrive_as_plain_data_and_as_sdk_objects(api: str) -> None:
    """300 of them, one to four in a turn."""
    for calls in TURNS:
        for reply in (WHOLE[api](calls), OBJECTS[api](WHOLE[api](calls))):
            check(WIRES[api].read(reply, NAMES), calls)
            assert read_calls(reply) == calls


@APIS
@pytest.mark.parametrize("size", [1, 5])
def test_calls_arrive_in_pieces(api: str, size: int) -> None:
    """Cut at every character, as plain data and as SDK objects."""
    for calls in TURNS:
        pieces = list(PIECES[api](calls, size))
        check(assembled(WIRES[api], pieces), calls)
        check(assembled(WIRES[api], map(PIECE_OBJECTS[api], pieces)), calls)


def test_calls_arrive_from_a_server_whose_last_event_has_no_output() -> None:
    """They are assembled from the previous events, with the reasoning of the model."""
    for calls in TURNS:
        reply = assembled(RESPONSES, wire.response_pieces(calls, empty=True))

        check(reply, calls)
        assert reply.turn.native == {RESPONSES.key: [wire.REASONING, *map(wire.item, calls)]}


def test_calls_arrive_from_deltas_alone() -> None:
    """Neither the done events nor the last event repeats them."""
    calls = TURNS[0]
    events = [each for each in wire.response_pieces(calls, empty=True) if not each["type"].endswith(".done")]

    assert list(assembled(RESPONSES, events).turn.tool_calls) == calls


def stream_bytes(api: str, calls: list[ToolCall]) -> bytes:
    """Return a streamed response as server-sent events."""
    lines = []
    for piece in PIECES[api](calls, 9):
        event = f"event: {piece['type']}\n" if "type" in piece else ""
        lines.append(f"{event}data: {json.dumps(piece, ensure_ascii=False)}\n\n")
    return "".join([*lines, "data: [DONE]\n\n" if api == "chat" else ""]).encode()


def ask(client: openai.OpenAI, api: str, *, stream: bool) -> Any:
    """Request a turn through the SDK."""
    tools: Any = WIRES[api].tools([], NAMES)
    if api == "chat":
        return client.chat.completions.create(model="m", messages=[], tools=tools, stream=stream)
    return client.responses.create(model="m", input="Go on.", tools=tools, stream=stream)


@APIS
def test_calls_arrive_from_a_server_through_the_sdk(api: str, httpserver: HTTPServer, full_counts: bool) -> None:
    """A real server on loopback, which sends each byte of a stream and of a complete response separately."""
    with openai.OpenAI(api_key="k", base_url=httpserver.url_for("/v1"), max_retries=0, timeout=60) as client:
        for calls in TURNS if full_counts else TURNS[:3]:
            data = stream_bytes(api, calls)
            httpserver.clear()
            httpserver.expect_ordered_request(PATHS[api]).respond_with_handler(
                lambda _, data=data: Answer(
                    (data[at : at + 1] for at in range(len(data))), mimetype="text/event-stream"
                )
            )
            httpserver.expect_ordered_request(PATHS[api]).respond_with_json(WHOLE[api](calls))
            with ask(client, api, stream=True) as stream:
                check(assembled(WIRES[api], stream), calls)
            check(WIRES[api].read(ask(client, api, stream=False), NAMES), calls)
            httpserver.check()


def function(name: str | None = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    """Return the delta of a call."""
    facts = {"name": name, "arguments": arguments}
    return {**more, "function": {key: each for key, each in facts.items() if each is not None}}


ADD, READ = ToolCall("math.add", '{"a": 1}', id="call_1"), ToolCall("fs.read", '{"b": {}}', id="call_2")


@pytest.mark.parametrize(
    "deltas",
    [
        pytest.param(
            [function("math__add", '{"a"', index=0), function("fs__read", "", index=1), function(None, ': 1}', index=0),
             function(None, '{"b": {}}', index=1)],
            id="no ids, and pieces of two calls mixed",
        ),
        pytest.param([function("math__add", '{"a": 1}'), function("fs__read", '{"b": {}}')], id="no ids, no indexes"),
        pytest.param(
            [function("math__add", '{"a": 1}', index=0), function("fs__read", '{"b": {}}', index=0)],
            id="whole calls that all have the index 0 and no ids",
        ),
        pytest.param(
            [function("math__add", '{"a"', id="call_1", index=0), function(None, ": 1}", index=0),
             function("fs__read", '{"b": ', id="call_2", index=0), function(None, "{}}", index=0)],
            id="the index 0 for all, with ids",
        ),
        pytest.param(
            [function("math__add", '{"a"', id="call_1"), function(None, ": 1}", id="call_1"),
             function("fs__read", '{"b": {}', id="call_2"), function(None, "}", id="call_2")],
            id="no indexes, and the id in every piece",
        ),
        pytest.param(
            [function("math__add", "", index=0), function("math__add", '{"a": ', index=0), function("math__add", "1}", index=0),
             function("fs__read", '{"b": {}}', index=1)],
            id="the name in every piece",
        ),
        pytest.param(
            [function("math__add", '{"a": 1}', index=0, id=""), function("fs__read", '{"b": {}}', index=1, id=None)],
            id="empty ids",
        ),
        pytest.param(
            [function("math__add", '{"a"'), function(None, ": 1}"), function("fs__read", '{"b": '), function(None, "{}}")],
            id="pieces without ids and indexes",
        ),
    ],
)  # fmt: skip
def test_calls_without_ids_and_indexes_arrive(deltas: list[dict[str, Any]]) -> None:
    """Each gets an id by its position in the turn, which is also in the turn that is sent back."""
    pieces = [*(wire.chat_chunk({"tool_calls": [delta]}) for delta in deltas), wire.chat_chunk({}, "stop")]

    reply = assembled(CHAT, pieces)

    assert [ADD, READ] == list(reply.turn.tool_calls)
    assert reply.turn.native is not None
    assert ["call_1", "call_2"] == [call["id"] for call in reply.turn.native[CHAT.key]["tool_calls"]]


@pytest.mark.parametrize(
    "deltas",
    [
        pytest.param([function("a__b", ""), function("c__d", "")], id="no ids, no indexes"),
        pytest.param(
            [function("a__b", "", id="call_1", index=0), function("c__d", "", id="call_2", index=0)],
            id="the index 0 for all, with ids",
        ),
    ],
)
def test_calls_without_arguments_are_separate(deltas: list[dict[str, Any]]) -> None:
    """Although only their names have arrived."""
    pieces = [*(wire.chat_chunk({"tool_calls": [delta]}) for delta in deltas), wire.chat_chunk({}, "stop")]

    assert [("a.b", "call_1"), ("c.d", "call_2")] == [
        (call.name, call.id) for call in assembled(CHAT, pieces).turn.tool_calls
    ]


def test_calls_arrive_from_events_with_the_item_id_only() -> None:
    """Some servers omit the position in the output from their deltas."""
    for calls in TURNS[:20]:
        events = [
            {key: each for key, each in event.items() if key != "output_index" or "arguments" not in event["type"]}
            for event in wire.response_pieces(calls, empty=True)
            if not event["type"].endswith(".done")
        ]

        assert list(assembled(RESPONSES, events).turn.tool_calls) == calls


def test_calls_arrive_in_the_last_event_only() -> None:
    """Anything that was not streamed is in the last event."""
    calls = TURNS[0]

    check(assembled(RESPONSES, list(wire.response_pieces(calls))[-1:]), calls)


def test_arguments_that_arrive_as_a_map_stay_a_map() -> None:
    """Some servers do not send a string."""
    pieces = [wire.chat_chunk({"tool_calls": [function("math__add", {"a": 1}, index=0)]}), wire.chat_chunk({}, "stop")]

    assert (ToolCall("math.add", {"a": 1}, id="call_1"),) == assembled(CHAT, pieces).turn.tool_calls


def test_missing_and_repeated_ids_are_replaced() -> None:
    """Each result then matches its call, in both APIs."""
    items = [
        {"function": {"name": "a__b"}, "id": "call_2"},
        {"function": {"name": "a__b"}},
        {"function": {"name": "a__b"}, "id": "call_2"},
    ]
    bare = [{"type": "function_call", "name": "a__b", "arguments": "{}"}] * 2

    assert ["call_2", "call_3", "call_4"] == [call.id for call in read_calls(items)]
    assert ["call_1", "call_2"] == [call.id for call in read_calls(bare)]
    assert ["fc_1"] == [call.id for call in read_calls([{**bare[0], "id": "fc_1"}])]


def test_calls_are_read_from_every_part_of_a_reply() -> None:
    """A message, its calls, an output, an item of it: SDK objects and plain data."""
    (calls,) = wire.turns(1)
    chat, output = (
        ChatCompletion.model_validate(wire.chat_reply(calls)),
        Response.model_validate(WHOLE["responses"](calls)),
    )

    found = [
        read_calls(chat.choices[0].message),
        read_calls(chat.choices[0].message.tool_calls),
        read_calls(output.output),
        read_calls(wire.chat_reply(calls)["choices"][0]["message"]),
    ]

    assert [calls] * 4 == found
    assert read_calls(ChatCompletion.model_validate(wire.chat_reply(content="Hello."))) == []
    assert read_calls({"choices": []}) == []
