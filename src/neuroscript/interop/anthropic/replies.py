"""What Anthropic's Messages API answered.

Source: Anthropic API reference, "Messages", the response: ``content``, ``stop_reason``, ``usage``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from neuroscript.errors import ArgumentError, LLMError
from neuroscript.interop.anthropic.calls import KEY, read_call
from neuroscript.interop.dumped import count_in, map_in, map_of, maps_in, strange, text_in
from neuroscript.interop.served import told
from neuroscript.replies import Reply, Stop, Usage
from neuroscript.runtime import ToolCall, Turn
from neuroscript.wirenames import WireNames

STOPS: Final[Mapping[str, Stop]] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "pause_turn": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
"""Why a message ended; any other reason is ``end``, or ``tools`` where calls are asked for."""

INPUT: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""What is counted as input, all of it read by the model."""


def read(message: Any, names: WireNames | None = None) -> Reply:
    """Return the reply that a message holds, an SDK's ``Message`` or plain data.

    Raises:
        LLMError: ``llm.format``, it is no message; ``llm.empty``, nothing is said in it; what an error in its place
            tells.
    """
    data = map_of(message)
    if data.get("type") == "error":
        raise told(map_in(data, "error").get("type"))
    if not isinstance(data.get("content"), list):
        raise strange("it has no list under content")
    return reply_of(data, names or WireNames())


def read_calls(message: Any, *, names: WireNames | None = None) -> list[ToolCall]:
    """Return the calls that a message asks for, with canonical names, in their order; whatever else is in it.

    >>> block = {"type": "tool_use", "id": "t1", "name": "math__add", "input": {"num1": 2}}
    >>> read_calls({"content": [{"type": "text", "text": "So be it."}, block]})
    [ToolCall(name='math.add', arguments={'num1': 2}, id='t1')]
    """
    return list(_calls(maps_in(map_of(message), "content"), names or WireNames(), {}))


def reply_of(message: Mapping[str, Any], names: WireNames, texts: Mapping[int, Any] | None = None) -> Reply:
    """Return the reply that a message holds.

    Args:
        texts: The arguments of the blocks in which they are no map, by the index of the block.
    """
    blocks = maps_in(message, "content")
    text = "".join(text_in(each, "text") for each in blocks if each.get("type") == "text")
    calls = _calls(blocks, names, texts or {})
    stop = _stop(message.get("stop_reason"), bool(calls))
    if stop == "end" and not calls and not text.strip() and message.get("stop_reason") != "pause_turn":
        raise LLMError("the model said nothing", code="llm.empty", retry="later")
    return Reply(Turn("assistant", text, calls, native={KEY: blocks}), stop, _usage(map_in(message, "usage")))


def _calls(blocks: list[Mapping[str, Any]], names: WireNames, texts: Mapping[int, Any]) -> tuple[ToolCall, ...]:
    found = [(at, _call(each)) for at, each in enumerate(blocks) if each.get("type") == "tool_use"]
    return tuple(ToolCall(names.tool(call.name), texts.get(at, call.arguments), id=call.id) for at, call in found)


def _call(block: Mapping[str, Any]) -> ToolCall:
    try:
        return read_call(block)
    except ArgumentError as error:
        raise strange(f"it asks for a call that is none: {error}") from None


def _stop(reason: Any, asks: bool) -> Stop:
    stop = STOPS.get(reason, "end") if isinstance(reason, str) else "end"
    return "tools" if asks and stop == "end" else stop


def _usage(usage: Mapping[str, Any]) -> Usage:
    return Usage(count_in(usage, *INPUT), count_in(usage, "output_tokens"))
