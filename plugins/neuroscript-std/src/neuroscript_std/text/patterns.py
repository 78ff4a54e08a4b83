"""Regular expressions with bounded cost, for any pattern and any string.

The engine is RE2. It is linear in the size of the string, bounded in memory, and releases the GIL during a match. The
``regex`` package was measured as an alternative, but its timeout covers only matching (a pattern of 981 characters
compiled for 35 seconds and used 12 GB), and even ``\\s+$`` on 100 kB of spaces exceeded it.

RE2 cannot be interrupted during one match, so the cost of a match is bounded in advance and the same call always has
the same outcome. Only a search for many matches has a time limit. Empty matches follow the rules of Go's ``regexp``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import monotonic
from typing import Any, Final, Protocol

from neuroscript import ToolFailed

MAX_PATTERN_CHARS: Final = 1_000
"""Characters of a pattern."""

MAX_MEMORY_BYTES: Final = 2 * 1024 * 1024
"""Bytes of memory for one compiled pattern and its cache; the library caches the last 128 patterns."""

MAX_STEPS: Final = 300_000_000
"""Maximum product of the pattern's instructions and the bytes of the string.

At this bound, 3 percent of 3,000 patterns generated to be slow took more than a second on one core. The slowest took
four seconds.
"""

GROUPS_PER_STEP: Final = 8
"""Number of groups that double the cost of a step; every step copies the groups."""

MAX_MATCHES: Final = 100_000
"""Maximum number of matches per call."""

TIMEOUT_SECONDS: Final = 5.0
"""Time limit of one call that searches for further matches."""

FAULTS: Final[Mapping[str, str]] = {
    "missing ]": "unclosed [",
    "missing )": "unclosed (",
    "unexpected )": "unmatched )",
    "trailing \\": "trailing backslash",
    "no argument for repetition operator": "nothing to repeat before *, +, ? or {}",
    "bad repetition operator": "two repetitions in a row; put the first one in ()",
    "invalid repetition size": "a repetition count must be ascending and at most 1,000, nested counts multiplied",
    "invalid escape sequence": "unknown escape sequence; backreferences are not supported",
    "invalid character class": "invalid range or unknown class name in []",
    "invalid named capture group": "a group name must be letters, digits and _, in <>",
    "invalid perl operator": "unknown group syntax; lookaround and atomic groups are not supported",
}
"""Error messages, by the beginning of RE2's message; the rest of that quotes the pattern, so it is dropped."""


class Match(Protocol):
    """One match of a pattern."""

    def span(self, group: int = 0) -> tuple[int, int]:
        """Return the start and end of a group in bytes; both are -1 if the group did not participate."""


class Automaton(Protocol):
    """A pattern compiled by RE2; strings are UTF-8 bytes."""

    @property
    def programsize(self) -> int: ...
    @property
    def groups(self) -> int: ...
    @property
    def groupindex(self) -> dict[str, int]: ...
    def search(self, text: bytes, pos: int | None = None) -> Match | None: ...


def compile_pattern(pattern: str, *, groups: bool = False) -> Automaton:
    """Compile a pattern.

    Args:
        groups: Whether matches record their groups; without groups, matching is much faster.

    Raises:
        ToolFailed: str.bad_pattern, str.pattern_too_costly.
    """
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.max_mem, options.log_errors, options.never_capture = MAX_MEMORY_BYTES, False, not groups
    try:
        automaton: Automaton = re2.compile(pattern, options)
    except re2.error as error:
        raise _pattern_error(error) from None
    return automaton


def _pattern_error(error: Any) -> ToolFailed:
    message = error.args[0].decode(errors="replace")
    if message.startswith("pattern too large"):
        return _too_costly("it is too large with its repetition counts expanded; use smaller counts")
    known = (sentence for beginning, sentence in FAULTS.items() if message.startswith(beginning))
    return _invalid_pattern(next(known, "it is not valid RE2 syntax"))


def has_match(automaton: Automaton, data: bytes) -> bool:
    """Return whether there is a match anywhere, or raise `ToolFailed` with the code str.pattern_too_costly."""
    _refuse_costly(automaton, data)
    return automaton.search(data) is not None


def find_matches(automaton: Automaton, data: bytes) -> Iterator[Match]:
    """Yield the matches from left to right; an empty match directly after another match is skipped.

    Raises:
        ToolFailed: str.bad_pattern, str.pattern_too_costly.
    """
    _refuse_costly(automaton, data)
    deadline = monotonic() + TIMEOUT_SECONDS
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
    if automaton.programsize * (1 + automaton.groups / GROUPS_PER_STEP) * len(data) > MAX_STEPS:
        raise _too_costly(
            "it is too complex for a string of this length; use a simpler pattern, smaller counts or a shorter string"
        )


def _refuse_endless(found: int, deadline: float) -> None:
    if found > MAX_MATCHES or monotonic() > deadline:
        raise _too_costly("it has too many matches or searching takes too long; search a shorter string")


def _refuse_parted(data: bytes, *places: int) -> None:
    """Raise `ToolFailed` if a match starts or ends inside a character."""
    if any(b"\x80" <= data[place : place + 1] < b"\xc0" for place in places):
        raise _invalid_pattern(r"it splits a character; use . instead of \C")


def _width(data: bytes, place: int) -> int:
    """Return the number of bytes of the character at *place*; 1 at the end."""
    first = data[place] if place < len(data) else 0
    return 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


def _invalid_pattern(why: str) -> ToolFailed:
    return ToolFailed(f"invalid pattern: {why}", code="str.bad_pattern", retry="model")


def _too_costly(why: str) -> ToolFailed:
    return ToolFailed(f"pattern too costly: {why}", code="str.pattern_too_costly", retry="model")
