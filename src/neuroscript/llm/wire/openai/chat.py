"""Conversations for Chat Completions and compatible servers.

The API rejects a conversation in which a call has no result directly after the turn that requested it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from neuroscript.llm.wire.api import Wire
from neuroscript.llm.wire.openai.chat_replies import KEY, read_chat
from neuroscript.llm.wire.openai.chat_stream import ChatAssembler
from neuroscript.llm.wire.openai.replies import arguments_text
from neuroscript.llm.wire.openai.tools import to_tools
from neuroscript.llm.wire.turns import Exchange, Ids, exchanges, unique_ids
from neuroscript.runtime.interfaces import ToolCall, ToolResult, Turn
from neuroscript.runtime.result_text import result_text
from neuroscript.runtime.wire_names import WireNames

ID: Final = re.compile(r".{1,40}", re.DOTALL)
"""The ids of calls that the API accepts; ids of other APIs may be longer."""


def tools(tools: Iterable[Any], names: WireNames) -> list[dict[str, Any]]:
    """Return the value of ``tools``, in strict mode where possible."""
    return to_tools(tools, api="chat", names=names)


def conversation(turns: Sequence[Turn], names: WireNames) -> dict[str, Any]:
    """Return the turns as ``messages``."""
    ids = Ids.of(ID, turns, KEY)
    return {"messages": [message for each in exchanges(turns) for message in _messages(each, names, ids)]}


def _messages(exchange: Exchange, names: WireNames, known: Ids) -> Iterator[dict[str, Any]]:
    turn = exchange.turn
    if turn.role != "assistant":
        yield {"role": "user" if turn.role == "tool" else turn.role, "content": turn.content}
        return
    native = (turn.native or {}).get(KEY)
    ids = [call.id for call in turn.tool_calls] if native else known.ids_to_send(turn.tool_calls)
    yield dict(native) if native else _assistant(turn, ids, names)
    for id, result in zip(ids, exchange.results, strict=True):
        yield _result(id, result, names)


def _assistant(turn: Turn, ids: Sequence[str], names: WireNames) -> dict[str, Any]:
    if not turn.tool_calls:
        return {"role": "assistant", "content": turn.content}
    calls = [_call(call, id, names) for call, id in zip(turn.tool_calls, ids, strict=True)]
    return {"role": "assistant", "content": turn.content or None, "tool_calls": calls}


def _call(call: ToolCall, id: str, names: WireNames) -> dict[str, Any]:
    function = {"name": names.wire(call.name), "arguments": arguments_text(call.arguments)}
    return {"id": id, "type": "function", "function": function}


def to_messages(results: Sequence[ToolResult], *, names: WireNames | None = None) -> list[Any]:
    """Return the results of the calls of one turn as messages, in the same order.

    >>> to_messages([ToolResult("c1", "math.add", 5)])
    [{'role': 'tool', 'tool_call_id': 'c1', 'content': '5'}]
    """
    ids = unique_ids([result.id for result in results])
    return [_result(id, result, names) for id, result in zip(ids, results, strict=True)]


def _result(id: str, result: ToolResult, names: WireNames | None) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": result_text(result, names)}


CHAT: Final = Wire("OpenAI Chat", KEY, tools, conversation, read_chat, ChatAssembler)
"""Chat Completions of OpenAI and of compatible servers."""
