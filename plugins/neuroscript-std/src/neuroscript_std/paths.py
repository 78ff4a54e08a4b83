"""Path-Lite: the path to a nested value, as a string such as ``a.b[0].c`` or as a list of keys and indexes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import attrs

from neuroscript import ToolFailed

MAX_SEGMENTS: Final = 128
MAX_SEGMENT_CHARS: Final = 256
"""Characters."""

SEGMENT: Final = re.compile(r"(?:(?:\A|(?<=[^.])\.)(?P<key>[^.\[\]]{1,256})|\[(?P<index>[0-9]{1,18})\])")
"""One segment of a path with its leading separator; 18 digits fit into 64 bits."""

LITERAL: Final = re.compile(r"[.\[\]]|\A\Z")
MAX_SHOWN_CHARS: Final = 64
"""Maximum characters of the caller's path or key in an error message."""

ABSENT: Final = object()
"""Marks a missing value."""

Segments = tuple[str | int, ...]
"""Keys of maps and indexes of lists, outermost first."""


def parse_path(path: Any) -> Segments:
    """Parse a path into its segments.

    Args:
        path: A Path-Lite string, or a list of keys and indexes, in which keys can contain dots and brackets.

    Raises:
        ToolFailed: shape.bad_path.
    """
    match path:
        case str():
            return _from_text(path)
        case list() | tuple():
            return _from_list(path)
        case _:
            raise _bad_path(type_name(path))


def is_path(text: str) -> bool:
    """Return whether a string is a valid path."""
    try:
        return bool(parse_path(text))
    except ToolFailed:
        return False


def format_path(segments: Sequence[str | int]) -> str:
    """Return segments for an error message: as Path-Lite, keys with dots or brackets quoted, truncated."""
    parts = [_spelt(segment) for segment in segments[: MAX_SHOWN_CHARS + 1]]
    return escape_name("".join(parts).removeprefix(".")) or "value"


def escape_name(name: str) -> str:
    """Return a name from the caller for an error message: truncated, with non-printable characters escaped."""
    shortened = name if len(name) <= MAX_SHOWN_CHARS else f"{name[:MAX_SHOWN_CHARS]}…"
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in shortened)


def type_name(value: object) -> str:
    """Return the name of a value's type for an error message."""
    return "None" if value is None else type(value).__name__


@attrs.frozen(eq=False, repr=False)
class Reader:
    """Reads values at paths without changing the data.

    Attributes:
        case_insensitive: Whether a missing key matches the one key that differs from it only in case.
    """

    case_insensitive: bool = False
    _folded: dict[int, dict[str, list[str]]] = attrs.field(factory=dict, init=False, repr=False)

    def read(self, value: Any, segments: Segments, *, missing_ok: bool = False) -> Any:
        """Return the value at a path.

        Args:
            missing_ok: Whether to return None if there is no value.

        Raises:
            ToolFailed: shape.missing, if a key or an index does not exist or the path continues after None;
                shape.wrong_type, if the path continues into a value that is not a map or list; shape.ambiguous, if
                several keys differ only in case.
        """
        for depth, segment in enumerate(segments):
            value = self._step(value, segments[: depth + 1], segment)
            if value is ABSENT:
                return _check_missing(segments[: depth + 1], missing_ok)
        return value

    def _step(self, value: Any, path: Segments, segment: str | int) -> Any:
        match value, segment:
            case None, _:
                return ABSENT
            case dict(), str():
                return value[segment] if segment in value else self._in_another_case(value, path, segment)
            case list(), int():
                return value[segment] if segment < len(value) else ABSENT
            case _:
                expected = "map" if isinstance(segment, str) else "list"
                text = f"{format_path(path[:-1])}: expected {expected}, got {type_name(value)}"
                raise ToolFailed(text, code="shape.wrong_type", retry="model")

    def _in_another_case(self, value: dict[str, Any], path: Segments, key: str) -> Any:
        if not self.case_insensitive:
            return ABSENT
        if id(value) not in self._folded:
            self._folded[id(value)] = fold_keys(value)
        alike = self._folded[id(value)].get(key.casefold(), [])
        if len(alike) > 1:
            text = f"{format_path(path)}: expected one key, got {len(alike)} that differ only in case"
            raise ToolFailed(text, code="shape.ambiguous", retry="model")
        return value[alike[0]] if alike else ABSENT


def fold_keys(value: dict[str, Any]) -> dict[str, list[str]]:
    """Return the keys of a map, grouped by their case-folded form."""
    found: dict[str, list[str]] = {}
    for key in value:
        found.setdefault(key.casefold(), []).append(key)
    return found


def _from_text(text: str) -> Segments:
    segments: list[str | int] = []
    position = 0
    while position < len(text) or not segments:
        found = SEGMENT.match(text, position)
        if found is None or len(segments) == MAX_SEGMENTS:
            raise _bad_path("another string")
        segments.append(int(found["index"]) if found["key"] is None else found["key"])
        position = found.end()
    return tuple(segments)


def _from_list(path: Sequence[Any]) -> Segments:
    if not 0 < len(path) <= MAX_SEGMENTS:
        raise _bad_path(f"a list of {len(path)}")
    return tuple(_segment(index, each) for index, each in enumerate(path))


def _segment(index: int, segment: Any) -> str | int:
    match segment:
        case str() if 0 < len(segment) <= MAX_SEGMENT_CHARS:
            return segment
        case int() if type(segment) is not bool and segment >= 0:
            return segment
        case float() if segment.is_integer() and segment >= 0:
            return int(segment)
        case str():
            got = f"a string of {len(segment)}"
        case int() | float() if type(segment) is not bool:
            got = "another number"
        case _:
            got = type_name(segment)
    text = f"path[{index}]: expected a key of 1 to {MAX_SEGMENT_CHARS} characters or an integer from 0, got {got}"
    raise ToolFailed(text, code="shape.bad_path", retry="model")


def _bad_path(got: str) -> ToolFailed:
    expected = f"1 to {MAX_SEGMENTS} keys and indexes, as a string such as a.b[0] or as a list"
    return ToolFailed(f"path: expected {expected}, got {got}", code="shape.bad_path", retry="model")


def _check_missing(path: Segments, missing_ok: bool) -> None:
    if not missing_ok:
        text = f"{format_path(path)}: expected a value, got nothing; set missing_ok to allow this"
        raise ToolFailed(text, code="shape.missing", retry="model")


def _spelt(segment: str | int) -> str:
    if isinstance(segment, int):
        return f"[{segment}]"
    return f"['{segment}']" if LITERAL.search(segment) else f".{segment}"
