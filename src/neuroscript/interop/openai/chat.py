"""Conversations and replies as Chat Completions writes them, and the many servers that follow it.

Source: OpenAI API reference, "Chat Completions".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from neuroscript.interop.openai.chat_pieces import ChatAssembler
from neuroscript.interop.openai.chat_replies import KEY, read_chat
from neuroscript.interop.openai.replies import arguments_text, filled_ids
from neuroscript.interop.openai.tools import to_tools
from neuroscript.interop.wire import Wire
from neuroscript.modeltext import result_text
from neuroscript.runtime import ToolCall, ToolResult, Turn
from neuroscript.wirenames import WireNames


def tools(tools: Iterable[Any], names: WireNames) -> list[dict[str, Any]]:
    """Return what stands under ``tools``, strict where it may be."""
    return to_tools(tools, api="chat", names=names)


def conversation(turns: Sequence[Turn], names: WireNames) -> dict[str, Any]:
    """Return the turns under ``messages``."""
    return {"messages": [message for turn in turns for message in _messages(turn, names)]}


def _messages(turn: Turn, names: WireNames) -> Iterator[dict[str, Any]]:
    yield from to_messages(turn.tool_results, names=names)
    if turn.role == "assistant":
        yield _assistant(turn, names)
    elif turn.role != "tool" or turn.content:
        yield {"role": "user" if turn.role == "tool" else turn.role, "content": turn.content}


def _assistant(turn: Turn, names: WireNames) -> dict[str, Any]:
    native = (turn.native or {}).get(KEY)
    if isinstance(native, Mapping):
        return dict(native)
    if not turn.tool_calls:
        return {"role": "assistant", "content": turn.content}
    ids = filled_ids([call.id for call in turn.tool_calls])
    calls = [_call(call, id, names) for call, id in zip(turn.tool_calls, ids, strict=True)]
    return {"role": "assistant", "content": turn.content or None, "tool_calls": calls}


def _call(call: ToolCall, id: str, names: WireNames) -> dict[str, Any]:
    function = {"name": names.wire(call.name), "arguments": arguments_text(call.arguments)}
    return {"id": id, "type": "function", "function": function}


def to_messages(results: Sequence[ToolResult], *, names: WireNames | None = None) -> list[dict[str, Any]]:
    """Return what came of the calls of one turn as messages, in the same order.

    >>> to_messages([ToolResult("c1", "math.add", 5)])
    [{'role': 'tool', 'tool_call_id': 'c1', 'content': '5'}]
    """
    ids = filled_ids([result.id for result in results])
    return [
        {"role": "tool", "tool_call_id": id, "content": result_text(result, names)}
        for result, id in zip(results, ids, strict=True)
    ]


CHAT: Final = Wire("OpenAI Chat", KEY, tools, conversation, read_chat, ChatAssembler)
"""Chat Completions, of OpenAI and of every server that follows it."""
