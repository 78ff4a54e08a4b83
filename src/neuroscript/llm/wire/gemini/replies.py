"""Replies of Google's Gemini API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.errors import ArgumentError, LLMError
from neuroscript.llm.wire.gemini.calls import KEY, read_call
from neuroscript.llm.wire.gemini.sdk_data import to_wire
from neuroscript.llm.wire.replies import finish_reply, reported_error
from neuroscript.llm.wire.sdk_data import count_in, format_error, map_in, maps_in, text_in
from neuroscript.llm.wire.turns import unique_ids
from neuroscript.runtime.interfaces import ToolCall, Turn
from neuroscript.runtime.replies import Reply, Stop, Usage
from neuroscript.runtime.wire_names import WireNames

REFUSED: Final = frozenset(
    {
        "BLOCKLIST",
        "ESCALATION",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "IMAGE_SAFETY",
        "LANGUAGE",
        "MODEL_ARMOR",
        "PROHIBITED_CONTENT",
        "PUP_LIMITED_DISABLED",
        "RECITATION",
        "SAFETY",
        "SPII",
    }
)
"""Finish reasons that mean the model or a filter refused to reply."""

LENGTH: Final = frozenset({"MAX_TOKENS", "CONTINUATION"})
"""Finish reasons that mean the reply was too long."""

MALFORMED: Final = frozenset({"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"})
"""Finish reasons for output that the API itself could not parse; a retry may succeed."""

INPUT: Final = ("promptTokenCount", "toolUsePromptTokenCount")
OUTPUT: Final = ("candidatesTokenCount", "thoughtsTokenCount")


def read(response: Any, names: WireNames | None = None) -> Reply:
    """Return the reply in a response: an SDK's ``GenerateContentResponse`` or plain data.

    A call without an id gets a generated one, ``call_1`` for the first call of the turn.

    Raises:
        LLMError: ``llm.format`` if it is not a response, ``llm.empty`` if it has no content, or the error that the
            server
            sent instead.
    """
    data = response_data(response)
    if not data.keys() & {"candidates", "promptFeedback", "usageMetadata"}:
        raise format_error("it has no candidates")
    candidate = candidate_of(data)
    parts = parts_of(candidate)
    return reply_of(parts, reason_of(data, candidate), usage_of(data), names or WireNames())


def read_calls(response: Any, *, names: WireNames | None = None) -> list[ToolCall]:
    """Return the calls of a response in order, with canonical names; other content is ignored.

    >>> part = {"functionCall": {"name": "math__add", "args": {"num1": 2}}}
    >>> read_calls({"candidates": [{"content": {"parts": [part]}}]})
    [ToolCall(name='math.add', arguments={'num1': 2}, id='call_1')]
    """
    return list(calls_of(parts_of(candidate_of(response_data(response))), names or WireNames()))


def response_data(response: Any) -> dict[str, Any]:
    """Return a response or a chunk in wire form; raise the error if it reports one."""
    data = to_wire(response)
    error = data.get("error")
    if isinstance(error, Mapping):
        raise reported_error(error.get("status"), error.get("code"))
    return data


def candidate_of(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first candidate, or an empty map."""
    return next(iter(maps_in(data, "candidates")), {})


def parts_of(candidate: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the parts of a candidate."""
    return maps_in(map_in(candidate, "content"), "parts")


def reason_of(data: Mapping[str, Any], candidate: Mapping[str, Any]) -> str:
    """Return the finish reason, or ``""`` if it is missing; a blocked prompt counts as ``SAFETY``."""
    reason = text_in(candidate, "finishReason").upper()
    return "SAFETY" if not reason and map_in(data, "promptFeedback").get("blockReason") else reason


def usage_of(data: Mapping[str, Any]) -> Usage:
    """Return the token counts; thoughts count as output."""
    counted = map_in(data, "usageMetadata")
    return Usage(count_in(counted, *INPUT), count_in(counted, *OUTPUT))


def reply_of(
    parts: Sequence[Mapping[str, Any]],
    reason: str,
    usage: Usage,
    names: WireNames,
    raw_arguments: Mapping[int, str] | None = None,
) -> Reply:
    """Return the reply of a candidate.

    Args:
        raw_arguments: Arguments that are not a map, by the index of their part.

    Raises:
        LLMError: ``llm.empty``, if the reply is empty or the API could not parse it.
    """
    text = "".join(visible_text(part) for part in parts)
    calls = calls_of(parts, names, raw_arguments)
    if reason in MALFORMED and not calls:
        raise LLMError("the model's server could not parse the model's reply", code="llm.empty", retry="later")
    return finish_reply(Turn("assistant", text, calls, native={KEY: list(parts)}), _stop(reason), usage)


def visible_text(part: Mapping[str, Any]) -> str:
    """Return the text of a part that is meant for the reader; thoughts are not."""
    return "" if part.get("thought") else text_in(part, "text")


def calls_of(
    parts: Sequence[Mapping[str, Any]], names: WireNames, raw_arguments: Mapping[int, str] | None = None
) -> tuple[ToolCall, ...]:
    """Return the calls in *parts*; a call without an id gets its number in the turn."""
    found = [(at, _call(part)) for at, part in enumerate(parts) if "functionCall" in part]
    ids = unique_ids([call.id for _, call in found])
    return tuple(
        ToolCall(names.tool(call.name), (raw_arguments or {}).get(at, call.arguments), id=id)
        for id, (at, call) in zip(ids, found, strict=True)
    )


def _call(part: Mapping[str, Any]) -> ToolCall:
    try:
        call = read_call(part)
    except ArgumentError as error:
        raise format_error(f"it contains an invalid call: {error}") from None
    return call if call.arguments else attrs.evolve(call, arguments={})


def _stop(reason: str) -> Stop:
    if reason in REFUSED:
        return "refused"
    return "length" if reason in LENGTH else "end"
