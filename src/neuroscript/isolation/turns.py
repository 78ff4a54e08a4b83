"""Turns of a conversation with a model as plain data, for a tool in a worker that asks the model of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuroscript.errors import CallError, ToolFailed
from neuroscript.isolation.frames import ProtocolError
from neuroscript.runtime.interfaces import ToolCall, ToolResult, Turn


def turn_to_data(turn: Turn) -> list[Any]:
    """Return a turn as plain data."""
    calls = [[each.name, each.arguments, each.id] for each in turn.tool_calls]
    results = [[each.id, each.tool, each.value, _error_to_data(each.error)] for each in turn.tool_results]
    return [turn.role, turn.content, calls, results, None if turn.native is None else dict(turn.native)]


def turn_from_data(data: Any) -> Turn:
    """Return the turn for what `turn_to_data` returned.

    Raises:
        ProtocolError: It is something else.
    """
    try:
        role, content, calls, results, native = data
        return Turn(
            role,
            content,
            tuple(ToolCall(name, arguments, id=id) for name, arguments, id in calls),
            tuple(ToolResult(id, tool, value, error=_error_from(error)) for id, tool, value, error in results),
            native=native,
        )
    except (TypeError, ValueError):
        raise ProtocolError("it sent a turn in an unknown form") from None


def turns_from_data(data: Any) -> Sequence[Turn]:
    """Return several turns, or raise `ProtocolError`."""
    if type(data) is not list:
        raise ProtocolError("it sent turns in an unknown form")
    return [turn_from_data(each) for each in data]


def _error_to_data(error: CallError | None) -> list[str] | None:
    if error is None:
        return None
    return [str(error).removeprefix(f"{error.tool}: "), error.tool, error.code, error.retry]


def _error_from(data: Any) -> ToolFailed | None:
    if data is None:
        return None
    text, tool, code, retry = data
    return ToolFailed(text, tool=tool, code=code, retry=retry)
