"""Replies of OpenAI's APIs: text, finish reason, usage, and invalid replies."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.interop import openai_wire as wire

from neuroscript import LLMError, ToolCall
from neuroscript.llm.wire.api import Wire
from neuroscript.llm.wire.openai import CHAT, RESPONSES, read_calls
from neuroscript.runtime.replies import Reply, Usage
from neuroscript.runtime.wire_names import WireNames

NAMES = WireNames()
ADD = ToolCall("math.add", '{"a": 1}', id="c1")
HTML = "<html><body>502 Bad Gateway</body></html>"
CANARY = "what was said"


def assembled(api: Wire, pieces: list[Any]) -> Reply:
    """Return the reply that is assembled from pieces."""
    assembler = api.assembler(NAMES)
    texts = [assembler.take(piece) for piece in pieces]
    reply = assembler.reply()
    assert "".join(texts) == reply.turn.content
    return reply


def delta(kind: str, text: str) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": 0, "content_index": 0, "item_id": "msg_1", "delta": text}


def completed(output: list[dict[str, Any]], status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": wire.response(output, status, **more)}


def refusal(text: str) -> dict[str, Any]:
    return {"type": "refusal", "refusal": text}


MAX = {"incomplete_details": {"reason": "max_output_tokens"}}
FILTER = {"incomplete_details": {"reason": "content_filter"}}


@pytest.mark.parametrize(
    ("api", "data", "content", "stop"),
    [
        pytest.param(CHAT, wire.chat_reply(content="Hello."), "Hello.", "end", id="chat"),
        pytest.param(CHAT, wire.chat_reply([ADD], "Wait."), "Wait.", "tools", id="chat, text and calls"),
        pytest.param(CHAT, wire.chat_reply([ADD], finish="stop"), "", "tools", id="chat, calls and stop"),
        pytest.param(CHAT, wire.chat_reply(content="Hel", finish="length"), "Hel", "length", id="chat, length limit"),
        pytest.param(CHAT, wire.chat_reply([ADD], finish="length"), "", "length", id="chat, no room for all calls"),
        pytest.param(CHAT, wire.chat_reply(finish="length"), "", "length", id="chat, no room for a word"),
        pytest.param(CHAT, wire.chat_reply(refusal="No."), "No.", "refused", id="chat, refused"),
        pytest.param(CHAT, wire.chat_reply(finish="content_filter"), "", "refused", id="chat, filtered"),
        pytest.param(
            CHAT,
            wire.chat_reply(content=[{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo."}]),
            "Hello.",
            "end",
            id="chat, in parts",
        ),
        pytest.param(RESPONSES, wire.response([wire.said(wire.text("Hello."))]), "Hello.", "end", id="responses"),
        pytest.param(
            RESPONSES,
            wire.response([wire.REASONING, wire.said(wire.text("Wait.")), wire.item(ADD)]),
            "Wait.",
            "tools",
            id="responses, text and calls",
        ),
        pytest.param(
            RESPONSES,
            wire.response([wire.said(wire.text("Hel"))], "incomplete", **MAX),
            "Hel",
            "length",
            id="responses, length limit",
        ),
        pytest.param(RESPONSES, wire.response([wire.said(refusal("No."))]), "No.", "refused", id="responses, refused"),
        pytest.param(RESPONSES, wire.response([], "incomplete", **FILTER), "", "refused", id="responses, filtered"),
    ],
)
def test_a_reply_has_its_text_and_finish_reason(api: Wire, data: dict[str, Any], content: str, stop: str) -> None:
    """And its usage."""
    reply = api.read(data, NAMES)

    assert (content, stop, Usage(11, 5)) == (reply.turn.content, reply.stop, reply.usage)
    assert list(reply.turn.tool_calls) == read_calls(data)


@pytest.mark.parametrize(
    ("api", "pieces", "content", "stop"),
    [
        pytest.param(
            CHAT,
            [wire.chat_chunk({"role": "assistant", "content": ""}), *(wire.chat_chunk({"content": each}) for each in "Hello."),
             wire.chat_chunk({}, "stop"), wire.LAST_CHUNK],
            "Hello.",
            "end",
            id="chat",
        ),
        pytest.param(
            CHAT,
            [wire.chat_chunk({"refusal": "N"}), wire.chat_chunk({"refusal": "o."}), wire.chat_chunk({}, "stop"), wire.LAST_CHUNK],
            "No.",
            "refused",
            id="chat, refused",
        ),
        pytest.param(
            CHAT, [wire.chat_chunk({"content": "Hel"}, "length"), wire.LAST_CHUNK], "Hel", "length", id="chat, length limit"
        ),
        pytest.param(
            CHAT, [wire.chat_chunk({}, "content_filter"), wire.LAST_CHUNK], "", "refused", id="chat, filtered"
        ),
        pytest.param(
            RESPONSES,
            [delta("output_text", "Hel"), delta("output_text", "lo."), completed([wire.said(wire.text("Hello."))])],
            "Hello.",
            "end",
            id="responses",
        ),
        pytest.param(
            RESPONSES,
            [delta("output_text", "Hel"), delta("output_text", "lo."), completed([])],
            "Hello.",
            "end",
            id="responses, nothing in the last event",
        ),
        pytest.param(
            RESPONSES, [delta("output_text", "Hel"), delta("refusal", "No."), completed([])], "HelNo.", "refused",
            id="responses, begun and refused",
        ),
        pytest.param(
            CHAT,
            [wire.chat_chunk({"content": "Hel"}), wire.LAST_CHUNK, wire.chat_chunk({"content": "lo."}, "stop")],
            "Hello.",
            "end",
            id="chat, counted before the end",
        ),
        pytest.param(
            RESPONSES, [delta("refusal", "N"), delta("refusal", "o."), completed([])], "No.", "refused", id="responses, refused"
        ),
        pytest.param(
            RESPONSES,
            [delta("output_text", "Hel"), completed([wire.said(wire.text("Hel"))], "incomplete", **MAX)],
            "Hel",
            "length",
            id="responses, length limit",
        ),
    ],
)  # fmt: skip
def test_a_streamed_reply_is_the_same(api: Wire, pieces: list[dict[str, Any]], content: str, stop: str) -> None:
    """Each piece emits its text at once, and usage comes last."""
    reply = assembled(api, pieces)

    assert (content, stop, Usage(11, 5)) == (reply.turn.content, reply.stop, reply.usage)


ERROR = {"error": {"message": CANARY, "type": "server_error", "code": None}}
NO_NAME = {"type": "function_call", "call_id": "c1", "arguments": "{}"}


@pytest.mark.parametrize(
    ("api", "data", "code", "text"),
    [
        pytest.param(CHAT, HTML, "llm.format", "expected a map with choices, got str", id="chat, HTML"),
        pytest.param(CHAT, ERROR, "llm.format", "it is a server error (server_error)", id="chat, error"),
        pytest.param(
            CHAT, {"object": "list"}, "llm.format", "choices: expected list, got nothing", id="chat, another map"
        ),
        pytest.param(
            CHAT, {"choices": [{}]}, "llm.format", "choices[0]: expected a map with a message", id="chat, no message"
        ),
        pytest.param(
            CHAT,
            {"choices": [{"message": {"tool_calls": [{"id": "c1", "function": {"arguments": "{}"}}]}}]},
            "llm.format",
            "it contains an invalid call: function['name']: expected the name of a tool, got nothing",
            id="chat, a call without a name",
        ),
        pytest.param(RESPONSES, HTML, "llm.format", "expected a map with output, got str", id="responses, HTML"),
        pytest.param(RESPONSES, ERROR, "llm.format", "it is a server error (server_error)", id="responses, error"),
        pytest.param(
            RESPONSES, {"output": ["x"]}, "llm.format", "output[0]: expected a map, got str", id="responses, no item"
        ),
        pytest.param(
            RESPONSES,
            {"output": [NO_NAME]},
            "llm.format",
            "it contains an invalid call: name: expected the name of a tool, got nothing",
            id="responses, a call without a name",
        ),
    ],
)
def test_an_invalid_reply_is_refused(api: Wire, data: Any, code: str, text: str) -> None:
    """The error names the problem, and repeats nothing of the reply."""
    with pytest.raises(LLMError) as caught:
        api.read(data, NAMES)

    error = caught.value
    assert (error.code, error.retry, str(error)) == (code, "host", f"the server did not send a valid reply: {text}")


@pytest.mark.parametrize(
    ("api", "data", "code", "text"),
    [
        pytest.param(CHAT, {"choices": []}, "llm.empty", "the reply has no choices", id="chat, no choice"),
        pytest.param(
            CHAT, wire.chat_reply(), "llm.empty", "the model returned an empty reply", id="chat, nothing said"
        ),
        pytest.param(
            CHAT, wire.chat_reply(content=" \n"), "llm.empty", "the model returned an empty reply", id="chat, blanks"
        ),
        pytest.param(
            RESPONSES, wire.response([]), "llm.empty", "the model returned an empty reply", id="responses, no output"
        ),
        pytest.param(
            RESPONSES,
            wire.response([wire.REASONING]),
            "llm.empty",
            "the model returned an empty reply",
            id="responses, thoughts alone",
        ),
        pytest.param(
            RESPONSES,
            wire.response([], "queued"),
            "llm.incomplete",
            "the reply is not complete but queued",
            id="responses, queued",
        ),
    ],
)
def test_an_empty_reply_may_be_requested_again(api: Wire, data: Any, code: str, text: str) -> None:
    """The request is not at fault."""
    with pytest.raises(LLMError) as caught:
        api.read(data, NAMES)

    assert (caught.value.code, caught.value.retry, str(caught.value)) == (code, "later", text)


@pytest.mark.parametrize(
    ("word", "code", "retry"),
    [
        ("rate_limit_exceeded", "llm.rate", "later"),
        (429, "llm.rate", "later"),
        ("server_error", "llm.server", "later"),
        (503, "llm.server", "later"),
        ("context_length_exceeded", "llm.length", "host"),
        ("content_filter", "llm.refused", "never"),
        ("invalid_api_key", "llm.auth", "host"),
        ("model_not_found", "llm.model_not_found", "host"),
        ("invalid_prompt", "llm.request", "host"),
        (400, "llm.request", "host"),
        (CANARY, "llm.server", "later"),
        (None, "llm.server", "later"),
    ],
)
def test_an_error_in_a_reply_has_its_code(word: Any, code: str, retry: str) -> None:
    """Only the server's code is used; its message may repeat the conversation."""
    error = {"code": word, "message": CANARY}
    ways: list[Callable[[], object]] = [
        lambda: CHAT.assembler(NAMES).take({"error": error}),
        lambda: CHAT.assembler(NAMES).take({"choices": [{"index": 0, "delta": {}, "error": error}]}),
        lambda: CHAT.read({"choices": [{"message": {}, "error": error}]}, NAMES),
        lambda: RESPONSES.assembler(NAMES).take({"type": "error", **error}),
        lambda: RESPONSES.assembler(NAMES).take({"type": "error", "error": error}),
        lambda: RESPONSES.assembler(NAMES).take({"error": error}),
        lambda: RESPONSES.assembler(NAMES).take(completed([], "failed", error=error)),
        lambda: RESPONSES.read(wire.response([], "failed", error=error), NAMES),
    ]
    reported = "" if word in (CANARY, None) else f" ({word})"
    for way in ways:
        with pytest.raises(LLMError) as caught:
            way()
        assert (caught.value.code, caught.value.retry) == (code, retry)
        assert str(caught.value) == f"the server ended the reply with an error{reported}"


@pytest.mark.parametrize(
    ("api", "pieces"),
    [
        pytest.param(CHAT, [], id="chat, nothing"),
        pytest.param(CHAT, [wire.chat_chunk({"content": "Hel"})], id="chat, text"),
        pytest.param(CHAT, list(wire.chat_pieces([ADD]))[:-2], id="chat, calls"),
        pytest.param(RESPONSES, [], id="responses, nothing"),
        pytest.param(RESPONSES, [delta("output_text", "Hel")], id="responses, text"),
        pytest.param(RESPONSES, list(wire.response_pieces([ADD]))[:-1], id="responses, calls"),
    ],
)
def test_an_incomplete_stream_is_reported(api: Wire, pieces: list[dict[str, Any]]) -> None:
    """At any position: without its end the rest is unknown."""
    with pytest.raises(LLMError) as caught:
        assembled(api, pieces)

    assert (caught.value.code, caught.value.retry, str(caught.value)) == (
        "llm.incomplete",
        "later",
        "the reply ended before it was complete",
    )


@pytest.mark.parametrize("api", [CHAT, RESPONSES], ids=["chat", "responses"])
@pytest.mark.parametrize("piece", [HTML, None, 5, [], {}, {"choices": None}, {"type": 5}], ids=str)
def test_an_invalid_piece_is_refused(api: Wire, piece: Any) -> None:
    """In both APIs."""
    with pytest.raises(LLMError) as caught:
        api.assembler(NAMES).take(piece)

    assert (caught.value.code, caught.value.retry) == ("llm.format", "host")


def test_other_choices_and_events_are_ignored() -> None:
    """The first choice is the reply; unknown events have no meaning yet."""
    other = {"choices": [{"index": 1, "delta": {"content": "Bye."}, "finish_reason": "stop"}]}
    chat = [wire.chat_chunk({"content": "Hello."}), other, wire.chat_chunk({}, "stop"), wire.LAST_CHUNK]
    events = [{"type": "keepalive"}, delta("output_text", "Hello."), {"type": "response.new_thing"}, completed([])]

    assert assembled(CHAT, chat).turn.content == "Hello."
    assert assembled(RESPONSES, events).turn.content == "Hello."


def test_a_turn_is_stored_as_its_api_sent_it() -> None:
    """With reasoning, and with extensions of servers, complete and streamed."""
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**wire.chat_call(ADD), "extra_content": {"signature": "s"}}],
    }
    whole = wire.chat_reply([ADD], reasoning_content="Hm.")
    whole["choices"][0]["message"]["tool_calls"] = message["tool_calls"]
    pieces = [
        wire.chat_chunk({"role": "assistant", "reasoning_content": "H"}),
        wire.chat_chunk({"reasoning_content": "m."}),
        wire.chat_chunk({"tool_calls": [{"index": 0, **message["tool_calls"][0]}]}),
        wire.chat_chunk({}, "tool_calls"),
    ]
    output = [wire.REASONING, wire.item(ADD)]
    blank = {**wire.REASONING, "status": None, "content": None}

    found = [
        CHAT.read(whole, NAMES),
        assembled(CHAT, pieces),
        RESPONSES.read(wire.response([blank, wire.item(ADD)]), NAMES),
    ]

    assert [reply.turn.native for reply in found] == [
        {"openai.chat": {**message, "annotations": [], "reasoning_content": "Hm."}},
        {"openai.chat": {**message, "reasoning_content": "Hm."}},
        {"openai.responses": output},
    ]


def test_streamed_lists_of_reasoning_are_complete() -> None:
    """Some servers send them signed, and require all of them back."""
    details = [{"type": "reasoning.text", "text": "Hm."}, {"type": "reasoning.encrypted", "data": "s"}]
    pieces = [
        *(wire.chat_chunk({"role": "assistant", "reasoning_details": [each]}) for each in details),
        wire.chat_chunk({"content": "Yes."}, "stop"),
    ]

    turn = assembled(CHAT, pieces).turn

    assert turn.native is not None
    assert turn.native["openai.chat"]["reasoning_details"] == details


def test_tool_names_are_canonical() -> None:
    """A truncated name can only be resolved by the names that the model received."""
    names = WireNames({"math.add": "sum"}, {"sum": "math.add"})
    chat = wire.chat_reply([ToolCall("sum", "{}", id="c1")])

    assert CHAT.read(chat, names).turn.tool_calls == (ToolCall("math.add", "{}", id="c1"),)
    assert read_calls(chat, names=names) == [ToolCall("math.add", "{}", id="c1")]


JUNK = (None, True, 0, -1, 2.5, "", "x", [], [None], ["x"], {}, {"x": 1}, [{}], {"type": "message"}, {"error": "x"})


def damaged(source: random.Random, data: Any) -> Any:
    """Return data with one value replaced."""
    data = copy.deepcopy(data)
    holder, key, place = None, None, data
    while isinstance(place, (dict, list)) and place and (holder is None or source.random() < 0.8):
        holder, key = place, source.choice([*place] if isinstance(place, dict) else range(len(place)))
        place = holder[key]
    if holder is None:
        return source.choice(JUNK)
    if isinstance(holder, dict) and source.random() < 0.2:
        del holder[key]
    else:
        holder[key] = source.choice(JUNK)
    return data


@pytest.mark.parametrize("seed", range(10))
def test_every_damaged_reply_is_a_reply_or_a_typed_error(seed: int, full_counts: bool) -> None:
    """With any damage, complete and streamed; an error repeats nothing of the reply."""
    source = random.Random(seed)
    calls = wire.Calls(seed).turn()
    whole = {
        CHAT: wire.chat_reply(calls, CANARY),
        RESPONSES: wire.response(
            [wire.REASONING, wire.said(wire.text(CANARY), refusal(CANARY)), *map(wire.item, calls)]
        ),
    }
    pieces = {
        CHAT: [wire.chat_chunk({"content": CANARY}), *wire.chat_pieces(calls, 30)],
        RESPONSES: [delta("output_text", CANARY), delta("refusal", CANARY), *wire.response_pieces(calls, 30)],
    }
    for _ in range(200 if full_counts else 60):
        for api in (CHAT, RESPONSES):
            reply = damaged(source, damaged(source, whole[api]))
            streamed = damaged(source, damaged(source, pieces[api]))
            for way in (lambda: api.read(reply, NAMES), lambda: read_calls(reply), lambda: assembled_of(api, streamed)):
                try:
                    way()
                except LLMError as error:
                    assert CANARY not in str(error)


def assembled_of(api: Wire, pieces: Any) -> Reply:
    """Return the reply of arbitrary pieces; streamed and complete text may differ."""
    assembler = api.assembler(NAMES)
    for piece in pieces if isinstance(pieces, list) else [pieces]:
        assembler.take(piece)
    return assembler.reply()
