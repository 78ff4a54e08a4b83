r"""TOML parsed into plain values, with the line number of each.

`tomllib` does not report lines. A scanner therefore reads the text first: it finds where keys, strings, arrays and
tables begin and end, and leaves validation to `tomllib`. It stops at the first construct that it does not know; places
after that get the line of the nearest known table or array around them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from neuroscript.io.text import escape

Place = tuple[str | int, ...]
"""The keys and array indexes that lead to a value, from the outermost table."""

MAX_DEPTH: Final = 16
"""Maximum number of keys and indexes in the path of a value."""

MAX_VALUE_CHARS: Final = 200
"""Maximum number of characters of a value other than a string. Python rejects numbers of several thousand digits."""

MAX_MESSAGE_CHARS: Final = 200
"""Maximum number of characters of a `tomllib` message that are reported; some messages repeat a key."""

GAP: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
BLANKS: Final = re.compile(r"[ \t]*")
KEY: Final = re.compile(r'[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
BARE: Final = re.compile(r"[^,\]}#\n]+")
TEXT: Final = re.compile(
    r'"""(?:(?>[^"\\]+)|\\.|"{1,2}(?!"))*"{3,5}'
    r"|'''(?:(?>[^']+)|'{1,2}(?!'))*'{3,5}"
    r'|"(?:(?>[^"\\\n]+)|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
POSITION: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class TomlError(Exception):
    """Invalid TOML text, or TOML text outside the limits.

    Attributes:
        line: The line, from 1.
        hint: What is wrong.
    """

    def __init__(self, line: int, hint: str) -> None:
        super().__init__(line, hint)
        self.line = line
        self.hint = hint


@attrs.frozen(repr=False)
class TomlDocument:
    """The content of TOML text, with line numbers.

    Attributes:
        values: The outermost table; numbers with a decimal point are `Decimal`.
        lines: The line of each place, from 1.
    """

    values: dict[str, Any]
    lines: Mapping[Place, int]

    def line(self, place: Place) -> int:
        """Return the line of a value, or of the nearest table or array around it.

        >>> parse_toml('[a]\\nb = [\\n  1,\\n  2,\\n]').line(("a", "b", 1))
        4
        """
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def parse_toml(text: str) -> TomlDocument:
    """Return the content of TOML text.

    Raises:
        NotTOML: The text is not TOML, nests more than `MAX_DEPTH` levels, or contains a number that is too long.
    """
    lines = _Scan(text).run()
    import tomllib

    try:
        values = tomllib.loads(text, parse_float=_decimal)
    except tomllib.TOMLDecodeError as error:
        raise _located(str(error), text) from None
    except (ValueError, RecursionError):  # the scanner reports both, unless it stopped early
        raise TomlError(1, "a number is too long, or tables nest too deeply") from None
    return TomlDocument(values, lines)


def _decimal(text: str) -> Any:
    """Return a number exactly as written, or NaN if its exponent is out of range."""
    from decimal import Decimal

    try:
        return Decimal(text)
    except ArithmeticError:
        return Decimal("NaN")


def _located(sentence: str, text: str) -> TomlError:
    """Return the message of `tomllib` with its line separated."""
    found = POSITION.search(sentence)
    said = escape(sentence[: found.start()] if found else sentence)
    said = f"{said[:1].lower()}{said[1:MAX_MESSAGE_CHARS]}"
    if found is None or found[1] is None:
        return TomlError(max(1, len(text.splitlines())), f"{said}, at the end of the text")
    return TomlError(int(found[1]), f"{said}, at column {found[2]}")


class _Lost(Exception):
    """The scanner met invalid TOML; `tomllib` reports what is wrong."""


class _Scan:
    """One scan of a document, from its beginning to its end or to the first invalid construct."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.lines: dict[Place, int] = {}
        self.last: dict[Place, int] = {}  # the index of the last table of each array of tables

    def run(self) -> dict[Place, int]:
        """Return the line of each place."""
        table: Place = ()
        try:
            self._take(GAP)
            while self.at < len(self.text):
                if self._is_next("["):
                    table = self._header()
                else:
                    self._pair(table)
                self._take(GAP)
        except _Lost:
            pass
        return self.lines

    def _header(self) -> Place:
        """Read ``[a.b]`` or ``[[a.b]]`` and return the place of its table."""
        is_many = self._is_next("[[")
        self.at += 2 if is_many else 1
        place = self._below((), self._keys())
        self._expect("]]" if is_many else "]")
        if is_many:
            self.last[place] = self.last.get(place, -1) + 1
        return self._opened(place)

    def _pair(self, table: Place) -> None:
        place = self._below(table, self._keys())
        self._expect("=")
        self._take(BLANKS)
        self._value(place)

    def _keys(self) -> list[str]:
        """Read a bare, quoted or dotted key."""
        keys = []
        while True:
            self._take(BLANKS)
            keys.append(_plain(self._take(KEY)))
            self._take(BLANKS)
            if not self._is_next("."):
                return keys
            self.at += 1

    def _below(self, place: Place, keys: list[str]) -> Place:
        """Record each table on the path of a key, and return the place of the key."""
        for key in keys:
            place = (*self._opened(place), key)
            self._note(place)
        return place

    def _opened(self, place: Place) -> Place:
        """Return the place of the current table: the last one for an array of tables."""
        if place not in self.last:
            return place
        place = (*place, self.last[place])
        self._note(place)
        return place

    def _value(self, place: Place) -> None:
        self._note(place)
        match self.text[self.at : self.at + 1]:
            case "[":
                self._array(place)
            case "{":
                self._inline(place)
            case '"' | "'":
                self._take(TEXT)
            case _:
                if len(self._take(BARE)) > MAX_VALUE_CHARS:
                    raise TomlError(self.line, f"a value other than a string has at most {MAX_VALUE_CHARS} characters")

    def _array(self, place: Place) -> None:
        index = 0
        while self._is_more("]"):
            self._value((*place, index))
            index += 1

    def _inline(self, place: Place) -> None:
        while self._is_more("}"):
            self._pair(place)

    def _is_more(self, end: str) -> bool:
        """Skip the bracket or comma before the next item and return whether there is one; otherwise skip *end*."""
        self._take(GAP)
        if not self._is_next(end):
            self.at += 1
            self._take(GAP)
        if self._is_next(end):
            self.at += 1
            return False
        return True

    def _note(self, place: Place) -> None:
        if len(place) > MAX_DEPTH:
            raise TomlError(self.line, f"tables and arrays nest at most {MAX_DEPTH} levels deep")
        self.lines.setdefault(place, self.line)

    def _is_next(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def _expect(self, text: str) -> None:
        if not self._is_next(text):
            raise _Lost
        self.at += len(text)

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            raise _Lost
        self.line += found[0].count("\n")
        self.at = found.end()
        return found[0]


def _plain(key: str) -> str:
    """Return the name that a bare or quoted key stands for."""
    if key[0] not in "\"'":
        return key
    if key[0] == "'" or "\\" not in key:
        return key[1:-1]
    import tomllib

    try:
        plain: str = tomllib.loads(f"key = {key}")["key"]
    except ValueError:
        raise _Lost from None
    return plain
