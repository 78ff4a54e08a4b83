"""A scripted model server for tests: real HTTP on loopback in the formats of three APIs.

It serves OpenAI Chat, OpenAI Responses and Anthropic Messages, streamed or not, as requested. Each response is a step
of
the script.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

import attrs
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

Api = Literal["openai-chat", "openai-responses", "anthropic"]
PATHS: Final[Mapping[str, Api]] = {
    "/v1/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
    "/v1/messages": "anthropic",
}
APIS: Final[tuple[Api, ...]] = ("openai-chat", "openai-responses", "anthropic")
MODELS: Final = ("tiny", "small")
"""The response of ``GET /v1/models``."""

Event = tuple[str, Any]
"""One event of a stream: its name (``""`` for none) and its data."""


@attrs.frozen
class Call:
    """A call that the model requests; *name* in its wire form, *arguments* a map or the text that a model wrote."""

    name: str
    arguments: Mapping[str, Any] | str
    id: str = ""

    @property
    def text(self) -> str:
        """The arguments as text."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@attrs.frozen
class ModelReply:
    """A reply of the model, independent of any API."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    stop: Literal["end", "tools", "length", "refused", "empty"] = "end"


@attrs.frozen
class Raw:
    """A response that is not a reply of the model."""

    status: int
    body: bytes
    headers: Mapping[str, str]


@attrs.frozen
class Cut:
    """A response of which the first *bytes* bytes arrive; then the connection breaks, or ends as if complete."""

    bytes: int
    reply: ModelReply
    politely: bool


@attrs.frozen
class Hang:
    """Silence for some seconds before a response, or after its first *bytes* bytes."""

    seconds: float
    bytes: int
    reply: ModelReply


@attrs.frozen
class Drip:
    """A response whose bytes arrive a few at a time, with *seconds* between them."""

    seconds: float
    reply: ModelReply


Step = ModelReply | Raw | Cut | Hang | Drip


def says(text: str) -> ModelReply:
    """Let the model reply with *text*."""
    return ModelReply(text)


def call(name: str, arguments: Mapping[str, Any] | str = "{}", id: str = "") -> Call:
    """A call for `asks`: ``call("math__add", {"a": "2", "b": 3})``; without *id* the server numbers it."""
    return Call(name, arguments, id)


def asks(*calls: Call, text: str = "") -> ModelReply:
    """Let the model request calls in one turn, after *text*."""
    return ModelReply(text, calls, "tools")


def overflows(text: str = "so far") -> ModelReply:
    """Let the model stop early, because the reply is too long."""
    return ModelReply(text, (), "length")


def refuses() -> ModelReply:
    """Let the model, or a filter in front of it, refuse to answer."""
    return ModelReply("", (), "refused")


def empty() -> ModelReply:
    """Return a reply without any choice, item or block."""
    return ModelReply("", (), "empty")


def status(code: int, headers: Mapping[str, str] | None = None, word: str = "some_error") -> Raw:
    """Return an HTTP error whose body has the code *word* and a message that must not be shown."""
    data = {"type": "error", "error": {"type": word, "code": word, "message": "PRIVATE words of a server"}}
    return Raw(code, json.dumps(data).encode(), {"Content-Type": "application/json", **(headers or {})})


def html(code: int = 200) -> Raw:
    """Return an HTML page, as a proxy or a login page would."""
    return Raw(code, b"<html><body>Sign in</body></html>\n", {"Content-Type": "text/html; charset=utf-8"})


def sends(data: Any, code: int = 200) -> Raw:
    """Return JSON of another form."""
    return Raw(code, json.dumps(data).encode(), {"Content-Type": "application/json"})


def cut_after(
    bytes: int, reply: ModelReply = ModelReply("one two three four five six seven eight"), politely: bool = False
) -> Cut:
    """Return a response that ends after some bytes: the connection breaks, or with *politely* just ends."""
    return Cut(bytes, reply, politely)


def hangs(seconds: float, after: int = 0, reply: ModelReply = ModelReply("at last")) -> Hang:
    """Return a response that starts after some seconds, or that is silent after its first *after* bytes."""
    return Hang(seconds, after, reply)


def drips(seconds: float, reply: ModelReply = ModelReply("word " * 200)) -> Drip:
    """Return a response that never ends: 16 bytes at a time, with some seconds between them."""
    return Drip(seconds, reply)


@attrs.frozen
class ReceivedRequest:
    """A request as it arrived."""

    api: Api
    headers: Mapping[str, str]
    body: Any

    @property
    def streamed(self) -> bool:
        """Whether a stream was requested."""
        return bool(self.body.get("stream"))


class ModelServer:
    """A running server. Set a script and send requests; `requests` lists them in order.

    >>> with ModelServer() as server:
    ...     server.script(asks(call("math__add", {"a": "2", "b": 3})), says("five"))
    ...     # model("tiny", base_url=server.base_url("openai-chat"), api="openai-chat")
    """

    def __init__(self) -> None:
        self.requests: list[ReceivedRequest] = []
        self._steps: list[Step] = []
        self._forever: Step | None = None
        self._calls = 0
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._http = HTTPServer(host="127.0.0.1", threaded=True)
        self._http.expect_request("/v1/models").respond_with_handler(self._list)
        self._http.expect_request("/v1/embeddings").respond_with_handler(self._embed)
        self._http.expect_request(re.compile("/.*")).respond_with_handler(self._answer)

    def __enter__(self) -> ModelServer:
        self._http.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.stop()

    def base_url(self, api: str = "openai-chat") -> str:
        """Return the base URL for a client of an API."""
        return f"http://127.0.0.1:{self._http.port}{'' if api == 'anthropic' else '/v1'}"

    def script(self, *steps: Step, forever: Step | None = None) -> None:
        """Set the responses to the next requests, one step each.

        Args:
            forever: The response after the last step; by default HTTP error 400 ``script_ended``.
        """
        self._steps = [*steps]
        self._forever = forever

    def reset(self) -> None:
        """Forget the script and the requests, and end every silence."""
        self._closing.set()
        self._closing = threading.Event()
        self.requests.clear()
        self._calls = 0
        self.script()

    @property
    def left(self) -> int:
        """The number of steps that were not requested."""
        return len(self._steps)

    def _next(self) -> Step:
        with self._lock:
            return self._steps.pop(0) if self._steps else self._forever or status(400, word="script_ended")

    def _numbered(self, reply: ModelReply) -> ModelReply:
        with self._lock:
            calls = []
            for one in reply.calls:
                self._calls += 1
                calls.append(one if one.id else attrs.evolve(one, id=f"call_{self._calls}"))
            return attrs.evolve(reply, calls=tuple(calls))

    def _answer(self, request: Request) -> Response:
        api = PATHS.get(request.path)
        if api is None:
            return Response("{}", 404, content_type="application/json")
        received = ReceivedRequest(api, dict(request.headers), json.loads(request.get_data()))
        self.requests.append(received)
        match self._next():
            case Raw(code, body, headers):
                return Response(body, code, headers=dict(headers))
            case ModelReply() as reply:
                return self._given(received, [self._body(received, reply)])
            case Cut(count, reply, politely):
                body = self._body(received, reply)[:count]
                return self._given(received, [body], 0 if politely else len(body) + 1)
            case Hang(seconds, count, reply):
                return self._given(received, self._hanging(seconds, count, self._body(received, reply)))
            case Drip(seconds, reply):
                return self._given(received, self._dripping(seconds, self._body(received, reply)))

    def _dripping(self, seconds: float, body: bytes) -> Iterator[bytes]:
        closing = self._closing
        for at in range(0, len(body), 16):
            yield body[at : at + 16]
            if closing.wait(seconds):
                return

    def _hanging(self, seconds: float, count: int, body: bytes) -> Iterator[bytes]:
        closing = self._closing
        if count:
            yield body[:count]
        closing.wait(seconds)
        yield body[count:]

    def _body(self, received: ReceivedRequest, reply: ModelReply) -> bytes:
        reply = self._numbered(reply)
        if not received.streamed:
            return json.dumps(WHOLE[received.api](reply)).encode()
        return b"".join(written(event) for event in STREAMED[received.api](reply))

    def _given(self, received: ReceivedRequest, body: Iterable[bytes], promised: int = 0) -> Response:
        """Return a response; one with fewer bytes than it announces ends with a broken connection."""
        response = Response(iter(body), content_type="text/event-stream" if received.streamed else "application/json")
        if promised:
            response.headers["Content-Length"] = str(promised)
        return response

    def _list(self, request: Request) -> Response:
        data = {"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]}
        return Response(json.dumps(data), content_type="application/json")

    def _embed(self, request: Request) -> Response:
        data = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5, -1.0, 2.0]}]}
        return Response(json.dumps(data), content_type="application/json")


def written(event: Event) -> bytes:
    """Return an event in the format of a stream."""
    name, data = event
    text = data if isinstance(data, str) else json.dumps(data)
    return f"{f'event: {name}' + chr(10) if name else ''}data: {text}\n\n".encode()


def pieces(text: str, size: int = 4) -> list[str]:
    """Return a string in pieces of a few characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]


# ---------------------------------------------------------------- OpenAI Chat

CHAT_STOPS: Final = {"end": "stop", "tools": "tool_calls", "length": "length", "refused": "content_filter"}


def chat_whole(reply: ModelReply) -> dict[str, Any]:
    """Return a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [chat_call(one) for one in reply.calls]
    if reply.stop == "refused":
        message["refusal"] = "no"
    choices = [{"index": 0, "message": message, "finish_reason": CHAT_STOPS.get(reply.stop)}]
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    return chat_frame("chat.completion", [] if reply.stop == "empty" else choices) | {"usage": usage}


def chat_frame(kind: str, choices: list[Any]) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "tiny", "choices": choices}


def chat_call(one: Call) -> dict[str, Any]:
    return {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.text}}


def chat_streamed(reply: ModelReply) -> Iterator[Event]:
    """Yield the chunks of a chat completion."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in pieces(reply.text)]
    for index, one in enumerate(reply.calls):
        head = chat_call(one) | {"index": index}
        deltas.append({"tool_calls": [head | {"function": {"name": one.name, "arguments": ""}}]})
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": part}}]} for part in pieces(one.text)]
    if reply.stop == "refused":
        deltas.append({"refusal": "no"})
    if reply.stop != "empty":
        for delta in deltas:
            yield chat_chunk(delta, None)
        yield chat_chunk({}, CHAT_STOPS[reply.stop])
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    yield "", chat_frame("chat.completion.chunk", []) | {"usage": usage}
    yield "", "[DONE]"


def chat_chunk(delta: Any, stop: str | None) -> Event:
    return "", chat_frame("chat.completion.chunk", [{"index": 0, "delta": delta, "finish_reason": stop}])


# ----------------------------------------------------------- OpenAI Responses


def responses_whole(reply: ModelReply) -> dict[str, Any]:
    """Return a response."""
    usage = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
    return responses_frame(reply, responses_items(reply)) | {"usage": usage}


def responses_frame(reply: ModelReply, output: list[Any]) -> dict[str, Any]:
    cut = reply.stop == "length"
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "tiny",
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "output": output,
    }


def responses_items(reply: ModelReply) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.text or reply.stop == "refused":
        text = {"type": "output_text", "text": reply.text, "annotations": []}
        part = {"type": "refusal", "refusal": "no"} if reply.stop == "refused" else text
        items.append({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]})
    for index, one in enumerate(reply.calls):
        known = {"call_id": one.id, "name": one.name, "arguments": one.text}
        items.append({"id": f"fc_{index}", "type": "function_call", "status": "completed", **known})
    return items


def responses_streamed(reply: ModelReply) -> Iterator[Event]:
    """Yield the events of a response, numbered as the API numbers them."""
    for number, data in enumerate(responses_events(reply)):
        yield data["type"], data | {"sequence_number": number}


def responses_events(reply: ModelReply) -> Iterator[dict[str, Any]]:
    begun = responses_frame(attrs.evolve(reply, stop="end"), []) | {"status": "in_progress"}
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(responses_items(reply)):
        yield from responses_item(index, item)
    kind = "response.incomplete" if reply.stop == "length" else "response.completed"
    yield {"type": kind, "response": responses_whole(reply)}


def responses_item(index: int, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    at = {"output_index": index, "item_id": item["id"]}
    called = item["type"] == "function_call"
    fresh: dict[str, Any] = {"arguments": ""} if called else {"content": []}
    yield {
        "type": "response.output_item.added",
        "output_index": index,
        "item": item | fresh | {"status": "in_progress"},
    }
    if called:
        for piece in pieces(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
        yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}
    else:
        yield from responses_part({**at, "content_index": 0}, item["content"][0])
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def responses_part(at: dict[str, Any], part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    member = "refusal" if part["type"] == "refusal" else "text"
    kind = "refusal" if member == "refusal" else "output_text"
    yield {"type": "response.content_part.added", **at, "part": part | {member: ""}}
    for piece in pieces(part[member]):
        yield {"type": f"response.{kind}.delta", **at, "delta": piece}
    yield {"type": f"response.{kind}.done", **at, member: part[member]}
    yield {"type": "response.content_part.done", **at, "part": part}


# --------------------------------------------------------- Anthropic Messages

ANTHROPIC_STOPS: Final = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens", "refused": "refusal"}


def anthropic_whole(reply: ModelReply) -> dict[str, Any]:
    """Return a message."""
    usage = {"input_tokens": 10, "output_tokens": 3}
    return anthropic_frame(reply, anthropic_blocks(reply)) | {"usage": usage}


def anthropic_frame(reply: ModelReply, content: list[Any]) -> dict[str, Any]:
    stop = ANTHROPIC_STOPS.get(reply.stop, "end_turn")
    known = {"model": "tiny", "stop_reason": stop, "stop_sequence": None}
    return {"id": "msg_1", "type": "message", "role": "assistant", "content": content, **known}


def anthropic_blocks(reply: ModelReply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    for one in reply.calls:
        known = {"id": one.id, "name": one.name, "input": json.loads(one.text)}
        blocks.append({"type": "tool_use", **known})
    return blocks


def anthropic_streamed(reply: ModelReply) -> Iterator[Event]:
    """Yield the events of a message."""
    for data in anthropic_events(reply):
        yield data["type"], data


def anthropic_events(reply: ModelReply) -> Iterator[dict[str, Any]]:
    begun = anthropic_frame(reply, []) | {"stop_reason": None, "usage": {"input_tokens": 10, "output_tokens": 1}}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    index = 0
    if reply.text:
        fresh = {"type": "text", "text": ""}
        yield from anthropic_block(index, fresh, [{"type": "text_delta", "text": one} for one in pieces(reply.text)])
        index += 1
    for one in reply.calls:
        fresh_call = {"type": "tool_use", "id": one.id, "name": one.name, "input": {}}
        parts = [{"type": "input_json_delta", "partial_json": part} for part in ["", *pieces(one.text)]]
        yield from anthropic_block(index, fresh_call, parts)
        index += 1
    stop = ANTHROPIC_STOPS.get(reply.stop, "end_turn")
    ended = {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 3}}
    yield {"type": "message_delta", **ended}
    yield {"type": "message_stop"}


def anthropic_block(index: int, fresh: dict[str, Any], deltas: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield {"type": "content_block_start", "index": index, "content_block": fresh}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


WHOLE: Final = {"openai-chat": chat_whole, "openai-responses": responses_whole, "anthropic": anthropic_whole}
STREAMED: Final = {
    "openai-chat": chat_streamed,
    "openai-responses": responses_streamed,
    "anthropic": anthropic_streamed,
}
