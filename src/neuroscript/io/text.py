"""Text from outside, made safe to look at: no control characters, no marks that turn the writing round, no end.

And the names of types, and durations, with the unit that suits them.

Source: contract section 6; reliability.md T20.

JSON text into plain values, with what JSON leaves open decided: one key once, no NaN, no endless nesting.

The values in JSON text are counted before it is parsed, because parsing takes far more time and memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final, TextIO, TypeGuard

LONGEST: Final = 64
"""How many characters of a name that a caller wrote are repeated to it."""


LONGEST_PATH: Final = 200
"""How many characters of a path that a host wrote are repeated to it."""


def escaped(text: str) -> str:
    """Return *text* with every character that is not printable written as an escape.

    >>> escaped("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def sendable(text: str) -> str:
    """Return *text* as UTF-8 can hold it: lone surrogates are written as escapes, and nothing else is.

    >>> sendable("a\\ud800b")
    'a\\\\ud800b'
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def shown(name: str) -> str:
    """Return a name that a caller wrote, escaped and cut, so that it can stand in an error."""
    return escaped(name if len(name) <= LONGEST else f"{name[:LONGEST]}…")


def type_name(value: object) -> str:
    """Return the name of a value's type, escaped and cut, without running code of that type."""
    return name_of(type(value))


def name_of(kind: Any) -> str:
    """Return the name of a type, escaped and cut, without running code of it."""
    return "None" if kind is type(None) else shown(_name_of_type(kind))


_name_of_type: Final = type.__dict__["__name__"].__get__


def one_line(text: object, longest: int | None = None) -> str:
    """Return a text from outside as one line in which nothing steers a terminal, ``""`` for what is no text.

    Args:
        longest: How many characters it may have; None cuts nothing.

    >>> one_line("All pets.\\n\\x1b[2J  Soon", 64)
    'All pets. \\\\x1b[2J Soon'
    """
    if not isinstance(text, str):
        return ""
    line = escaped(" ".join(text.split()))
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}…"


def first(texts: Sequence[str], most: int) -> list[str]:
    """Return the first of several texts, and in one more how many are left.

    >>> first(["a", "b", "c"], 1)
    ['a', 'and 2 more']
    """
    left = len(texts) - most
    return [*texts[:most], *([f"and {left} more"] if left > 0 else [])]


def shown_path(path: str) -> str:
    """Return a path that a host wrote, escaped, and cut at its beginning, for what is meant stands at its end."""
    return escaped(path if len(path) <= LONGEST_PATH else f"…{path[-LONGEST_PATH:]}")


def duration(seconds: float) -> str:
    """Return a duration with its unit.

    >>> duration(0.00123), duration(2.5)
    ('1.23 ms', '2.5 s')
    """
    return f"{seconds:.3g} s" if abs(seconds) >= 1 else f"{seconds * 1000:.3g} ms"


MAX_VALUES: Final = 2_000_000
"""How many values JSON text may hold where its reader sets no other limit."""


class NotJSON(Exception):
    """A text that is not JSON as we take it.

    Attributes:
        code: A stable dotted word.
        hint: What is wrong, without anything of the text but line and column.
    """

    def __init__(self, code: str, hint: str) -> None:
        super().__init__(code, hint)
        self.code = code
        self.hint = hint


def parsed(text: str, max_values: int = MAX_VALUES) -> Any:
    """Return what a JSON text says, as new built-ins.

    Args:
        max_values: How many values it may hold: objects, arrays, and their items and members. Keys do not count.

    Raises:
        NotJSON: The text is not JSON, holds too many values, one key twice or an invalid number, or nests too deeply.
    """
    import json

    if has_more_values(text, max_values):
        raise NotJSON("limit.nodes", f"the JSON text has more than {max_values} values")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise NotJSON("arg.not_json", f"line {error.lineno}, column {error.colno} is not JSON") from None
    except RecursionError:
        raise NotJSON("limit.depth", "the JSON text nests too deeply") from None
    except ValueError:  # more digits than Python turns into an int
        raise NotJSON("coercion.range", "a number in the JSON text is too long") from None


def has_more_values(text: str, most: int) -> bool:
    """Tell whether JSON text holds more than *most* values, without parsing it.

    Each value but the outermost follows a ``,``, a ``[`` or the ``{`` of its object. Counting these characters is fast
    and enough for nearly every text. Only if there are too many of them, those in strings are left out.

    >>> has_more_values('["a,b,c", []]', 3), has_more_values('["a,b,c", []]', 2)
    (False, True)
    """
    if len(text) <= most or _openings(text) < most:
        return False
    text = text.replace("\\\\", "").replace('\\"', "")
    return _commas(text) >= most or _values(text) > most


def _openings(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


_OTHERS: Final = bytes(set(range(256)) - set(b'",:'))


def _commas(text: str) -> int:
    """Return how many commas are outside of the strings of JSON text without escapes; one separates two values."""
    marks = text.encode("utf-8", "surrogatepass").translate(None, _OTHERS).replace(b'""', b"")
    return b"".join(marks.split(b'"')[::2]).count(b",")


def _values(text: str) -> int:
    """Return how many values JSON text without escapes holds; an empty container is one value."""
    outside = '"'.join(text.split('"')[::2])
    for blank in " \t\r\n":
        outside = outside.replace(blank, "")
    return 1 + _openings(outside) - outside.count("[]") - outside.count("{}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise NotJSON("arg.duplicate_key", "the JSON text gives one key twice")
    return result


def _refuse_constant(word: str) -> Any:
    raise NotJSON("coercion.nonfinite", f"{word} is no JSON number")


def json_text(data: Any, *, ascii_only: bool = False) -> str:
    """Return plain data as one line of JSON.

    >>> json_text({"a": "é\\u202e"})
    '{"a": "é\\\\u202e"}'
    """
    import json

    text = json.dumps(data, ensure_ascii=ascii_only)
    if text.isprintable():
        return text
    return text.translate({ord(each): json.dumps(each)[1:-1] for each in set(text) if not each.isprintable()})


def is_terminal(stream: TextIO | None) -> TypeGuard[TextIO]:
    """Tell whether somebody may sit at a stream; nobody does where it is missing or closed."""
    try:
        return stream is not None and os.isatty(stream.fileno())
    except (OSError, ValueError):
        return False
