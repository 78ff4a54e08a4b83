"""ArgTypes, their Python built-ins, and which types are compatible with each other.

`WIDER` is about arguments: a caller that passed an `int` can pass the same value if the type becomes `any`. `NARROWER`
is about results: a caller that expects `any` can handle an `int`. A test checks both tables against the coercion
itself, in lax and strict mode.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class ArgType(StrEnum):
    """The types of arguments and results. The set is closed.

    These modules have a table or a branch for each type, below ``neuroscript``: ``coercion``: `types`, `scalars`,
    `values`, `plain_data`; ``spec``: `annotations`; ``policy``: `templates`; ``formats``: `json_schema`,
    `json_schema_reader`, `stubs`; ``audit``: `recording`; ``testing``: `fuzzing`, `checks.samples`; ``interop``:
    `functions`, `agentheaven.source_code`; ``workflow``: `plan.type_inference`, `plan.references`, `trace.file`,
    `durable.encoding`.
    """

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
"""The element type of each slice type."""


LISTS: Final = {element: kind for kind, element in ELEMENTS.items()}
"""The slice type for each element type."""


VALUES: Final = {
    ArgType.MAP: ArgType.ANY,
    ArgType.MAP_STRING_ANY: ArgType.ANY,
    ArgType.MAP_ANY_ANY: ArgType.ANY,
    ArgType.MAP_STRING_STRING: ArgType.STRING,
    ArgType.MAP_STRING_INT: ArgType.INT,
    ArgType.MAP_STRING_FLOAT: ArgType.FLOAT,
    ArgType.MAP_STRING_BOOL: ArgType.BOOL,
}
"""The value type of each map type."""


TEXT_HOLDERS: Final = frozenset(
    {ArgType.STRING, ArgType.ANY, ArgType.BLOB, ArgType.HANDLE, ArgType.NODEID, ArgType.ENTITYID}
)
"""Types that accept strings, so ``""`` and ``"null"`` are values for them and do not mean a missing value."""


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
"""The built-in for each type. `any` may be any of them, and `entityid` is a str or a dict."""


def type_phrase(kind: ArgType) -> str:
    """Return the name of a type as errors show it, such as ``list of int`` for `slice_int`."""
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
"""Three names for one type."""


MAPS: Final = frozenset({ArgType.MAP, ArgType.MAP_STRING_ANY})
"""Two names for one type."""


NONE_TYPES: Final = frozenset({ArgType.NIL, ArgType.VOID})
"""Two names for a result that is None."""


TYPED_LISTS: Final = frozenset(
    {ArgType.SLICE_STRING, ArgType.SLICE_INT, ArgType.SLICE_FLOAT, ArgType.SLICE_BOOL, ArgType.SLICE_MAP}
)


TYPED_MAPS: Final = frozenset(
    {ArgType.MAP_STRING_STRING, ArgType.MAP_STRING_INT, ArgType.MAP_STRING_FLOAT, ArgType.MAP_STRING_BOOL}
)


FLOATS: Final = frozenset({ArgType.FLOAT, ArgType.SLICE_FLOAT, ArgType.MAP_STRING_FLOAT})
"""These types accept integers of more than 64 bits, which `any` does not."""


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
"""The other types that accept every value of a type in every mode.

`float` is not wider than `int` because it cannot represent every integer. No type is wider than `blob`, which accepts
a bytearray, `embedding`, which accepts an array, or `map_any_any`, whose keys may be numbers.
"""


NARROWER: Final[Mapping[ArgType, frozenset[ArgType]]] = {
    ArgType.ANY: (UNTYPED_LISTS | TYPED_LISTS | MAPS | TYPED_MAPS)
    | {ArgType.STRING, ArgType.INT, ArgType.FLOAT, ArgType.BOOL, ArgType.BLOB}
    | {ArgType.HANDLE, ArgType.NODEID, ArgType.ENTITYID},
    ArgType.STRING: frozenset({ArgType.HANDLE, ArgType.NODEID}),
    ArgType.MAP_ANY_ANY: MAPS | TYPED_MAPS,
    **dict.fromkeys(UNTYPED_LISTS, UNTYPED_LISTS | TYPED_LISTS),
    **dict.fromkeys(MAPS, MAPS | TYPED_MAPS),
    **dict.fromkeys(NONE_TYPES, NONE_TYPES),
}
"""The other result types whose exact results are all valid results of a type.

A tool that no longer returns anything is not a narrower result, even if None was allowed.
"""


def accepts_all(new: ArgType, old: ArgType) -> bool:
    """Return whether an argument of type *new* accepts every value of type *old*. The spec decides about None.

    >>> accepts_all(ArgType.ANY, ArgType.STRING), accepts_all(ArgType.STRING, ArgType.ANY)
    (True, False)
    """
    return new is old or new in WIDER.get(old, ())


def returns_subset(new: ArgType, old: ArgType) -> bool:
    """Return whether every result of type *new* is a valid result of type *old*. The spec decides about None.

    >>> returns_subset(ArgType.INT, ArgType.ANY), returns_subset(ArgType.INT, ArgType.FLOAT)
    (True, False)
    """
    return new is old or new in NARROWER.get(old, ())
