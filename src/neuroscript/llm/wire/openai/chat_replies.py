"""Replies of Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from neuroscript.coercion.context import type_name
from neuroscript.errors import LLMError
from neuroscript.llm.wire.openai.replies import calls_of, failure, reply_of, text_at, usage_of, with_ids
from neuroscript.llm.wire.replies import finish_reply
from neuroscript.llm.wire.sdk_data import format_error
from neuroscript.runtime.interfaces import Turn
from neuroscript.runtime.replies import Reply, Stop
from neuroscript.runtime.wire_names import WireNames

KEY: Final = "openai.chat"
"""The key in `Turn.native` for this API."""

STOPS: Final[Mapping[str, Stop]] = {"length": "length", "content_filter": "refused"}
"""The meaning of ``finish_reason``; whether tools are requested follows from the calls themselves."""


def read_chat(reply: Any, names: WireNames | None = None) -> Reply:
    """Return the reply in a complete response; only its first choice is read.

    Args:
        reply: The SDK object, or plain data.
        names: The tool names that the model uses; by default ``WireNames()``.

    Raises:
        LLMError: ``llm.format`` if it is not a response of this API; ``llm.empty`` if it has no choices or no content.
    """
    data = reply_of(reply, "choices")
    if not data["choices"]:
        raise LLMError("the reply has no choices", code="llm.empty", retry="later")
    choice = data["choices"][0]
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        raise format_error("choices[0]: expected a map with a message")
    if choice.get("error"):
        raise failure(choice["error"])
    message = choice["message"]
    turn = turn_of(message, names or WireNames())
    stop: Stop = "refused" if text_at(message, "refusal") else STOPS.get(text_at(choice, "finish_reason"), "end")
    return finish_reply(turn, stop, usage_of(data.get("usage"), "prompt_tokens", "completion_tokens"))


def turn_of(message: Mapping[str, Any], names: WireNames) -> Turn:
    """Return the turn in a message; a refusal is part of its content."""
    items = message.get("tool_calls") or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise format_error(f"tool_calls: expected a list of maps, got {type_name(items)}")
    calls = with_ids([{**item, "type": "function"} for item in items])
    native = {"role": "assistant", "content": None, **{key: each for key, each in message.items() if each is not None}}
    if calls:
        native["tool_calls"] = calls
    text = f"{text_of(message.get('content'))}{text_at(message, 'refusal')}"
    return Turn("assistant", text, calls_of(calls, names), native={KEY: native})


def text_of(content: Any) -> str:
    """Return the text of a message: its content, or that of its parts."""
    match content:
        case str():
            return content
        case list():
            return "".join(text_of(part.get("text")) for part in content if isinstance(part, dict))
        case _:
            return ""
