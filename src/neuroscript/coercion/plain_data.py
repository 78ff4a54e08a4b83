"""Exact values as JSON data, and read-only data that can be shared.

Sealed data is shared without copies because it cannot be changed. `FrozenDict` and `FrozenList` inherit from dict and
list so that JSON encoders, validators and comparisons accept them.
"""

from __future__ import annotations

import copy
import datetime
from array import array
from binascii import b2a_base64
from typing import Any, Final, NoReturn

from neuroscript.coercion.scalars import AnyContent, Handle, lax_blob
from neuroscript.errors import SpecError


def to_plain(value: Any) -> Any:
    """Return an exact value as JSON data.

    Bytes become ``{"$base64": string}``, a datetime becomes ISO 8601, a handle becomes its id, and
    content becomes a result of MCP.
    """
    match value:
        case bytes():
            return {"$base64": b2a_base64(value, newline=False).decode("ascii")}
        case list() | tuple() | array():
            return [to_plain(each) for each in value]
        case dict():
            return {key if isinstance(key, str) else str(key): to_plain(each) for key, each in value.items()}
        case datetime.datetime():
            return value.isoformat()
        case Handle():
            return value.id
        case AnyContent():
            return value.wire
        case _:
            return value


def readable_text(value: Any) -> str | None:
    """Return the text of a string or of content, or None for other values."""
    if isinstance(value, AnyContent):
        return value.text
    return value if isinstance(value, str) else None


def from_plain(value: Any) -> Any:
    """Return the value that `to_plain` converted, with ``{"$base64": string}`` as bytes at every level."""
    match value:
        case {"$base64": str()} if len(value) == 1:
            return lax_blob(value)
        case list():
            return [from_plain(each) for each in value]
        case dict():
            return {key: from_plain(each) for key, each in value.items()}
        case _:
            return value


def content_of(data: Any) -> AnyContent:
    """Return the `Content` for the data that `AnyContent.data` returned, or raise a `ValueError`."""
    from neuroscript.coercion.content import Content  # few values need it

    try:
        return Content.of_data(data)
    except SpecError:
        raise ValueError("not content") from None


ADVICE: Final = "this shared data is read-only; use copy.deepcopy() to get a copy that you can change"


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError(ADVICE)


class FrozenDict(dict[str, Any]):
    """A read-only dict. Copies of it are plain dicts."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: copy.deepcopy(each, memo) for key, each in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class FrozenList(list[Any]):
    """A read-only list. Copies of it are plain lists."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(each, memo) for each in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def freeze(value: Any) -> Any:
    """Return plain data that is read-only at every level and shares no container with *value*."""
    match value:
        case dict():
            return FrozenDict({key: freeze(each) for key, each in value.items()})
        case list():
            return FrozenList([freeze(each) for each in value])
        case _:
            return value
