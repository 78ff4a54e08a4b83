"""Values under ``x-neuroscript`` in JSON, tagged with their exact types where JSON has no such type."""

from __future__ import annotations

import datetime
from array import array
from binascii import Error, a2b_base64, b2a_base64
from typing import Any

from neuroscript.coercion.context import type_name
from neuroscript.coercion.plain_data import content_of
from neuroscript.coercion.scalars import AnyContent, Handle


def tag(value: Any) -> Any:
    """Return a value in the form that `untag` converts back to exactly the same value.

    Raises:
        TypeError: The value has no such form.
    """
    match value:
        case None | bool() | int() | str() if type(value) in (type(None), bool, int, str):
            return value
        case float() if type(value) is float:
            return value if value - value == 0.0 else {"float": repr(value)}
        case list() if type(value) is list:
            return [tag(each) for each in value]
        case tuple() if type(value) is tuple:
            return {"tuple": [tag(each) for each in value]}
        case dict() if type(value) is dict:
            return {"map": [[tag(key), tag(each)] for key, each in value.items()]}
        case bytes() if type(value) is bytes:
            return {"bytes": b2a_base64(value, newline=False).decode("ascii")}
        case datetime.datetime() if type(value) is datetime.datetime:
            return {"time": [value.isoformat(), value.fold]}
        case Handle():
            return {"handle": [value.id, value.kind]}
        case AnyContent():
            return {"content": tag(value.data)}
        case array() if value.typecode == "f":
            return {"embedding": value.tolist()}
        case _:
            raise TypeError(type_name(value))


def untag(value: Any) -> Any:
    """Return the value that `tag` converted.

    Raises:
        ValueError: The value is not in a known form.
    """
    if type(value) is list:
        return [untag(each) for each in value]
    if type(value) is not dict:
        return value
    if len(value) != 1:
        raise ValueError("a tag must be the only key")
    [(tag, inside)] = value.items()
    match tag:
        case "map":
            return {untag(key): untag(each) for key, each in inside}
        case "tuple":
            return tuple(map(untag, inside))
        case "float":
            return float(inside)
        case "bytes":
            return _bytes(inside)
        case "time":
            text, fold = inside
            return datetime.datetime.fromisoformat(text).replace(fold=fold)
        case "handle":
            return Handle(*inside)
        case "content":
            return content_of(untag(inside))
        case "embedding":
            return array("f", inside)
        case _:
            raise ValueError("unknown tag")


def _bytes(text: str) -> bytes:
    try:
        return a2b_base64(text, strict_mode=True)
    except Error:
        raise ValueError("not base64") from None
