"""Conversations for Google's Gemini API.

The API requires one result for each call, in the next content. It matches them by id if it sent ids, otherwise by name
and order, so generated ids are never sent to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from neuroscript.coercion.plain_data import readable_text, to_plain
from neuroscript.llm.wire.gemini.calls import KEY
from neuroscript.llm.wire.tools import arguments_as_map
from neuroscript.llm.wire.turns import Exchange, exchanges
from neuroscript.runtime.interfaces import ToolResult, Turn
from neuroscript.runtime.result_text import result_text
from neuroscript.runtime.wire_names import WireNames

GENERATED_ID: Final = re.compile(r"call_\d+")
"""A generated id, for a call that came without one."""


def conversation(turns: Sequence[Turn], names: WireNames | None = None) -> dict[str, Any]:
    """Return the request members that hold the turns: ``contents``, and ``systemInstruction`` if there is one.

    >>> conversation([Turn("system", "Be brief."), Turn("user", "Hello")])["contents"]
    [{'role': 'user', 'parts': [{'text': 'Hello'}]}]
    """
    found = exchanges(turns)
    contents = [content for each in found for content in _contents(each, names or WireNames())]
    system = "\n\n".join(each.turn.content for each in found if each.turn.role == "system")
    return (
        {"systemInstruction": {"parts": [{"text": system}]}, "contents": contents} if system else {"contents": contents}
    )


def to_parts(results: Iterable[ToolResult], *, names: WireNames | None = None) -> list[Any]:
    """Return the parts of the ``user`` content that returns results, which must directly follow the calls.

    Ids that `read_calls` generated, such as ``call_1``, are left out, because the API did not send them.

    >>> to_parts([ToolResult("", "math.add", 5)])
    [{'functionResponse': {'name': 'math__add', 'response': {'result': 5}}}]
    """
    return [_result("" if GENERATED_ID.fullmatch(each.id) else each.id, each, names or WireNames()) for each in results]


def _result(id: str, result: ToolResult, names: WireNames) -> dict[str, Any]:
    response = {"result": _value(result.value)} if result.ok else {"error": result_text(result, names)}
    data = {"name": names.wire(result.tool), "response": response}
    return {"functionResponse": {"id": id, **data} if id else data}


def _value(value: Any) -> Any:
    text = readable_text(value)
    return to_plain(value) if text is None else text


def _contents(exchange: Exchange, names: WireNames) -> list[dict[str, Any]]:
    turn = exchange.turn
    if turn.role == "system":
        return []
    if turn.role != "assistant":
        return _content("user", _text(turn.content))
    native = list((turn.native or {}).get(KEY) or ())
    content = _content("model", native or [*_text(turn.content), *_calls(turn, names)])
    ids = _ids(native, len(turn.tool_calls))
    results = [_result(id, result, names) for id, result in zip(ids, exchange.results, strict=True)]
    return [*content, *_content("user", results)]


def _content(role: str, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": role, "parts": parts}] if parts else []


def _text(text: str) -> list[dict[str, Any]]:
    return [{"text": text}] if text.strip() else []


def _calls(turn: Turn, names: WireNames) -> list[dict[str, Any]]:
    return [
        {"functionCall": {"name": names.wire(call.name), "args": arguments_as_map(call.arguments)}}
        for call in turn.tool_calls
    ]


def _ids(native: list[dict[str, Any]], count: int) -> list[str]:
    """Return the ids that the API itself sent for its calls, or ``""`` for each if it sent none."""
    native_ids = [part["functionCall"].get("id") or "" for part in native if "functionCall" in part]
    return native_ids if len(native_ids) == count else [""] * count
