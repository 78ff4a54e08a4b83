"""Calls from Anthropic's API as objects, as data, streamed, and over a connection; all give the same calls."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic as sdk
import pytest
from anthropic import types
from pydantic import TypeAdapter
from tests.interop.recorded import EVERYTHING, THOUGHT, events, message, sse, texts_of, turns
from tests.work import seconds_in

from neuroscript import LLMError, ToolCall, Turn
from neuroscript.llm.wire import anthropic
from neuroscript.runtime.replies import Reply, Usage
from neuroscript.runtime.wire_names import WireNames

EVENT: TypeAdapter[Any] = TypeAdapter(types.RawMessageStreamEvent)
TURNS = turns()
SAID = "Let me see: é😀\n"
NAMES = WireNames()


def assembled(pieces: Iterable[Any]) -> tuple[Reply, str]:
    """Return the result of an assembler, and the text that it emitted."""
    assembler = anthropic.MESSAGES.assembler(NAMES)
    text = "".join([assembler.take(piece) for piece in pieces])
    return assembler.reply(), text


def check(reply: Reply, calls: list[ToolCall]) -> None:
    """Assert that a reply requests these calls and is sent back unchanged."""
    whole = message(calls, SAID)
    assert texts_of(reply.turn) == (SAID, tuple(calls))
    assert [type(each.arguments) for each in reply.turn.tool_calls] == [dict] * len(calls)
    assert reply.turn.native == {"anthropic.messages": whole["content"]}
    assert (reply.stop, reply.usage) == ("tools", Usage(17, 20))


def test_recorded_calls_arrive_as_objects_and_as_data() -> None:
    """An SDK message, its dump, and the JSON of the server."""
    for calls in TURNS:
        whole = message(calls, SAID)
        for each in (whole, types.Message.model_validate(whole), json.loads(json.dumps(whole))):
            check(anthropic.read(each, NAMES), calls)
            assert anthropic.read_calls(each) == calls
        dumped = types.Message.model_validate(whole).model_dump()
        assert texts_of(anthropic.read(dumped, NAMES).turn) == (SAID, tuple(calls))


def test_recorded_calls_arrive_in_single_characters() -> None:
    """As SDK events and as plain data; text is emitted as it arrives."""
    for calls in TURNS:
        pieces = list(events(message(calls, SAID)))
        objects = [EVENT.validate_python(each) for each in pieces if each["type"] != "ping"]  # which the SDK retains
        for each in (pieces, objects):
            reply, text = assembled(each)
            check(reply, calls)
            assert text == SAID


def test_recorded_calls_arrive_in_pieces_of_every_size() -> None:
    """From one character to all of the JSON at once."""
    for calls in TURNS if EVERYTHING else TURNS[:12]:
        longest = max(len(json.dumps(call.arguments)) for call in calls)
        for step in range(1, longest + 1):
            check(assembled(events(message(calls, SAID), step))[0], calls)


class Server(ThreadingHTTPServer):
    """A server that sends its next body, with every byte in its own chunk."""

    daemon_threads = True
    bodies: list[bytes]


class Handler(BaseHTTPRequestHandler):
    """A connection to it."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer any request."""
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        assert isinstance(self.server, Server)
        for byte in self.server.bodies.pop(0):
            self.wfile.write(b"1\r\n%c\r\n" % byte)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def served(bodies: list[bytes]) -> Iterator[sdk.Anthropic]:
    """Provide a client of a loopback server with these responses."""
    server = Server(("127.0.0.1", 0), Handler)
    server.bodies = bodies
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        with sdk.Anthropic(api_key="k", base_url=address, max_retries=0, timeout=30) as client:
            yield client
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def request(client: sdk.Anthropic) -> dict[str, Any]:
    return {"model": "claude", "max_tokens": 100, **anthropic.conversation([Turn("user", "Go.")], NAMES)}


@pytest.mark.slow
def test_recorded_calls_arrive_over_a_connection_byte_by_byte() -> None:
    """The SDK reads them from a real server that sends each byte separately; its helper events add no duplicates."""
    chosen = TURNS if EVERYTHING else TURNS[:4]
    bodies = [sse(events(message(calls, SAID), 3)) for calls in chosen for _ in range(2)]
    with served(bodies) as client:
        for calls in chosen:
            with client.messages.create(**request(client), stream=True) as stream:
                reply, text = assembled(stream)
            check(reply, calls)
            with client.messages.stream(**request(client)) as helped:
                again, reported = assembled(helped)
            check(again, calls)
            assert text == reported == SAID


def test_an_incomplete_stream_is_reported() -> None:
    """At any position; the parts are not a reply."""
    pieces = list(events(message(TURNS[0], SAID), 5))
    for count in range(len(pieces)):
        with pytest.raises(LLMError) as caught:
            assembled(pieces[:count])
        assert (caught.value.code, caught.value.retry) == ("llm.incomplete", "later")
        assert str(caught.value) == "the reply ended before it was complete"


def test_incomplete_json_is_passed_on_unchanged() -> None:
    """The engine can report the problem to the model; the API gets a map, because it accepts nothing else."""
    text = '{"path": "a.txt", "text": "no end'
    calls = [ToolCall("fs.read", text, id="t1"), ToolCall("math.add", "[1, 2]", id="t2")]
    reply, _ = assembled(events(message(calls, stop_reason="max_tokens"), 4))
    sent = anthropic.conversation([Turn("user", "Go."), reply.turn], NAMES)["messages"][1]["content"]

    assert reply.stop == "length"
    assert reply.turn.tool_calls == (
        ToolCall("fs.read", text, id="t1"),
        ToolCall("math.add", [1, 2], id="t2"),
    )
    assert [each["input"] for each in sent[-2:]] == [{"INVALID_JSON": text}, {"arguments": [1, 2]}]
    assert sent[0] == THOUGHT


@pytest.mark.parametrize(
    ("piece", "text"),
    [
        ("<html>", "expected a map, got str"),
        ({"kind": "x"}, "an event has no type"),
        ({"type": "content_block_delta", "index": 3, "delta": {}}, "an event belongs to a block that did not start"),
        ({"type": "content_block_start", "content_block": {}}, "an event has no index"),
        ({"type": "message_start", "message": "x"}, "message: expected a map, got str"),
    ],
)
def test_invalid_events_are_reported(piece: Any, text: str) -> None:
    """The error contains the problem, and nothing of the text."""
    with pytest.raises(LLMError) as caught:
        anthropic.MessageAssembler(NAMES).take(piece)

    assert (caught.value.code, caught.value.retry, caught.value.text) == (
        "llm.format",
        "host",
        f"the server did not send a valid reply: {text}",
    )


def test_unknown_events_are_ignored() -> None:
    """As the API requires, because new ones will be added."""
    whole = message(TURNS[0], SAID)
    new = {"type": "content_block_delta", "index": 0, "delta": {"type": "future_delta", "future": "x"}}
    pieces = list(events(whole))

    reply, _ = assembled([*pieces[:3], {"type": "future"}, new, *pieces[3:]])

    check(reply, TURNS[0])


def test_stream_time_is_linear() -> None:
    """For any size of the pieces, eight times as many take at most about eight times as long."""

    def seconds(length: int) -> float:
        calls = [ToolCall("fs.read", {"text": "x" * length}, id="t1")]
        pieces = list(events(message(calls)))
        return seconds_in(lambda: assembled(pieces))

    assert seconds(20_000) < 24 * seconds(2_500)
