"""Tool calls as OpenAI's APIs send them: Chat Completions and Responses.

Source: OpenAI API reference, "Chat Completions" (``message.tool_calls``) and "Responses" (``function_call`` items).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuroscript.llm.wire.calls import Member, call_of, inner
from neuroscript.runtime.interfaces import ToolCall


def read_call(data: Mapping[str, Any]) -> ToolCall:
    """Return the call that an item of either API asks for.

    Raises:
        ArgumentError: Something is missing, or of another kind; it is named.

    >>> read_call({"id": "c1", "type": "function", "function": {"name": "math__add", "arguments": "[2, 3]"}})
    ToolCall(name='math__add', arguments='[2, 3]', id='c1')
    """
    return read_responses_call(data) if data.get("type") == "function_call" else read_chat_call(data)


def read_chat_call(data: Mapping[str, Any]) -> ToolCall:
    """Return the call that an item of ``message.tool_calls`` asks for: Chat Completions, and servers that follow it."""
    function = inner(data, "function")
    return call_of(
        id=Member(data, "id"),
        name=Member(function, "name", within="function"),
        arguments=Member(function, "arguments", within="function"),
    )


def read_responses_call(data: Mapping[str, Any]) -> ToolCall:
    """Return the call that an item of ``response.output`` asks for; its ``call_id`` is what an answer refers to."""
    return call_of(
        id=Member(data, "call_id", required=True), name=Member(data, "name"), arguments=Member(data, "arguments")
    )
