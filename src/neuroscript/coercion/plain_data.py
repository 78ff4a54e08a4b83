"""Exact values as JSON holds them, and back.

Source: contract section 3, blob; issue "The contract runs", wire forms.

Plain data that everybody may share, because nobody can change it; whoever wants to, takes a copy.

They are dicts and lists, so that JSON, validators and comparisons take them as such. That is why they inherit.

Source: issue "Authoring", what exporting costs.
"""

from __future__ import annotations

import copy
import datetime
from array import array
from binascii import b2a_base64
from typing import Any, Final, NoReturn

from neuroscript.coercion.scalars import Handle, lax_blob


def plain(value: Any) -> Any:
    """Return an exact value as JSON holds it.

    Bytes are written ``{"$base64": text}``, a time as ISO 8601, a handle as its id.
    """
    match value:
        case bytes():
            return {"$base64": b2a_base64(value, newline=False).decode("ascii")}
        case list() | tuple() | array():
            return [plain(each) for each in value]
        case dict():
            return {key if isinstance(key, str) else str(key): plain(each) for key, each in value.items()}
        case datetime.datetime():
            return value.isoformat()
        case Handle():
            return value.id
        case _:
            return value


def restored(value: Any) -> Any:
    """Return what `plain` wrote: bytes out of ``{"$base64": text}``, at every level."""
    match value:
        case {"$base64": str()} if len(value) == 1:
            return lax_blob(value)
        case list():
            return [restored(each) for each in value]
        case dict():
            return {key: restored(each) for key, each in value.items()}
        case _:
            return value


ADVICE: Final = "this is shared and can not be changed; copy.deepcopy of it gives plain data of your own"


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError(ADVICE)


class SealedDict(dict[str, Any]):
    """A dict that can not be changed; a copy of it is a plain dict."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: copy.deepcopy(each, memo) for key, each in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class SealedList(list[Any]):
    """A list that can not be changed; a copy of it is a plain list."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(each, memo) for each in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def sealed(value: Any) -> Any:
    """Return plain data that shares no container with *value* and can not be changed at any level."""
    match value:
        case dict():
            return SealedDict({key: sealed(each) for key, each in value.items()})
        case list():
            return SealedList([sealed(each) for each in value])
        case _:
            return value
