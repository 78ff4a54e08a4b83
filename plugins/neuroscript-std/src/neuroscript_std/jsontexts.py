"""JSON text into plain values, with what JSON leaves open decided: one key once, finite numbers, whole texts.

Source: contract section 3; RFC 8259.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

TOO_DEEP: Final = "it nests deeper than 64 levels"


class NotJSON(Exception):
    """A text is not JSON as we take it; the error's own text says what is wrong and where, and nothing of the text."""


def parsed(text: str) -> Any:
    """Return what a JSON text says, as new built-ins; whole numbers of any size, and nesting, are for the caller.

    Raises:
        NotJSON: The text is no JSON, or says what no value holds.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_with_each_key_once, parse_constant=_refuse_constant, parse_float=_finite
        )
        if "\\u" in text:  # the only way to half of a surrogate pair
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise NotJSON(f"it goes wrong at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise NotJSON(TOO_DEEP) from None
    except UnicodeEncodeError:
        raise NotJSON("a text in it has half of a surrogate pair") from None
    except ValueError:  # more digits than Python turns into an int
        raise NotJSON("a whole number in it has more than 64 bits; write it as a text") from None
    return value


def _with_each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise NotJSON("an object in it gives one key twice")
    return result


def _refuse_constant(word: str) -> Any:
    raise NotJSON(f"{word} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise NotJSON("a number in it is too large for a float")
    return number
