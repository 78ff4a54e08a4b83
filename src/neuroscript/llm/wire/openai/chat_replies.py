"""Replies of Chat Completions.

Source: OpenAI API reference, "Chat Completions", the chat completion object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from neuroscript.coercion.context import type_name
from neuroscript.errors import LLMError
from neuroscript.llm.wire.openai.replies import calls_of, failure, reply_of, text_at, usage_of, with_ids
from neuroscript.llm.wire.replies import settled
from neuroscript.llm.wire.sdk_data import strange
from neuroscript.runtime.interfaces import Turn
from neuroscript.runtime.replies import Reply, Stop
from neuroscript.runtime.wire_names import WireNames

KEY: Final = "openai.chat"
"""What stands in `Turn.native` for this API."""

STOPS: Final[Mapping[str, Stop]] = {"length": "length", "content_filter": "refused"}
"""Why a turn ended, by ``finish_reason``; whether tools are asked for is told by the calls themselves."""


def read_chat(reply: Any, names: WireNames | None = None) -> Reply:
    """Return the reply that a whole answer holds, the first of its choices.

    Args:
        reply: The SDK's object, or plain data.
        names: What the model calls the tools; by default as the rule spells them.

    Raises:
        LLMError: ``llm.format``, it is no answer of this API; ``llm.empty``, it holds no choice, or nothing is said.
    """
    data = reply_of(reply, "choices")
    if not data["choices"]:
        raise LLMError("the reply holds no choice", code="llm.empty", retry="later")
    choice = data["choices"][0]
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        raise strange("choices[0]: expected a map with a message")
    if choice.get("error"):
        raise failure(choice["error"])
    message = choice["message"]
    turn = turn_of(message, names or WireNames())
    stop: Stop = "refused" if text_at(message, "refusal") else STOPS.get(text_at(choice, "finish_reason"), "end")
    return settled(turn, stop, usage_of(data.get("usage"), "prompt_tokens", "completion_tokens"))


def turn_of(message: Mapping[str, Any], names: WireNames) -> Turn:
    """Return the turn that a message holds; a refusal is what was said, too."""
    items = message.get("tool_calls") or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise strange(f"tool_calls: expected a list of maps, got {type_name(items)}")
    calls = with_ids([{**item, "type": "function"} for item in items])
    native = {"role": "assistant", "content": None, **{key: each for key, each in message.items() if each is not None}}
    if calls:
        native["tool_calls"] = calls
    said = f"{text_of(message.get('content'))}{text_at(message, 'refusal')}"
    return Turn("assistant", said, calls_of(calls, names), native={KEY: native})


def text_of(content: Any) -> str:
    """Return what a message says: its text, or that of its parts."""
    match content:
        case str():
            return content
        case list():
            return "".join(text_of(part.get("text")) for part in content if isinstance(part, dict))
        case _:
            return ""
