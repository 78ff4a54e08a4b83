"""A Python annotation as the words of the contract, or a sentence that says what to write instead.

Source: contract section 1; nothing ever falls back to `any`.
"""

from __future__ import annotations

import types
from array import array
from collections.abc import Mapping
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from neuroscript.argtypes import ArgType

Class = type
"""`type` under a name that a field called ``type`` does not hide."""


@attrs.frozen(eq=False, repr=False)
class Hint:
    """What an annotation says of a value.

    Attributes:
        type: The word of the contract.
        nullable: Whether ``None`` is one of its alternatives.
        choices: The values of a ``Literal``, or of one inside a list.
        cls: The attrs class that is meant by a map or by each map of a slice.
    """

    type: ArgType
    nullable: bool = False
    choices: tuple[Any, ...] = ()
    cls: Class | None = None


class Unreadable(Exception):
    """An annotation that names no ArgType; its text says what to write."""


PLAIN: Final[Mapping[Any, ArgType]] = {
    str: ArgType.STRING,
    int: ArgType.INT,
    float: ArgType.FLOAT,
    bool: ArgType.BOOL,
    bytes: ArgType.BLOB,
    Any: ArgType.ANY,
    None: ArgType.NIL,
    type(None): ArgType.NIL,
    array: ArgType.EMBEDDING,
}

LISTS: Final[Mapping[Any, ArgType]] = {
    str: ArgType.SLICE_STRING,
    int: ArgType.SLICE_INT,
    float: ArgType.SLICE_FLOAT,
    bool: ArgType.SLICE_BOOL,
    Any: ArgType.SLICE_ANY,
    dict[str, Any]: ArgType.SLICE_MAP,
}

DICTS: Final[Mapping[Any, ArgType]] = {
    (str, Any): ArgType.MAP,
    (str, str): ArgType.MAP_STRING_STRING,
    (str, int): ArgType.MAP_STRING_INT,
    (str, float): ArgType.MAP_STRING_FLOAT,
    (str, bool): ArgType.MAP_STRING_BOOL,
    (Any, Any): ArgType.MAP_ANY_ANY,
}

KNOWN: Final = (
    "str, int, float, bool, bytes, array, Any, list[T], dict[str, T], Literal[…], an attrs class, "
    "or one of these | None"
)


def hint_of(annotation: Any) -> Hint:
    """Return what *annotation* says.

    Raises:
        Unreadable: It names no ArgType.
    """
    if _hashable(annotation) and annotation in PLAIN:
        return Hint(PLAIN[annotation])
    origin = get_origin(annotation)
    if origin is Union or origin is types.UnionType:
        return _optional(annotation)
    if origin is Literal:
        return _literal(annotation)
    if origin is list:
        return _list(*get_args(annotation))
    if origin is dict:
        return _dict(annotation)
    if origin is array:
        return Hint(ArgType.EMBEDDING)
    if isinstance(annotation, type) and attrs.has(annotation):
        return Hint(ArgType.MAP, cls=annotation)
    raise Unreadable(f"{spelt(annotation)} names no ArgType; write {_instead(annotation)}")


def annotations_of(thing: Any) -> dict[str, Any]:
    """Return the evaluated annotations of a function or class.

    Raises:
        Unreadable: One of them can not be evaluated.
    """
    try:
        return get_type_hints(thing)
    except Exception as error:
        raise Unreadable(f"its annotations can not be evaluated ({type(error).__name__}: {error})") from error


def spelt(annotation: Any) -> str:
    """Return an annotation as its author wrote it, as nearly as that is known."""
    name = annotation.__qualname__ if type(annotation) is type else annotation
    return str(name).replace("typing.", "")


def _optional(annotation: Any) -> Hint:
    others = [each for each in get_args(annotation) if each is not type(None)]
    if len(others) != 1 or len(others) == len(get_args(annotation)):
        raise Unreadable(f"{spelt(annotation)} has several types; write one of them, or Any")
    return attrs.evolve(hint_of(others[0]), nullable=True)


def _literal(annotation: Any) -> Hint:
    values = [value for value in get_args(annotation) if value is not None]
    kinds = {type(value) for value in values}
    if len(kinds) != 1 or not kinds <= {str, int, bool}:
        raise Unreadable(f"{spelt(annotation)} must hold values of one type, str, int or bool")
    return Hint(PLAIN[kinds.pop()], nullable=None in get_args(annotation), choices=tuple(values))


def _list(element: Any) -> Hint:
    if _hashable(element) and element in LISTS:
        return Hint(LISTS[element])
    hint = hint_of(element)
    if hint.cls is not None and hint.type is ArgType.MAP and not hint.nullable:
        return Hint(ArgType.SLICE_MAP, cls=hint.cls)
    if hint.choices and not hint.nullable:
        return Hint(LISTS[type(hint.choices[0])], choices=hint.choices)
    raise Unreadable(f"list[{spelt(element)}] names no ArgType; write list[Any] and say in words what it holds")


def _dict(annotation: Any) -> Hint:
    pair = get_args(annotation)
    if _hashable(pair) and pair in DICTS:
        return Hint(DICTS[pair])
    raise Unreadable(f"{spelt(annotation)} names no ArgType; write dict[str, Any] and say in words what it holds")


def _instead(annotation: Any) -> str:
    for loose, exact in ((list, "list[Any]"), (tuple, "list[Any]"), (dict, "dict[str, Any]"), (object, "Any")):
        if annotation is loose:
            return exact
    return KNOWN


def _hashable(annotation: Any) -> bool:
    try:
        hash(annotation)
    except TypeError:
        return False
    return True
