"""The ids of calls: each once in a reply, and each once in a conversation, as an API takes them.

Source: issue "Models", model APIs; OpenAI and Anthropic API references, ids of calls.

A conversation as APIs want it that ask for one result of each call, at once after the turn that asked for them.

Source: Anthropic API reference, "Tool use" (``tool_result`` blocks); Gemini API reference, "Function calling".
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from neuroscript.errors import CallError
from neuroscript.runtime.interfaces import ToolCall, ToolResult, Turn

KEPT = 30
"""How many characters are kept of an id that gives way to another."""


def filled_ids(ids: Sequence[Any]) -> list[str]:
    """Return ids of calls, each once; one that is missing, or is there twice, becomes ``call_1`` for the first call.

    >>> filled_ids(["a", None, "a"])
    ['a', 'call_2', 'call_3']
    """
    filled: list[str] = []
    for count, id in enumerate(ids, 1):
        known = isinstance(id, str) and id and id not in filled
        filled.append(
            id if known else _free("call", count, {*filled, *(each for each in ids if isinstance(each, str))})
        )
    return filled


@attrs.frozen
class Ids:
    """The ids of a conversation; one that stands already, or that its API would refuse, gives way to another.

    Attributes:
        fits: What the API takes.
        known: Those that stand.
    """

    fits: re.Pattern[str]
    known: set[str] = attrs.field(factory=set)

    @classmethod
    def of(cls, fits: re.Pattern[str], turns: Iterable[Turn], key: str) -> Ids:
        """Return the ids of turns; those of a turn that goes back as it was, under *key*, stand already."""
        native = (turn for turn in turns if (turn.native or {}).get(key))
        return cls(fits, {call.id for turn in native for call in turn.tool_calls})

    def told(self, calls: Iterable[ToolCall]) -> list[str]:
        """Return the ids of the calls of a turn that does not go back as it was."""
        return [self._told(call.id) for call in calls]

    def _told(self, id: str) -> str:
        if id in self.known or not self.fits.fullmatch(id):
            id = _free(id[:KEPT] if self.fits.fullmatch(id[:KEPT]) else "call", len(self.known) + 1, self.known)
        self.known.add(id)
        return id


def _free(word: str, count: int, taken: set[str]) -> str:
    while f"{word}_{count}" in taken:
        count += 1
    return f"{word}_{count}"


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
