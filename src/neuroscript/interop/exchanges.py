"""A conversation as APIs want it that ask for one result of each call, at once after the turn that asked for them.

Source: Anthropic API reference, "Tool use" (``tool_result`` blocks); Gemini API reference, "Function calling".
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Final

import attrs

from neuroscript.errors import CallError
from neuroscript.runtime import ToolCall, ToolResult, Turn

UNMADE: Final = CallError("this call was not made", retry="later")
"""What came of a call of which a conversation tells no result."""


@attrs.frozen
class Exchange:
    """A turn that is no turn of results, and what came of the calls that it asks for.

    Attributes:
        turn: The turn.
        results: One for each of its calls, in their order; one that nobody gave says that the call was not made.
    """

    turn: Turn
    results: tuple[ToolResult, ...] = ()


def exchanges(turns: Iterable[Turn]) -> list[Exchange]:
    """Return the turns with their results; a result of no call is left out, and what else its turn says stays."""
    open: list[_Open] = []
    asked: _Open | None = None
    for turn in turns:
        if turn.role == "assistant":
            asked = _Open.of(turn)
            open.append(asked)
            continue
        for result in turn.tool_results:
            if asked is not None:
                asked.take(result)
        if turn.content.strip() or (turn.role == "user" and not turn.tool_results):
            open.append(_Open(turn))
    return [each.closed() for each in open]


@attrs.frozen
class _Open:
    """A turn whose results may be still to come; the places of its calls that have none stand by their ids."""

    turn: Turn
    places: dict[str, deque[int]] = attrs.field(factory=dict)
    found: dict[int, ToolResult] = attrs.field(factory=dict)

    @classmethod
    def of(cls, turn: Turn) -> _Open:
        places: defaultdict[str, deque[int]] = defaultdict(deque)
        for index, call in enumerate(turn.tool_calls):
            places[call.id].append(index)
        return cls(turn, dict(places))

    def take(self, result: ToolResult) -> None:
        places = self.places.get(result.id)
        if places:
            self.found[places.popleft()] = result

    def closed(self) -> Exchange:
        calls = self.turn.tool_calls if self.turn.role == "assistant" else ()
        return Exchange(self.turn, tuple(self.found.get(at) or _unmade(call) for at, call in enumerate(calls)))


def _unmade(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, call.name, error=UNMADE)
