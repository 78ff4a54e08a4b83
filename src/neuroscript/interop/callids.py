"""The ids of calls: each once in a reply, and each once in a conversation, as an API takes them.

Source: issue "Models", model APIs; OpenAI and Anthropic API references, ids of calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from neuroscript.runtime import ToolCall, Turn

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
