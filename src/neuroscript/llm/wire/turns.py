"""Call ids and conversations in the form that model APIs accept.

Ids are unique within a reply and within a conversation. Every call has exactly one result, directly after the turn that
requested it.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from neuroscript.errors import CallError
from neuroscript.runtime.interfaces import ToolCall, ToolResult, Turn

KEPT_ID_CHARS = 30
"""Maximum characters taken from an id that is replaced."""


def unique_ids(ids: Sequence[Any]) -> list[str]:
    """Return unique call ids; a missing or repeated id is replaced, by ``call_1`` for the first call.

    >>> unique_ids(["a", None, "a"])
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
    """The call ids of a conversation; an id that is taken or that the API would reject is replaced.

    Attributes:
        fits: The pattern of ids that the API accepts.
        known: The ids that are taken.
    """

    fits: re.Pattern[str]
    known: set[str] = attrs.field(factory=set)

    @classmethod
    def of(cls, fits: re.Pattern[str], turns: Iterable[Turn], key: str) -> Ids:
        """Return the ids of *turns*; those of turns with a native form under *key* are taken already."""
        native = (turn for turn in turns if (turn.native or {}).get(key))
        return cls(fits, {call.id for turn in native for call in turn.tool_calls})

    def ids_to_send(self, calls: Iterable[ToolCall]) -> list[str]:
        """Return the ids to send for the calls of a turn that has no native form."""
        return [self._unique_id(call.id) for call in calls]

    def _unique_id(self, id: str) -> str:
        if id in self.known or not self.fits.fullmatch(id):
            id = _free(
                id[:KEPT_ID_CHARS] if self.fits.fullmatch(id[:KEPT_ID_CHARS]) else "call",
                len(self.known) + 1,
                self.known,
            )
        self.known.add(id)
        return id


def _free(word: str, count: int, taken: set[str]) -> str:
    while f"{word}_{count}" in taken:
        count += 1
    return f"{word}_{count}"


CALL_NOT_MADE: Final = CallError("this call was not made", retry="later")
"""The result of a call for which the conversation contains none."""


@attrs.frozen
class Exchange:
    """A turn other than a turn of results, with the results of its calls.

    Attributes:
        turn: The turn.
        results: One result for each call, in order. A missing result becomes an error that says the call was not made.
    """

    turn: Turn
    results: tuple[ToolResult, ...] = ()


def exchanges(turns: Iterable[Turn]) -> list[Exchange]:
    """Return the turns paired with their results.

    A result without a call is dropped; the content of its turn stays.
    """
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
    """A turn that may still receive results, with the positions of its unanswered calls by id."""

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
    return ToolResult(call.id, call.name, error=CALL_NOT_MADE)
