"""Replies of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from neuroscript.errors import ArgumentError
from neuroscript.llm.wire.anthropic.calls import KEY, read_call
from neuroscript.llm.wire.replies import finish_reply, reported_error
from neuroscript.llm.wire.sdk_data import count_in, format_error, map_in, map_of, maps_in, text_in
from neuroscript.llm.wire.tools import rename_arguments
from neuroscript.llm.wire.turns import unique_ids
from neuroscript.runtime.interfaces import ToolCall, Turn
from neuroscript.runtime.replies import Reply, Stop, Usage
from neuroscript.runtime.wire_names import WireNames

STOPS: Final[Mapping[str, Stop]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
"""The meaning of ``stop_reason``; any other reason means ``end``, or ``tools`` if there are calls."""

PAUSED: Final = "pause_turn"
"""The stop reason of a message that the server continues after it is sent back unchanged."""

INPUT: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""The members that count as input tokens; the model read all of them."""


def read(message: Any, names: WireNames | None = None) -> Reply:
    """Return the reply in a message: an SDK's ``Message`` or plain data.

    Raises:
        LLMError: ``llm.format`` if it is not a message, ``llm.empty`` if it has no content, or the error that the
            server
            sent instead.
    """
    data = map_of(message)
    if data.get("type") == "error":
        raise reported_error(map_in(data, "error").get("type"))
    if not isinstance(data.get("content"), list):
        raise format_error("it has no list under content")
    return reply_of(data, names or WireNames())


def read_calls(message: Any, *, names: WireNames | None = None) -> list[ToolCall]:
    """Return the calls of a message in order, with canonical names; other content is ignored.

    >>> block = {"type": "tool_use", "id": "t1", "name": "math__add", "input": {"num1": 2}}
    >>> read_calls({"content": [{"type": "text", "text": "So be it."}, block]})
    [ToolCall(name='math.add', arguments={'num1': 2}, id='t1')]
    """
    return list(_calls(_with_ids(maps_in(map_of(message), "content")), names or WireNames(), {}))


def reply_of(message: Mapping[str, Any], names: WireNames, raw_arguments: Mapping[int, Any] | None = None) -> Reply:
    """Return the reply in a message.

    Args:
        raw_arguments: Arguments that are not a map, by the index of their block.
    """
    blocks = _with_ids(maps_in(message, "content"))
    text = "".join(text_in(each, "text") for each in blocks if each.get("type") == "text")
    calls = _calls(blocks, names, raw_arguments or {})
    turn = Turn("assistant", text, calls, native={KEY: blocks})
    usage = _usage(map_in(message, "usage"))
    reason = text_in(message, "stop_reason")
    if reason == PAUSED and not calls:
        return Reply(turn, usage=usage)
    return finish_reply(turn, STOPS.get(reason, "end"), usage)


def _with_ids(blocks: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return blocks in which each call has a unique id, because some servers send none."""
    ids = iter(unique_ids([each.get("id") for each in blocks if each.get("type") == "tool_use"]))
    return [{**each, "id": next(ids)} if each.get("type") == "tool_use" else each for each in blocks]


def _calls(blocks: list[Mapping[str, Any]], names: WireNames, raw_arguments: Mapping[int, Any]) -> tuple[ToolCall, ...]:
    found = [(at, _call(each)) for at, each in enumerate(blocks) if each.get("type") == "tool_use"]
    return tuple(_canonical_call(call, raw_arguments.get(at, call.arguments), names) for at, call in found)


def _canonical_call(call: ToolCall, arguments: Any, names: WireNames) -> ToolCall:
    """Return a call with the canonical names of its tool and arguments."""
    name = names.tool(call.name)
    keys = {wire: key for key, wire in names.keys.get(name, {}).items()}
    return ToolCall(name, rename_arguments(arguments, keys), id=call.id)


def _call(block: Mapping[str, Any]) -> ToolCall:
    try:
        return read_call(block)
    except ArgumentError as error:
        raise format_error(f"it contains an invalid call: {error}") from None


def _usage(usage: Mapping[str, Any]) -> Usage:
    return Usage(count_in(usage, *INPUT), count_in(usage, "output_tokens"))
