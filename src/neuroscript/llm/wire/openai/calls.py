"""Tool calls of OpenAI's APIs: ``message.tool_calls`` of Chat Completions, ``function_call`` items of Responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuroscript.llm.wire.calls import CallField, call_of, inner
from neuroscript.runtime.interfaces import ToolCall


def read_call(data: Mapping[str, Any]) -> ToolCall:
    """Return the call in an item of either API.

    Raises:
        ArgumentError: If a member is missing or has the wrong type.

    >>> read_call({"id": "c1", "type": "function", "function": {"name": "math__add", "arguments": "[2, 3]"}})
    ToolCall(name='math__add', arguments='[2, 3]', id='c1')
    """
    return read_responses_call(data) if data.get("type") == "function_call" else read_chat_call(data)


def read_chat_call(data: Mapping[str, Any]) -> ToolCall:
    """Return the call in an item of ``message.tool_calls`` of Chat Completions and compatible servers."""
    function = inner(data, "function")
    return call_of(
        id=CallField(data, "id"),
        name=CallField(function, "name", within="function"),
        arguments=CallField(function, "arguments", within="function"),
    )


def read_responses_call(data: Mapping[str, Any]) -> ToolCall:
    """Return the call in an item of ``response.output``; results refer to its ``call_id``."""
    return call_of(
        id=CallField(data, "call_id", required=True),
        name=CallField(data, "name"),
        arguments=CallField(data, "arguments"),
    )
