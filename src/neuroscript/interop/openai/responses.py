"""Conversations and replies as Responses writes them.

Source: OpenAI API reference, "Responses", ``instructions`` and ``input``; guide "Reasoning", keeping reasoning items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from neuroscript.interop.openai.replies import arguments_text, filled_ids
from neuroscript.interop.openai.responses_pieces import ResponsesAssembler
from neuroscript.interop.openai.responses_replies import KEY, read_responses
from neuroscript.interop.openai.tools import to_tools
from neuroscript.interop.wire import Wire
from neuroscript.modeltext import result_text
from neuroscript.runtime import ToolResult, Turn
from neuroscript.wirenames import WireNames


def tools(tools: Iterable[Any], names: WireNames) -> list[dict[str, Any]]:
    """Return what stands under ``tools``, strict where it may be."""
    return to_tools(tools, api="responses", names=names)


def conversation(turns: Sequence[Turn], names: WireNames) -> dict[str, Any]:
    """Return the system's turns at the beginning under ``instructions``, and all others under ``input``."""
    system = list(takewhile(lambda turn: turn.role == "system", turns))
    items = [item for turn in turns[len(system) :] for item in _items(turn, names)]
    instructions = "\n\n".join(turn.content for turn in system)
    return {"instructions": instructions, "input": items} if instructions else {"input": items}


def _items(turn: Turn, names: WireNames) -> Iterator[dict[str, Any]]:
    yield from to_items(turn.tool_results, names=names)
    native = (turn.native or {}).get(KEY)
    if turn.role == "assistant" and isinstance(native, Sequence):
        yield from (dict(item) for item in native if isinstance(item, Mapping))
        return
    if turn.content or not (turn.tool_calls or turn.tool_results):
        role = "user" if turn.role == "tool" else turn.role
        yield {"type": "message", "role": role, "content": turn.content}
    ids = filled_ids([call.id for call in turn.tool_calls])
    for call, id in zip(turn.tool_calls, ids, strict=True):
        arguments = arguments_text(call.arguments)
        yield {"type": "function_call", "call_id": id, "name": names.wire(call.name), "arguments": arguments}


def to_items(results: Sequence[ToolResult], *, names: WireNames | None = None) -> list[dict[str, Any]]:
    """Return what came of the calls of one turn as input items, in the same order.

    >>> to_items([ToolResult("c1", "math.add", 5)])
    [{'type': 'function_call_output', 'call_id': 'c1', 'output': '5'}]
    """
    ids = filled_ids([result.id for result in results])
    return [
        {"type": "function_call_output", "call_id": id, "output": result_text(result, names)}
        for result, id in zip(results, ids, strict=True)
    ]


RESPONSES: Final = Wire("OpenAI Responses", KEY, tools, conversation, read_responses, ResponsesAssembler)
"""Responses, of OpenAI and of servers that follow it."""
