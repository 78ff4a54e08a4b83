"""Parts shared by the replies of OpenAI's two APIs: calls, token counts and errors.

A server's error is reported by its code only, because its message may repeat the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.plain_data import to_plain
from neuroscript.errors import ArgumentError, LLMError
from neuroscript.llm.wire.openai.calls import read_call
from neuroscript.llm.wire.replies import error_code, in_brackets, reported_error
from neuroscript.llm.wire.sdk_data import count_in, format_error, to_plain_data
from neuroscript.llm.wire.turns import unique_ids
from neuroscript.runtime.interfaces import ToolCall
from neuroscript.runtime.replies import Usage
from neuroscript.runtime.wire_names import WireNames


def reply_of(value: Any, member: str) -> dict[str, Any]:
    """Return a complete response as plain data with a list under *member*.

    Raises:
        LLMError: ``llm.format``, if it is anything else, such as an HTML page or an error.
    """
    data = to_plain_data(value)
    if not isinstance(data, dict):
        raise format_error(f"expected a map with {member}, got {type_name(data)}")
    if isinstance(data.get(member), list):
        return data
    if data.get("error"):
        raise format_error(f"it is a server error{in_brackets(error_code(data['error']))}")
    raise format_error(f"{member}: expected list, got {type_name(data[member]) if member in data else 'nothing'}")


def failure(error: Any) -> LLMError:
    """Return the error that a server reported within a reply."""
    return reported_error(error_code(error))


def usage_of(data: Any, input_key: str, output_key: str) -> Usage:
    """Return the token counts under two keys; a missing count is 0."""
    counts = data if isinstance(data, Mapping) else {}
    return Usage(count_in(counts, input_key), count_in(counts, output_key))


def text_at(data: Mapping[str, Any], key: str) -> str:
    """Return the string under *key*, or ``""``."""
    value = data.get(key)
    return value if isinstance(value, str) else ""


def calls_of(items: Sequence[Mapping[str, Any]], names: WireNames) -> tuple[ToolCall, ...]:
    """Return the calls in items of either API, with canonical names.

    Raises:
        LLMError: ``llm.format``, if an item is not a valid call.
    """
    try:
        calls = [read_call(item) for item in items]
    except ArgumentError as error:
        raise format_error(f"it contains an invalid call: {error}") from None
    return tuple(attrs.evolve(call, name=names.tool(call.name)) for call in calls)


def read_calls(reply: Any, *, names: WireNames | None = None) -> list[ToolCall]:
    """Return the calls in a reply of either API, with canonical tool names.

    Args:
        reply: A complete response, its message, or its list of calls or output items, as SDK objects or plain data.
        names: The tool names that the model uses; by default ``WireNames()``.

    Raises:
        LLMError: ``llm.format``, if it is none of these.

    >>> read_calls([{"type": "function_call", "call_id": "c1", "name": "math__add", "arguments": "[2, 3]"}])
    [ToolCall(name='math.add', arguments='[2, 3]', id='c1')]
    """
    items = with_ids([item for item in _items(to_plain_data(reply)) if _is_call(item)])
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
    raise format_error(f"expected a reply, a message or a list of calls, got {type_name(data)}")


def _is_call(item: Any) -> bool:
    """Return whether an item is a call, rather than text or reasoning; raise if it is not a map."""
    if not isinstance(item, dict):
        raise format_error(f"expected a map that is a call, got {type_name(item)}")
    return "function" in item or item.get("type") in ("function", "function_call")


def with_ids(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return calls of either API, each with a unique id."""
    keys = ["call_id" if item.get("type") == "function_call" else "id" for item in items]
    found = [item.get(key) or item.get("id") for item, key in zip(items, keys, strict=True)]
    return [{**item, key: id} for item, key, id in zip(items, keys, unique_ids(found), strict=True)]


def arguments_text(arguments: Any) -> str:
    """Return the arguments of a call as JSON text: the text that the model wrote, or encoded values."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(to_plain(arguments), ensure_ascii=False) if arguments else "{}"
