"""The words of the contract for what an argument is, and the built-in each word stands for.

Source: contract section 3; upstream's own words, of which it implements two thirds.
"""

from __future__ import annotations

from array import array
from enum import StrEnum
from typing import Final


class ArgType(StrEnum):
    """A closed set: every argument and every result is one of these."""

    STRING = "string"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    MAP = "map"
    MAP_STRING_ANY = "map_string_any"
    MAP_STRING_STRING = "map_string_string"
    MAP_STRING_INT = "map_string_int"
    MAP_STRING_FLOAT = "map_string_float"
    MAP_STRING_BOOL = "map_string_bool"
    MAP_ANY_ANY = "map_any_any"
    SLICE = "slice"
    LIST = "list"
    SLICE_ANY = "slice_any"
    SLICE_STRING = "slice_string"
    SLICE_INT = "slice_int"
    SLICE_FLOAT = "slice_float"
    SLICE_BOOL = "slice_bool"
    SLICE_MAP = "slice_map"
    BLOB = "blob"
    EMBEDDING = "embedding"
    HANDLE = "handle"
    NODEID = "nodeid"
    ENTITYID = "entityid"
    ANY = "any"
    NIL = "nil"
    VOID = "void"


ELEMENTS: Final = {
    ArgType.SLICE: ArgType.ANY,
    ArgType.LIST: ArgType.ANY,
    ArgType.SLICE_ANY: ArgType.ANY,
    ArgType.SLICE_STRING: ArgType.STRING,
    ArgType.SLICE_INT: ArgType.INT,
    ArgType.SLICE_FLOAT: ArgType.FLOAT,
    ArgType.SLICE_BOOL: ArgType.BOOL,
    ArgType.SLICE_MAP: ArgType.MAP,
}
"""The type of each element of a slice."""

LISTS: Final = {element: kind for kind, element in ELEMENTS.items()}
"""The slice of each type that is an element."""

VALUES: Final = {
    ArgType.MAP: ArgType.ANY,
    ArgType.MAP_STRING_ANY: ArgType.ANY,
    ArgType.MAP_ANY_ANY: ArgType.ANY,
    ArgType.MAP_STRING_STRING: ArgType.STRING,
    ArgType.MAP_STRING_INT: ArgType.INT,
    ArgType.MAP_STRING_FLOAT: ArgType.FLOAT,
    ArgType.MAP_STRING_BOOL: ArgType.BOOL,
}
"""The type of each value of a map."""

TEXT_HOLDERS: Final = frozenset(
    {ArgType.STRING, ArgType.ANY, ArgType.BLOB, ArgType.HANDLE, ArgType.NODEID, ArgType.ENTITYID}
)
"""Types that can hold a text, so that ``""`` and ``"null"`` are values of theirs and not an absence."""

BUILTINS: Final[dict[ArgType, type]] = {
    ArgType.STRING: str,
    ArgType.INT: int,
    ArgType.FLOAT: float,
    ArgType.BOOL: bool,
    **dict.fromkeys(VALUES, dict),
    **dict.fromkeys(ELEMENTS, list),
    ArgType.BLOB: bytes,
    ArgType.EMBEDDING: array,
    ArgType.HANDLE: str,
    ArgType.NODEID: str,
    ArgType.NIL: type(None),
    ArgType.VOID: type(None),
}
"""The built-in of each word; `any` may be each of them, and `entityid` is a str or a dict."""


def worded(kind: ArgType) -> str:
    """Return a type in the words of an error: ``list of int`` for `slice_int`."""
    for what, elements in (("list", ELEMENTS), ("map", VALUES)):
        if kind in elements:
            return what if elements[kind] is ArgType.ANY else f"{what} of {elements[kind]}"
    return _OTHER_WORDS.get(kind, kind)


_OTHER_WORDS: Final[dict[ArgType, str]] = {
    ArgType.EMBEDDING: "list of numbers",
    ArgType.ANY: "a JSON-like value",
    ArgType.NIL: "nothing",
}
