"""Conversations for OpenAI's Responses API.

The API rejects a conversation in which a call has no result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, Final

from neuroscript.llm.wire.api import Wire
from neuroscript.llm.wire.images import data_url, texts_and_images
from neuroscript.llm.wire.openai.replies import arguments_text
from neuroscript.llm.wire.openai.responses_replies import KEY, read_responses
from neuroscript.llm.wire.openai.responses_stream import ResponsesAssembler
from neuroscript.llm.wire.openai.tools import to_tools
from neuroscript.llm.wire.turns import Exchange, Ids, exchanges, unique_ids
from neuroscript.runtime.interfaces import ToolResult, Turn
from neuroscript.runtime.result_text import result_text
from neuroscript.runtime.wire_names import WireNames

ID: Final = re.compile(r".{1,64}", re.DOTALL)
"""The ids of calls that the API accepts; ids of other APIs may be longer."""


def tools(tools: Iterable[Any], names: WireNames) -> list[dict[str, Any]]:
    """Return the value of ``tools``, in strict mode where possible."""
    return to_tools(tools, api="responses", names=names)


def conversation(turns: Sequence[Turn], names: WireNames) -> dict[str, Any]:
    """Return leading system turns as ``instructions``, and all other turns as ``input``."""
    system = list(takewhile(lambda turn: turn.role == "system", turns))
    ids = Ids.of(ID, turns, KEY)
    items = [item for each in exchanges(turns[len(system) :]) for item in _items(each, names, ids)]
    instructions = "\n\n".join(turn.content for turn in system)
    return {"instructions": instructions, "input": items} if instructions else {"input": items}


def _items(exchange: Exchange, names: WireNames, known: Ids) -> Iterator[dict[str, Any]]:
    turn = exchange.turn
    if turn.role != "assistant":
        yield {"type": "message", "role": "user" if turn.role == "tool" else turn.role, "content": turn.content}
        return
    native = (turn.native or {}).get(KEY)
    ids = [call.id for call in turn.tool_calls] if native else known.ids_to_send(turn.tool_calls)
    yield from map(dict, native) if native else _assistant_items(turn, ids, names)
    for id, result in zip(ids, exchange.results, strict=True):
        yield _result(id, result, names)


def _assistant_items(turn: Turn, ids: Sequence[str], names: WireNames) -> Iterator[dict[str, Any]]:
    if turn.content or not turn.tool_calls:
        yield {"type": "message", "role": "assistant", "content": turn.content}
    for call, id in zip(turn.tool_calls, ids, strict=True):
        arguments = arguments_text(call.arguments)
        yield {"type": "function_call", "call_id": id, "name": names.wire(call.name), "arguments": arguments}


def to_items(results: Sequence[ToolResult], *, names: WireNames | None = None) -> list[Any]:
    """Return the results of the calls of one turn as input items, in the same order.

    >>> to_items([ToolResult("c1", "math.add", 5)])
    [{'type': 'function_call_output', 'call_id': 'c1', 'output': '5'}]
    """
    ids = unique_ids([result.id for result in results])
    return [_result(id, result, names) for id, result in zip(ids, results, strict=True)]


def _result(id: str, result: ToolResult, names: WireNames | None) -> dict[str, Any]:
    output: Any = [_part(each) for each in texts_and_images(result)] or result_text(result, names)
    return {"type": "function_call_output", "call_id": id, "output": output}


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    return {"type": "input_image", "image_url": data_url(part.media_type, part.data)}


RESPONSES: Final = Wire("OpenAI Responses", KEY, tools, conversation, read_responses, ResponsesAssembler)
"""The Responses API of OpenAI and of compatible servers."""
