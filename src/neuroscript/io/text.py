"""Untrusted text made safe to display, and strict JSON parsing.

Display functions escape control characters and bidirectional marks and limit the length. They also format the names
of types, and durations with a suitable unit.

The JSON parser rejects duplicate keys, NaN and unbounded nesting. It counts the values in JSON text before parsing,
because parsing takes far more time and memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeGuard

if TYPE_CHECKING:
    from json import JSONDecoder

MAX_NAME_CHARS: Final = 64
"""The maximum number of characters of a caller's name that an error repeats."""


MAX_PATH_CHARS: Final = 200
"""The maximum number of characters of a host's path that an error repeats."""


def escape(text: str) -> str:
    """Return *text* with every unprintable character written as an escape.

    >>> escape("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def sendable(text: str) -> str:
    """Return *text* so that UTF-8 can encode it: only lone surrogates are written as escapes.

    >>> sendable("a\\ud800b")
    'a\\\\ud800b'
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def join_surrogates(text: str) -> str:
    """Return *text* with each surrogate pair combined into its character; lone surrogates remain.

    Programs that count UTF-16 code units split characters, for example between two pieces of a stream.

    >>> join_surrogates("\\ud83d" + "\\ude00") == "\\U0001f600"
    True
    """
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def quote_untrusted(name: str) -> str:
    """Return a name from a caller, escaped and shortened, for use in an error."""
    return escape(name if len(name) <= MAX_NAME_CHARS else f"{name[:MAX_NAME_CHARS]}…")


def type_name(value: object) -> str:
    """Return the name of a value's type, escaped and shortened, without running code of that type."""
    return name_of(type(value))


def name_of(kind: Any) -> str:
    """Return the name of a type, escaped and shortened, without running its code."""
    return "None" if kind is type(None) else quote_untrusted(_name_of_type(kind))


_name_of_type: Final = type.__dict__["__name__"].__get__


def one_line(text: object, longest: int | None = None) -> str:
    """Return untrusted text as one line without control sequences; ``""`` if it is not a string.

    Args:
        longest: The maximum number of characters, or None for no limit.

    >>> one_line("All pets.\\n\\x1b[2J  Soon", 64)
    'All pets. \\\\x1b[2J Soon'
    """
    if not isinstance(text, str):
        return ""
    line = escape(" ".join(text.split()))
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}…"


def several_lines(text: object) -> str:
    """Return untrusted text with its lines and tabs, but without control sequences; ``""`` if it is not a string.

    >>> several_lines("All pets:\\n\\tcats\\x1b[2J\\r\\n")
    'All pets:\\n\\tcats\\\\x1b[2J\\n'
    """
    if not isinstance(text, str):
        return ""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(escape, line.split("\t"))) for line in lines)


def first(texts: Sequence[str], most: int) -> list[str]:
    """Return the first *most* strings, followed by one that says how many were left out.

    >>> first(["a", "b", "c"], 1)
    ['a', 'and 2 more']
    """
    left = len(texts) - most
    return [*texts[:most], *([f"and {left} more"] if left > 0 else [])]


def quote_path(path: str) -> str:
    """Return a path from a host, escaped, and shortened at its beginning because the end matters most."""
    return escape(path if len(path) <= MAX_PATH_CHARS else f"…{path[-MAX_PATH_CHARS:]}")


def shorten(text: str, most: int = 300) -> str:
    """Return a text of at most *most* characters, shortened at its end.

    >>> shorten("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def duration(seconds: float) -> str:
    """Return a duration with its unit.

    >>> duration(0.00123), duration(2.5)
    ('1.23 ms', '2.5 s')
    """
    return f"{seconds:.3g} s" if abs(seconds) >= 1 else f"{seconds * 1000:.3g} ms"


def utc_time(seconds: float) -> str:
    """Return a time for display, or ``?`` if it is out of range.

    Args:
        seconds: Seconds since 1970.

    >>> utc_time(1_700_000_000)
    '2023-11-14 22:13:20Z'
    """
    try:
        return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "?"


MAX_VALUES: Final = 2_000_000
"""Maximum number of values in JSON text unless its reader sets another limit."""


class NotJSON(Exception):
    """Invalid JSON text, or JSON text outside the limits.

    Attributes:
        code: A stable dotted code.
        hint: What is wrong. It contains nothing of the text except line and column.
    """

    def __init__(self, code: str, hint: str) -> None:
        super().__init__(code, hint)
        self.code = code
        self.hint = hint


def parse_json(text: str, max_values: int = MAX_VALUES) -> Any:
    """Return the value of JSON text as new built-ins.

    Args:
        max_values: How many values the text may contain: objects, arrays, and their items and members, but not keys.

    Raises:
        NotJSON: The text is not JSON, has too many values, a duplicate key or an invalid number, or nests too deeply.
    """
    from json import JSONDecodeError

    if has_more_values(text, max_values):
        raise NotJSON("limit.nodes", f"the JSON text has more than {max_values} values")
    try:
        return _decoder().decode(text)
    except JSONDecodeError as error:
        raise NotJSON("arg.not_json", f"line {error.lineno}, column {error.colno} is not JSON") from None
    except RecursionError:
        raise NotJSON("limit.depth", "the JSON text nests too deeply") from None
    except ValueError:  # more digits than Python turns into an int
        raise NotJSON("coercion.range", "a number in the JSON text is too long") from None


def has_more_values(text: str, most: int) -> bool:
    """Return whether JSON text contains more than *most* values, without parsing it.

    Each value except the outermost follows a ``,``, a ``[`` or the ``{`` of its object. Counting these characters is
    fast and sufficient for nearly every text. Strings are excluded only if that count exceeds the limit.

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
    """Return how many commas separate values in JSON text without escapes, ignoring strings."""
    marks = text.encode("utf-8", "surrogatepass").translate(None, _OTHERS).replace(b'""', b"")
    return b"".join(marks.split(b'"')[::2]).count(b",")


def _values(text: str) -> int:
    """Return how many values JSON text without escapes contains; an empty container is one value."""
    outside = '"'.join(text.split('"')[::2])
    for blank in " \t\r\n":
        outside = outside.replace(blank, "")
    return 1 + _openings(outside) - outside.count("[]") - outside.count("{}")


@cache
def _decoder() -> JSONDecoder:
    from json import JSONDecoder

    return JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise NotJSON("arg.duplicate_key", "the JSON text contains a duplicate key")
    return result


def _refuse_constant(word: str) -> Any:
    raise NotJSON("coercion.nonfinite", f"{word} is not a JSON number")


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
    """Return whether a stream is connected to a terminal; False if it is missing or closed."""
    try:
        return stream is not None and os.isatty(stream.fileno())
    except (OSError, ValueError):
        return False
