"""The words of the contract for what an argument is, and the built-in each word stands for.

Source: contract section 3; upstream's own words, of which it implements two thirds.

Which types take all that another one takes, and which results are all results of another type.

It is the caller's side for arguments, and the other way round for results: who gave an `int` may go on where `any` is
taken, and who read an `any` may go on where an `int` comes.

Source: contract section 3; the table is held to the coercion itself by a test, in lax mode and in strict.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
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


UNTYPED_LISTS: Final = frozenset({ArgType.SLICE, ArgType.LIST, ArgType.SLICE_ANY})
"""Three words for one type."""


MAPS: Final = frozenset({ArgType.MAP, ArgType.MAP_STRING_ANY})
"""Two words for one type."""


NOTHING: Final = frozenset({ArgType.NIL, ArgType.VOID})
"""Two words for a result that is None."""


TYPED_LISTS: Final = frozenset(
    {ArgType.SLICE_STRING, ArgType.SLICE_INT, ArgType.SLICE_FLOAT, ArgType.SLICE_BOOL, ArgType.SLICE_MAP}
)


TYPED_MAPS: Final = frozenset(
    {ArgType.MAP_STRING_STRING, ArgType.MAP_STRING_INT, ArgType.MAP_STRING_FLOAT, ArgType.MAP_STRING_BOOL}
)


FLOATS: Final = frozenset({ArgType.FLOAT, ArgType.SLICE_FLOAT, ArgType.MAP_STRING_FLOAT})
"""They take whole numbers of more than 64 bits, which `any` does not."""


_ANY: Final = frozenset({ArgType.ANY})


WIDER: Final[Mapping[ArgType, frozenset[ArgType]]] = {
    **dict.fromkeys(
        (
            *(ArgType.STRING, ArgType.INT, ArgType.BOOL, ArgType.NIL),
            *(ArgType.HANDLE, ArgType.NODEID, ArgType.ENTITYID),
        ),
        _ANY,
    ),
    **dict.fromkeys(UNTYPED_LISTS | TYPED_LISTS - FLOATS, UNTYPED_LISTS | _ANY),
    **dict.fromkeys(MAPS | TYPED_MAPS - FLOATS, MAPS | _ANY | {ArgType.MAP_ANY_ANY}),
}
"""For each type those that take, in every mode, whatever it takes.

`float` is not among those of `int`, for it can not hold every whole number; nothing is as wide as a `blob`, which takes
a bytearray, an `embedding`, which takes an array, and a `map_any_any`, whose keys may be numbers.
"""


NARROWER: Final[Mapping[ArgType, frozenset[ArgType]]] = {
    ArgType.ANY: (UNTYPED_LISTS | TYPED_LISTS | MAPS | TYPED_MAPS)
    | {ArgType.STRING, ArgType.INT, ArgType.FLOAT, ArgType.BOOL, ArgType.BLOB}
    | {ArgType.HANDLE, ArgType.NODEID, ArgType.ENTITYID},
    ArgType.STRING: frozenset({ArgType.HANDLE, ArgType.NODEID}),
    ArgType.MAP_ANY_ANY: MAPS | TYPED_MAPS,
    **dict.fromkeys(UNTYPED_LISTS, UNTYPED_LISTS | TYPED_LISTS),
    **dict.fromkeys(MAPS, MAPS | TYPED_MAPS),
    **dict.fromkeys(NOTHING, NOTHING),
}
"""For each type of results those whose every result is one of it too, exact as it is.

That a tool gives nothing any more is no narrower result, even where None was one.
"""


def takes_all(new: ArgType, old: ArgType) -> bool:
    """Tell whether an argument of type *new* takes whatever one of type *old* takes; of None its spec decides.

    >>> takes_all(ArgType.ANY, ArgType.STRING), takes_all(ArgType.STRING, ArgType.ANY)
    (True, False)
    """
    return new is old or new in WIDER.get(old, ())


def gives_no_more(new: ArgType, old: ArgType) -> bool:
    """Tell whether each result of type *new* is one of type *old*; of None the spec decides.

    >>> gives_no_more(ArgType.INT, ArgType.ANY), gives_no_more(ArgType.INT, ArgType.FLOAT)
    (True, False)
    """
    return new is old or new in NARROWER.get(old, ())
