"""Turns with generated calls in the formats of Anthropic's and Google's servers, complete and streamed."""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Iterator
from typing import Any

import attrs

from neuroscript import ToolCall, Turn

EVERYTHING = bool(os.environ.get("NEUROSCRIPT_TEST_ALL"))
MANY = 300
"""How many calls of each API are read."""

TOOLS = ("math.add", "fs.read", "system.io.get", "str.replace")
TEXTS = ("", "a", "é😀", 'say "no"', "back\\slash", "line\nend\t", "\u2028", "null", "{}", "ключ", "</script>", "\x7f")
SIGNATURE = base64.b64encode(b"signed \xff\xfe").decode()


class Calls(random.Random):
    """A generator of the calls of one turn; the same seed gives the same sequence."""

    def turn(self, *, has_empty: bool = True) -> list[ToolCall]:
        """Return one to four calls with the arguments as maps; without empty nested maps where they cannot be streamed."""
        return [self._call(f"toolu_{self.getrandbits(48):012x}", has_empty) for _ in range(self.randint(1, 4))]

    def _call(self, id: str, has_empty: bool) -> ToolCall:
        count = self.randint(0, 3)
        arguments = {self.choice(TEXTS) or f"k{at}": self._value(2, has_empty) for at in range(count)}
        return ToolCall(self.choice(TOOLS), arguments, id=id)

    def _value(self, depth: int, has_empty: bool) -> Any:
        leaves = (None, True, 0, -7, 2**50 + 1, 1.5, 1e300, self.choice(TEXTS), self.choice(TEXTS))
        if depth == 0 or self.random() < 0.6:
            return self.choice(leaves)
        items = [self._value(depth - 1, has_empty) for _ in range(self.randint(0 if has_empty else 1, 3))]
        return items if self.random() < 0.5 else {f"k{at}": item for at, item in enumerate(items)}


def turns(count: int = MANY, *, has_empty: bool = True) -> list[list[ToolCall]]:
    """Return turns with at least this number of calls."""
    source, found = Calls(7), list[list[ToolCall]]()
    while sum(map(len, found)) < count:
        found.append(source.turn(has_empty=has_empty))
    return found


def wire(name: str) -> str:
    return name.replace(".", "__")


def texts_of(turn: Turn) -> tuple[str, tuple[ToolCall, ...]]:
    """Return what two equal turns have in common."""
    return turn.content, turn.tool_calls


def unnumbered(calls: list[ToolCall]) -> tuple[ToolCall, ...]:
    """Return calls with generated ids."""
    return tuple(attrs.evolve(call, id=f"call_{number}") for number, call in enumerate(calls, 1))


THOUGHT = {"type": "thinking", "thinking": "Hm – é😀", "signature": SIGNATURE}
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgB"}


def message(calls: list[ToolCall], text: str = "", **more: Any) -> dict[str, Any]:
    """Return an Anthropic message."""
    messages = [{"type": "text", "text": text}] if text else []
    used = [{"type": "tool_use", "id": call.id, "name": wire(call.name), "input": call.arguments} for call in calls]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [THOUGHT, REDACTED, *messages, *used],
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 10,
            "cache_creation_input_tokens": 3,
            "cache_read_input_tokens": 4,
            "output_tokens": 20,
        },
        **more,
    }


def events(whole: dict[str, Any], step: int = 1) -> Iterator[dict[str, Any]]:
    """Yield the events of a streamed message; its text and its JSON are cut after each *step* characters."""
    usage = {**whole["usage"], "output_tokens": 1}
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None, "usage": usage}}
    yield {"type": "ping"}
    for index, block in enumerate(whole["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": _empty(block)}
        for delta in _deltas(block, step):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": whole["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}


def _empty(block: dict[str, Any]) -> dict[str, Any]:
    empty = {"text": {"text": ""}, "tool_use": {"input": {}}, "thinking": {"thinking": "", "signature": ""}}
    return {**block, **empty.get(block["type"], {})}


def _deltas(block: dict[str, Any], step: int) -> Iterator[dict[str, Any]]:
    match block["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": part} for part in cut(block["text"], step))
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": part} for part in cut(block["thinking"], step))
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use":
            given = block["input"]
            text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=len(block["id"]) % 2 == 0)
            yield {"type": "input_json_delta", "partial_json": ""}
            yield from ({"type": "input_json_delta", "partial_json": part} for part in cut(text, step))


def cut(text: str, step: int) -> list[str]:
    return [text[at : at + step] for at in range(0, len(text), step)]


def sse(pieces: Iterator[dict[str, Any]]) -> bytes:
    """Return events as server-sent events."""
    lines = (f"event: {each['type']}\ndata: {json.dumps(each, ensure_ascii=False)}\n\n" for each in pieces)
    return "".join(lines).encode()


def response(calls: list[ToolCall], text: str = "", *, ids: bool = True, **more: Any) -> dict[str, Any]:
    """Return a Gemini response, with a thought, and a signature on the first call."""
    parts: list[dict[str, Any]] = [{"text": "Hm", "thought": True}]
    parts += [{"text": text}] if text else []
    for at, call in enumerate(calls):
        reported = {"name": wire(call.name), "args": call.arguments, **({"id": call.id} if ids else {})}
        parts.append({"functionCall": reported, **({} if at else {"thoughtSignature": SIGNATURE})})
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0, **more}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 20, "thoughtsTokenCount": 5, "totalTokenCount": 35}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini"}


def chunks(whole: dict[str, Any], step: int = 1) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a streamed response: text cut after each *step* characters, complete calls."""
    for part in whole["candidates"][0]["content"]["parts"]:
        pieces = cut(part["text"], step) if "text" in part else [None]
        for piece in pieces:
            yield chunk(part if piece is None else {**part, "text": piece})
    yield {**chunk({"text": ""}, finishReason="STOP"), "usageMetadata": whole["usageMetadata"]}


def partial_chunks(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a response whose calls arrive value by value, and their strings character by character."""
    for part in whole["candidates"][0]["content"]["parts"]:
        if "functionCall" not in part:
            yield chunk(part)
            continue
        call = {key: each for key, each in part["functionCall"].items() if key != "args"}
        yield chunk({**part, "functionCall": {**call, "willContinue": True}})
        for piece in partials(part["functionCall"]["args"], "$"):
            yield chunk({"functionCall": {"partialArgs": [piece], "willContinue": True}})
        yield chunk({"functionCall": {}})
    yield chunk({"text": ""}, finishReason="STOP")


def partials(value: Any, path: str) -> Iterator[dict[str, Any]]:
    """Yield the pieces of one value."""
    match value:
        case dict():
            for key, each in value.items():
                plainly = key.isalnum() and key.isascii()
                yield from partials(each, f"{path}.{key}" if plainly else f"{path}['{_escaped(key)}']")
        case list():
            for at, each in enumerate(value):
                yield from partials(each, f"{path}[{at}]")
        case str():
            for each in value:
                yield {"jsonPath": path, "stringValue": each, "willContinue": True}
            yield {"jsonPath": path, "stringValue": ""}
        case bool():
            yield {"jsonPath": path, "boolValue": value}
        case None:
            yield {"jsonPath": path, "nullValue": "NULL_VALUE"}
        case _:
            yield {"jsonPath": path, "numberValue": value}


def _escaped(key: str) -> str:
    return json.dumps(key)[1:-1].replace('\\"', '"').replace("'", "\\'")


def chunk(part: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0, **more}]}
