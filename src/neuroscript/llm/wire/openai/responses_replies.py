"""Replies of OpenAI's Responses API."""

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

KEY: Final = "openai.responses"
"""The key in `Turn.native` for this API."""

UNFINISHED: Final = frozenset({"cancelled", "in_progress", "queued"})


def read_responses(reply: Any, names: WireNames | None = None) -> Reply:
    """Return the reply in a complete response.

    Args:
        reply: The SDK object, or plain data.
        names: The tool names that the model uses; by default ``WireNames()``.

    Raises:
        LLMError: ``llm.format`` if it is not a response of this API, ``llm.empty`` if it has no content,
            ``llm.incomplete`` if it is incomplete, or the error with which it failed.
    """
    data = reply_of(reply, "output")
    status = text_at(data, "status")
    if status == "failed":
        raise failure(data.get("error"))
    if status in UNFINISHED:
        raise LLMError(f"the reply is not complete but {status}", code="llm.incomplete", retry="later")
    turn = turn_of(data["output"], names or WireNames())
    return finish_reply(turn, _stop(data), usage_of(data.get("usage"), "input_tokens", "output_tokens"))


def _stop(data: Mapping[str, Any]) -> Stop:
    if any(part.get("type") == "refusal" for item in data["output"] for part in parts_of(item)):
        return "refused"
    if data.get("status") != "incomplete":
        return "end"
    match data.get("incomplete_details"):
        case {"reason": "content_filter"}:
            return "refused"
        case _:
            return "length"


def turn_of(output: list[Any], names: WireNames) -> Turn:
    """Return the turn in output items; a refusal is part of its content."""
    for index, item in enumerate(output):
        if not isinstance(item, dict):
            raise format_error(f"output[{index}]: expected a map, got {type_name(item)}")
    calls = with_ids([item for item in output if item.get("type") == "function_call"])
    rest = iter(calls)
    items = [next(rest) if item.get("type") == "function_call" else item for item in output]
    native = [{key: each for key, each in item.items() if each is not None} for item in items]
    text = "".join(text_at(part, part["type"].removeprefix("output_")) for item in output for part in parts_of(item))
    return Turn("assistant", text, calls_of(calls, names), native={KEY: native})


def parts_of(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the text and refusal parts of a message item."""
    content = item.get("content") if item.get("type") == "message" else None
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") in ("output_text", "refusal")]
