"""Conversations for Anthropic's Messages API.

The API rejects a conversation in which a call has no result in the next message, an id is repeated, or a text block is
blank. The functions here avoid all three, whatever the turns contain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from neuroscript.llm.wire.anthropic.calls import KEY
from neuroscript.llm.wire.images import base64_text, texts_and_images
from neuroscript.llm.wire.tools import arguments_as_map, rename_arguments
from neuroscript.llm.wire.turns import Exchange, Ids, exchanges
from neuroscript.runtime.interfaces import ToolCall, ToolResult, Turn
from neuroscript.runtime.result_text import result_text
from neuroscript.runtime.wire_names import WireNames

ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The ids of calls that the API accepts; ids of other APIs may differ."""


def conversation(turns: Sequence[Turn], names: WireNames | None = None) -> dict[str, Any]:
    """Return the request members that hold the turns: ``messages``, and ``system`` if there is a system turn.

    >>> conversation([Turn("system", "Be brief."), Turn("user", "Hello")])["messages"]
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'Hello'}]}]
    """
    found = exchanges(turns)
    ids = Ids.of(ID, turns, KEY)
    messages: list[dict[str, Any]] = []
    for each in found:
        if each.turn.role != "system":
            _say(messages, each, names or WireNames(), ids)
    system = "\n\n".join(each.turn.content for each in found if each.turn.role == "system")
    return {"system": system, "messages": messages} if system else {"messages": messages}


def to_content(results: Iterable[ToolResult], *, names: WireNames | None = None) -> list[Any]:
    """Return the content of the message that returns results; it must directly follow the message with the calls.

    >>> to_content([ToolResult("t1", "math.add", 5)])
    [{'type': 'tool_result', 'tool_use_id': 't1', 'content': '5'}]
    """
    return [_result(each.id, each, names or WireNames()) for each in results]


def _result(id: str, result: ToolResult, names: WireNames) -> dict[str, Any]:
    content: Any = [_part(each) for each in texts_and_images(result)] or result_text(result, names)
    block = {"type": "tool_result", "tool_use_id": id, "content": content}
    return block if result.ok else {**block, "is_error": True}


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    source = {"type": "base64", "media_type": part.media_type, "data": base64_text(part.data)}
    return {"type": "image", "source": source}


def _say(messages: list[dict[str, Any]], exchange: Exchange, names: WireNames, ids: Ids) -> None:
    turn = exchange.turn
    if turn.role != "assistant":
        _add(messages, "user", _text(turn.content))
        return
    native = _native(turn)
    ids_sent = [call.id for call in turn.tool_calls] if native else ids.ids_to_send(turn.tool_calls)
    _add(messages, "assistant", native or [*_text(turn.content), *_calls(turn, ids_sent, names)])
    pairs = zip(ids_sent, exchange.results, strict=True)
    _add(messages, "user", [_result(id, result, names) for id, result in pairs])


def _add(messages: list[dict[str, Any]], role: str, blocks: list[dict[str, Any]]) -> None:
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += blocks
    elif blocks:
        messages.append({"role": role, "content": blocks})


def _native(turn: Turn) -> list[dict[str, Any]]:
    """Return the blocks of a turn as the API sent them, without those that it would reject."""
    blocks = (turn.native or {}).get(KEY) or ()
    return [each for each in blocks if each.get("type") != "text" or each.get("text", "").strip()]


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _calls(turn: Turn, ids: Sequence[str], names: WireNames) -> list[dict[str, Any]]:
    return [
        {"type": "tool_use", "id": id, "name": names.wire(call.name), "input": _input(call, names)}
        for id, call in zip(ids, turn.tool_calls, strict=True)
    ]


def _input(call: ToolCall, names: WireNames) -> Any:
    return rename_arguments(arguments_as_map(call.arguments), names.keys.get(call.name, {}))
