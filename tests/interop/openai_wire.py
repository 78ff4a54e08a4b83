"""Replies in the format of OpenAI's servers, complete and streamed, with generated calls."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from neuroscript import ToolCall

TOOLS = ("math.add", "fs.read", "system.io.get", "str.replace")
TEXTS = ("", "a", "é😀", 'say "no"', "back\\slash", "line\nend\t", "\u2028", "null", "{}", "ключ", "</script>", "\x7f")


class Calls(random.Random):
    """A generator of the calls of one turn; the same seed gives the same sequence."""

    def turn(self) -> list[ToolCall]:
        """Return one to four calls, with the arguments as a JSON string."""
        return [self._call(f"call_{self.getrandbits(48):012x}") for _ in range(self.randint(1, 4))]

    def _call(self, id: str) -> ToolCall:
        arguments = {self.choice(TEXTS) or f"k{count}": self._value(2) for count in range(self.randint(0, 3))}
        text = json.dumps(
            arguments, ensure_ascii=self.random() < 0.5, separators=self.choice(((",", ":"), (", ", ": ")))
        )
        return ToolCall(self.choice(TOOLS), text, id=id)

    def _value(self, depth: int) -> Any:
        leaves = (None, True, 0, -7, 2**53 + 1, 1.5, 1e300, self.choice(TEXTS), self.choice(TEXTS))
        if depth == 0 or self.random() < 0.6:
            return self.choice(leaves)
        items = [self._value(depth - 1) for _ in range(self.randint(0, 3))]
        return items if self.random() < 0.5 else {f"k{count}": item for count, item in enumerate(items)}


def turns(count: int) -> list[list[ToolCall]]:
    """Return turns with at least this number of calls."""
    source, found = Calls(7), list[list[ToolCall]]()
    while sum(map(len, found)) < count:
        found.append(source.turn())
    return found


def wire(name: str) -> str:
    return name.replace(".", "__")


def chat_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": wire(call.name), "arguments": call.arguments}}


def chat_reply(calls: list[ToolCall] = [], content: Any = None, finish: str = "", **more: Any) -> dict[str, Any]:  # noqa: B006
    """Return a complete Chat Completions response."""
    message = {"role": "assistant", "content": content, "refusal": None, "annotations": [], **more}
    if calls:
        message["tool_calls"] = [chat_call(call) for call in calls]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": finish or ("tool_calls" if calls else "stop"),
    }
    usage = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    return {**head, "choices": [choice], "usage": usage}


def chat_chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """Return one chunk of a streamed Chat Completions response."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**CHUNK, "choices": [choice], "usage": None}


CHUNK = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
LAST_CHUNK = {**CHUNK, "choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}}


def chat_pieces(calls: list[ToolCall], size: int = 1) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a turn of calls, with this number of characters of arguments in each."""
    yield chat_chunk({"role": "assistant", "content": None, "refusal": None})
    for index, call in enumerate(calls):
        function = {"name": wire(call.name), "arguments": ""}
        yield chat_chunk({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
        for piece in cut(str(call.arguments), size):
            yield chat_chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chat_chunk({}, "tool_calls")
    yield LAST_CHUNK


def cut(text: str, size: int) -> list[str]:
    """Return a string in pieces."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def item(call: ToolCall, arguments: Any = None, status: str = "completed") -> dict[str, Any]:
    text = call.arguments if arguments is None else arguments
    names = {"id": f"fc_{call.id}", "call_id": call.id, "name": wire(call.name)}
    return {"type": "function_call", **names, "arguments": text, "status": status}


REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "c2lnbmVk"}


def said(*parts: dict[str, Any]) -> dict[str, Any]:
    """Return a message with these parts as an output item."""
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": list(parts)}


def text(content: str) -> dict[str, Any]:
    return {"type": "output_text", "text": content, "annotations": [], "logprobs": []}


def response(output: list[dict[str, Any]], status: str = "completed", **more: Any) -> dict[str, Any]:
    """Return a complete Responses response."""
    details = {
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    usage = {"input_tokens": 11, "output_tokens": 5, "total_tokens": 16, **details}
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "parallel_tool_calls": True}
    return {**head, "tool_choice": "auto", "tools": [], "status": status, "error": None, "incomplete_details": None,
            "instructions": None, "metadata": {}, "output": output, "usage": usage, **more}  # fmt: skip


def response_pieces(calls: list[ToolCall], size: int = 1, *, empty: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the events of a turn of calls; *empty* omits the output of the last event, as some servers do."""
    events = list(_events(calls, size))
    output = [] if empty else [REASONING, *map(item, calls)]
    begun = response([], "in_progress", usage=None)
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *events,
        {"type": "response.completed", "response": response(output)},
    ]
    yield from ({**event, "sequence_number": number} for number, event in enumerate(events))


def _events(calls: list[ToolCall], size: int) -> Iterator[dict[str, Any]]:
    for kind in ("added", "done"):
        yield {"type": f"response.output_item.{kind}", "output_index": 0, "item": REASONING}
    for index, call in enumerate(calls, 1):
        place = {"output_index": index, "item_id": f"fc_{call.id}"}
        begun = item(call, "", "in_progress")
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        for piece in cut(str(call.arguments), size):
            yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
        done = {"name": wire(call.name), "arguments": call.arguments}
        yield {"type": "response.function_call_arguments.done", **place, **done}
        yield {"type": "response.output_item.done", "output_index": index, "item": item(call)}
