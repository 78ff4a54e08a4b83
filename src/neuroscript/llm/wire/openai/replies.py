"""What servers answer, as plain data, and what is wrong with it where it is no reply.

Of a server's error only its word is told, never its text, for that may repeat what was said.

Source: issue "Models", clear errors; OpenAI API reference, "Errors".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.plain_data import plain
from neuroscript.errors import ArgumentError, LLMError
from neuroscript.llm.wire.openai.calls import read_call
from neuroscript.llm.wire.replies import in_brackets, told, word_of
from neuroscript.llm.wire.sdk_data import count_in, dumped, strange
from neuroscript.llm.wire.turns import filled_ids
from neuroscript.runtime.interfaces import ToolCall
from neuroscript.runtime.replies import Usage
from neuroscript.runtime.wire_names import WireNames


def reply_of(thing: Any, member: str) -> dict[str, Any]:
    """Return a whole answer as plain data that has a list under *member*.

    Raises:
        LLMError: ``llm.format``: it is something else, such as a page of HTML or an error.
    """
    data = dumped(thing)
    if not isinstance(data, dict):
        raise strange(f"expected a map with {member}, got {type_name(data)}")
    if isinstance(data.get(member), list):
        return data
    if data.get("error"):
        raise strange(f"it is an error of the server{in_brackets(word_of(data['error']))}")
    raise strange(f"{member}: expected list, got {type_name(data[member]) if member in data else 'nothing'}")


def failure(error: Any) -> LLMError:
    """Return what an error that came within a reply means."""
    return told(word_of(error))


def usage_of(data: Any, asked: str, answered: str) -> Usage:
    """Return the counts that stand under two keys; 0 where there are none."""
    counts = data if isinstance(data, Mapping) else {}
    return Usage(count_in(counts, asked), count_in(counts, answered))


def text_at(data: Mapping[str, Any], key: str) -> str:
    """Return the text that stands under a key, or ``""`` where there is none."""
    value = data.get(key)
    return value if isinstance(value, str) else ""


def calls_of(items: Sequence[Mapping[str, Any]], names: WireNames) -> tuple[ToolCall, ...]:
    """Return what items of either API ask for, by canonical names.

    Raises:
        LLMError: ``llm.format``: one of them is no call; what is wrong with it is named.
    """
    try:
        calls = [read_call(item) for item in items]
    except ArgumentError as error:
        raise strange(f"it asks for a call that is none: {error}") from None
    return tuple(attrs.evolve(call, name=names.tool(call.name)) for call in calls)


def read_calls(reply: Any, *, names: WireNames | None = None) -> list[ToolCall]:
    """Return the calls that a reply of either API asks for, by the canonical names of tools.

    Args:
        reply: A whole answer, the message of one, or the list of its calls or output items: as the SDK's objects, or as
            plain data.
        names: What the model calls the tools; by default as the rule spells them.

    Raises:
        LLMError: ``llm.format``: it is none of these.

    >>> read_calls([{"type": "function_call", "call_id": "c1", "name": "math__add", "arguments": "[2, 3]"}])
    [ToolCall(name='math.add', arguments='[2, 3]', id='c1')]
    """
    items = with_ids([item for item in _items(dumped(reply)) if _is_call(item)])
    return list(calls_of(items, names or WireNames()))


def _items(data: Any) -> list[Any]:
    match data:
        case list():
            return data
        case {"choices": [{"message": dict() as message}, *_]}:
            return _items(message.get("tool_calls") or [])
        case {"choices": []}:
            return []
        case {"output": list() as output}:
            return output
        case {"tool_calls": list() as calls}:
            return calls
        case {"role": "assistant"}:
            return []
    raise strange(f"expected a reply, a message or a list of calls, got {type_name(data)}")


def _is_call(item: Any) -> bool:
    """Tell whether an item is a call, rather than text or thoughts; what is no map at all is reported as a bad call."""
    if not isinstance(item, dict):
        raise strange(f"expected a map that is a call, got {type_name(item)}")
    return "function" in item or item.get("type") in ("function", "function_call")


def with_ids(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return calls of either API, each with an id of its own."""
    keys = ["call_id" if item.get("type") == "function_call" else "id" for item in items]
    found = [item.get(key) or item.get("id") for item, key in zip(items, keys, strict=True)]
    return [{**item, key: id} for item, key, id in zip(items, keys, filled_ids(found), strict=True)]


def arguments_text(arguments: Any) -> str:
    """Return the arguments of a call as the APIs hold them: the text that a model wrote, or else JSON."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(plain(arguments), ensure_ascii=False) if arguments else "{}"
