"""Detection of the API that a tool call came from; each call is read by the module of its API, without any SDK."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.parameters import FUNCTION, STRING, require_fields
from neuroscript.errors import ArgumentError, Problem
from neuroscript.llm.wire import anthropic, gemini, openai
from neuroscript.llm.wire.calls import CallField, call_of
from neuroscript.runtime.interfaces import ToolCall

__all__ = ["Shape", "call_id", "read_call", "shape_of"]


@attrs.frozen
class Shape:
    """A format of tool calls.

    Attributes:
        title: The display name, for example ``OpenAI Chat``.
        read: Returns the call in an object of this format.
    """

    title: str
    read: Callable[[Mapping[str, Any]], ToolCall]

    def __attrs_post_init__(self) -> None:
        require_fields("shape", self, title=STRING, read=FUNCTION)


def read_call(data: Mapping[str, Any]) -> ToolCall:
    """Return the call in a decoded JSON object of any known format.

    The plain format is ``{"id", "name", "arguments"}``, with arguments as a map, a list, or JSON text of either. The
    others are those of OpenAI's Chat Completions and Responses, Anthropic's Messages and Google's Gemini.

    Raises:
        ArgumentError: If the format is unknown or a member is missing. It never contains values.

    >>> read_call({"id": "1", "name": "math.add", "arguments": {"num1": "2", "num2": 3}})
    ToolCall(name='math.add', arguments={'num1': '2', 'num2': 3}, id='1')
    """
    return shape_of(data).read(data)


def shape_of(data: Mapping[str, Any]) -> Shape:
    """Return the format of a call in a decoded JSON object, without validating its members.

    Raises:
        ArgumentError: If the format is unknown.
    """
    if not isinstance(data, Mapping):
        raise ArgumentError([Problem("", "arg.type", "a map that is a tool call", type_name(data))])
    kind = data.get("type")
    if kind is None:
        return _untyped(data)
    if not isinstance(kind, str) or kind not in TYPED:
        other = "another string" if isinstance(kind, str) else type_name(kind)
        raise ArgumentError([Problem("type", "call.type", f"one of {', '.join(TYPED)}, or no type", other)])
    return TYPED[kind]


def _untyped(data: Mapping[str, Any]) -> Shape:
    if "function" in data:
        return OPENAI_CHAT
    return GEMINI if any(key in data for key in gemini.KEYS) else PLAIN


def call_id(data: Mapping[str, Any]) -> str:
    """Return the id in an object that may be a call, or ``""``; never raise."""
    if not isinstance(data, Mapping):
        return ""
    parts = [data.get(key) for key in gemini.KEYS]
    places = [data, *(part for part in parts if isinstance(part, Mapping))]
    ids = [place.get(key) for key in ("call_id", "id") for place in places]
    return next((id for id in ids if isinstance(id, str)), "")


def _read_plain(data: Mapping[str, Any]) -> ToolCall:
    return call_of(id=CallField(data, "id"), name=CallField(data, "name"), arguments=CallField(data, "arguments"))


PLAIN: Final = Shape("plain", _read_plain)
OPENAI_CHAT: Final = Shape("OpenAI Chat", openai.read_chat_call)
GEMINI: Final = Shape("Gemini", gemini.read_call)

TYPED: Final = {
    "function": OPENAI_CHAT,
    "function_call": Shape("OpenAI Responses", openai.read_responses_call),
    "tool_use": Shape("Anthropic", anthropic.read_call),
}
"""The formats that identify themselves by their ``type``."""
