"""Regular expressions that come to an end, with any pattern on any text.

The engine is RE2: linear in the text, bounded in memory, upstream's own syntax, and it lets other threads run during a
match. The ``regex`` package was measured beside it: its time limit holds only while it matches (a pattern of 981
characters compiled for 35 seconds, until 12 GB were used up), and even ``\\s+$`` on 100 kB of blanks ran into it.

RE2 can not be stopped within one match, so the cost of one is bounded beforehand, and the same call always has the
same outcome; only a search for many matches has a clock.

Source: upstream ``tools_string_regex.go``; RE2's syntax page; Go ``regexp``, for empty matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import monotonic
from typing import Any, Final, Protocol

from neuroscript import ToolFailed

LONGEST: Final = 1_000
"""Characters of a pattern."""

MEMORY: Final = 2 * 1024 * 1024
"""Bytes for one compiled pattern with what it remembers; the library keeps the last 128 of them."""

STEPS: Final = 300_000_000
"""Instructions of the pattern times bytes of the text, at most.

Of 3,000 generated patterns made to hurt, at this bound, three in a hundred took more than a second of one core, and the
worst took four.
"""

GROUPS_PER_STEP: Final = 8
"""How many groups cost as much again as a step without any, for each step copies them."""

MATCHES: Final = 100_000
"""How many matches one call may find."""

SECONDS: Final = 5.0
"""How long one call may look for further matches."""

FAULTS: Final[Mapping[str, str]] = {
    "missing ]": "a [ is not closed",
    "missing )": "a ( is not closed",
    "unexpected )": "a ) closes nothing",
    "trailing \\": "it ends in a backslash",
    "no argument for repetition operator": "there is nothing to repeat before *, +, ? or {}",
    "bad repetition operator": "two repetitions follow each other; put the first one in ()",
    "invalid repetition size": "counts go from low to high and up to 1,000, multiplied where they stand in each other",
    "invalid escape sequence": "a letter or digit behind a backslash has no meaning; there are no back-references",
    "invalid character class": "a range in [] goes backwards, or a class has no such name",
    "invalid named capture group": "the name of a group is letters, digits and _, in <>",
    "invalid perl operator": "there is no such group; look-around and atomic groups are not supported",
}
"""What is wrong with a pattern, by how RE2's message begins; its rest quotes the pattern."""


class Match(Protocol):
    """A place that fits."""

    def span(self, group: int = 0) -> tuple[int, int]:
        """Return where a group begins and ends, in bytes; -1 twice where it took no part."""


class Automaton(Protocol):
    """What RE2 makes of a pattern; texts are UTF-8."""

    @property
    def programsize(self) -> int: ...
    @property
    def groups(self) -> int: ...
    @property
    def groupindex(self) -> dict[str, int]: ...
    def search(self, text: bytes, pos: int | None = None) -> Match | None: ...


def compiled(pattern: str, *, groups: bool = False) -> Automaton:
    """Return what finds a pattern.

    Args:
        groups: Whether its matches know their groups; without them it is much quicker.

    Raises:
        ToolFailed: str.bad_pattern, str.pattern_too_costly.
    """
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.max_mem, options.log_errors, options.never_capture = MEMORY, False, not groups
    try:
        automaton: Automaton = re2.compile(pattern, options)
    except re2.error as error:
        raise _refused(error) from None
    return automaton


def _refused(error: Any) -> ToolFailed:
    message = error.args[0].decode(errors="replace")
    if message.startswith("pattern too large"):
        return _too_costly("it is too large when its counts are written out; give smaller counts")
    known = (sentence for beginning, sentence in FAULTS.items() if message.startswith(beginning))
    return _bad(next(known, "it is not in RE2's syntax"))


def fits(automaton: Automaton, data: bytes) -> bool:
    """Tell whether there is a match anywhere, or raise a `ToolFailed`, str.pattern_too_costly."""
    _refuse_costly(automaton, data)
    return automaton.search(data) is not None


def matches(automaton: Automaton, data: bytes) -> Iterator[Match]:
    """Yield the matches from left to right; an empty one directly behind another does not count.

    Raises:
        ToolFailed: str.bad_pattern, str.pattern_too_costly.

    Source: Go ``regexp.allMatches``.
    """
    _refuse_costly(automaton, data)
    deadline = monotonic() + SECONDS
    found, place, last = 0, 0, -1
    while place <= len(data) and (match := automaton.search(data, place)) is not None:
        start, end = match.span()
        if start < end or start != last:
            found += 1
            _refuse_endless(found, deadline)
            _refuse_parted(data, start, end)
            yield match
        place = end if end > place else place + _width(data, place)
        last = end


def _refuse_costly(automaton: Automaton, data: bytes) -> None:
    if automaton.programsize * (1 + automaton.groups / GROUPS_PER_STEP) * len(data) > STEPS:
        raise _too_costly("it is too large for so long a text; give a simpler pattern, smaller counts or less text")


def _refuse_endless(found: int, deadline: float) -> None:
    if found > MATCHES or monotonic() > deadline:
        raise _too_costly("it finds too many matches, or takes too long for them; search less text at once")


def _refuse_parted(data: bytes, *places: int) -> None:
    """Raise a `ToolFailed` where a match begins or ends within a character."""
    if any(b"\x80" <= data[place : place + 1] < b"\xc0" for place in places):
        raise _bad(r"it parts a character; write . in place of \C")


def _width(data: bytes, place: int) -> int:
    """Return how many bytes the character at *place* has, 1 at the end."""
    first = data[place] if place < len(data) else 0
    return 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


def _bad(why: str) -> ToolFailed:
    return ToolFailed(f"the pattern is not valid: {why}", code="str.bad_pattern", retry="model")


def _too_costly(why: str) -> ToolFailed:
    return ToolFailed(f"the pattern costs too much: {why}", code="str.pattern_too_costly", retry="model")
