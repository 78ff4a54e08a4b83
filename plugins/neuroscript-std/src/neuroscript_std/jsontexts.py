"""Parse JSON into plain values, strictly: unique keys, finite numbers, valid Unicode."""

from __future__ import annotations

import json
import math
from typing import Any, Final

TOO_DEEP: Final = "it is nested deeper than 64 levels"


class NotJSON(Exception):
    """A string is not JSON that the tools accept. The message says what is wrong and where, and quotes nothing."""


def parse_json(text: str) -> Any:
    """Return the value of a JSON string as new built-in objects; the caller checks nesting and the size of integers.

    Raises:
        NotJSON: The string is not valid JSON, or its value is not plain data.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_with_each_key_once, parse_constant=_refuse_constant, parse_float=_finite
        )
        if "\\u" in text:  # only an escape can produce a lone surrogate
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise NotJSON(f"syntax error at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise NotJSON(TOO_DEEP) from None
    except UnicodeEncodeError:
        raise NotJSON("a string in it contains a lone surrogate") from None
    except ValueError:  # more digits than Python converts to an int
        raise NotJSON("it contains an integer of more than 64 bits; write it as a string") from None
    return value


def _with_each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise NotJSON("an object in it has a duplicate key")
    return result


def _refuse_constant(word: str) -> Any:
    raise NotJSON(f"{word} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise NotJSON("a number in it is too large for a float")
    return number
