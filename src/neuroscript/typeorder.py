"""Which types take all that another one takes, and which results are all results of another type.

It is the caller's side for arguments, and the other way round for results: who gave an `int` may go on where `any` is
taken, and who read an `any` may go on where an `int` comes.

Source: contract section 3; the table is held to the coercion itself by a test, in lax mode and in strict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from neuroscript.argtypes import ArgType

LISTS: Final = frozenset({ArgType.SLICE, ArgType.LIST, ArgType.SLICE_ANY})
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
    **dict.fromkeys(LISTS | TYPED_LISTS - FLOATS, LISTS | _ANY),
    **dict.fromkeys(MAPS | TYPED_MAPS - FLOATS, MAPS | _ANY | {ArgType.MAP_ANY_ANY}),
}
"""For each type those that take, in every mode, whatever it takes.

`float` is not among those of `int`, for it can not hold every whole number; nothing is as wide as a `blob`, which takes
a bytearray, an `embedding`, which takes an array, and a `map_any_any`, whose keys may be numbers.
"""

NARROWER: Final[Mapping[ArgType, frozenset[ArgType]]] = {
    ArgType.ANY: (LISTS | TYPED_LISTS | MAPS | TYPED_MAPS)
    | {ArgType.STRING, ArgType.INT, ArgType.FLOAT, ArgType.BOOL, ArgType.BLOB}
    | {ArgType.HANDLE, ArgType.NODEID, ArgType.ENTITYID},
    ArgType.STRING: frozenset({ArgType.HANDLE, ArgType.NODEID}),
    ArgType.MAP_ANY_ANY: MAPS | TYPED_MAPS,
    **dict.fromkeys(LISTS, LISTS | TYPED_LISTS),
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
