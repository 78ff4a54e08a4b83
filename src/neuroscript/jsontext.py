"""JSON text into plain values, with what JSON leaves open decided: one key once, no NaN, no endless nesting.

Source: contract section 3; reliability.md part 3.2 (JSON ingress).
"""

from __future__ import annotations

from typing import Any


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


def parsed(text: str) -> Any:
    """Return what a JSON text says, as new built-ins.

    Raises:
        NotJSON: The text is no JSON, holds one key twice, a number that is none, or nests too deeply.
    """
    import json

    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise NotJSON("arg.not_json", f"line {error.lineno}, column {error.colno} is not JSON") from None
    except RecursionError:
        raise NotJSON("limit.depth", "the JSON text nests too deeply") from None
    except ValueError:  # more digits than Python turns into an int
        raise NotJSON("coercion.range", "a number in the JSON text is too long") from None


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
