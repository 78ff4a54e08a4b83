"""JSON text into plain values, with what JSON leaves open decided: one key once, no NaN, no endless nesting.

The values in JSON text are counted before it is parsed, because parsing takes far more time and memory.
"""

from __future__ import annotations

from typing import Any, Final

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
