"""Annotations of Python functions, read as ArgTypes with descriptions and bounds.

An annotation without an ArgType raises an error that names a replacement; it never falls back to `any`. In
``Annotated``, a string is a description. Metadata of ``annotated_types`` and compatible packages is supported;
constraints that an `ArgSpec` cannot express are rejected, because a bound that is not enforced is worse than none.
"""

from __future__ import annotations

import types
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, Flag
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from neuroscript.coercion.parameters import FLAG, NUMBER, STRING, WHOLE, optional, require_fields
from neuroscript.coercion.types import ELEMENTS, ArgType
from neuroscript.errors import SpecError

FIELDS: Final = {
    "description": "description",
    "documentation": "description",
    "ge": "minimum",
    "le": "maximum",
    "min_length": "min_length",
    "max_length": "max_length",
}
"""Metadata attributes of other packages, and the `Arg` fields with the same meaning."""


OPEN: Final = {"gt": ("minimum", 1), "lt": ("maximum", -1)}
"""Exclusive bounds. For integers, the next integer is the inclusive bound."""


KNOWN_PACKAGES: Final = frozenset({"annotated_types", "pydantic", "typing_extensions"})
"""Packages whose metadata is read. Metadata of other packages is ignored."""


class UnsupportedMetadata(Exception):
    """Metadata that an `ArgSpec` cannot express; the message says what to use instead."""


@attrs.frozen
class Arg:
    """The description and constraints of an argument in ``Annotated``.

    ``Annotated[int, Arg("How many.", minimum=1)]``. A plain string, as in ``Annotated[int, "How many."]``, is a
    description.

    Attributes:
        description: What the argument is, with its unit. It takes precedence over the docstring.
        minimum: The minimum of a number, or of each number in a list.
        maximum: The maximum of a number, or of each number in a list.
        min_length: The minimum number of characters, bytes, items or keys.
        max_length: The maximum number of characters, bytes, items or keys.
        secret: Whether the value must never be displayed or logged.

    Raises:
        SpecError: With every problem.
    """

    description: str = ""
    minimum: float | None = attrs.field(default=None, kw_only=True)
    maximum: float | None = attrs.field(default=None, kw_only=True)
    min_length: int | None = attrs.field(default=None, kw_only=True)
    max_length: int | None = attrs.field(default=None, kw_only=True)
    secret: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        number, length = optional(NUMBER), optional(WHOLE)
        bounds = {"minimum": number, "maximum": number, "min_length": length, "max_length": length}
        require_fields("Arg", self, description=STRING, secret=FLAG, **bounds)


UNMARKED: Final = Arg()


def apply_metadata(before: Arg, marks: Iterable[Any], kind: ArgType) -> Arg:
    """Return *before* updated with the metadata of an argument of type *kind*. Later metadata takes precedence.

    Raises:
        Unmarkable: A constraint cannot be expressed.
    """
    found = attrs.asdict(before)
    for mark in marks:
        if type(mark) is str:
            found["description"] = mark
        elif type(mark) is Arg:
            found.update(attrs.asdict(mark, filter=lambda field, value: value != field.default))
        elif type(mark).__module__.partition(".")[0] in KNOWN_PACKAGES:
            found.update(_read(mark, kind))
    try:
        return Arg(**found)
    except SpecError as error:  # from the metadata of another package
        raise UnsupportedMetadata("; ".join(error.problems)) from None


def _read(mark: Any, kind: ArgType) -> dict[str, Any]:
    """Return the `Arg` fields that the metadata of another package sets."""
    found: dict[str, Any] = {}
    for each in getattr(mark, "metadata", None) or ():
        found.update(_read(each, kind))
    known = {name: getattr(mark, name) for name in (*FIELDS, *OPEN) if hasattr(mark, name)}
    if not known or getattr(mark, "pattern", None) is not None:
        raise UnsupportedMetadata(
            f"{type(mark).__name__} is not supported; remove it and check the value in the function"
        )
    said = {name: value for name, value in known.items() if value is not None}
    found.update({FIELDS[name]: value for name, value in said.items() if name in FIELDS})
    found.update(_next(name, said[name], kind) for name in OPEN if name in said)
    return found


def _next(name: str, bound: Any, kind: ArgType) -> tuple[str, Any]:
    field, step = OPEN[name]
    if ELEMENTS.get(kind, kind) is not ArgType.INT or type(bound) is not int:
        raise UnsupportedMetadata(f"an exclusive {field} is supported for int only; use an inclusive one")
    return field, bound + step


Class = type
"""An alias of `type` that a field called ``type`` does not hide."""


@attrs.frozen(eq=False, repr=False)
class Hint:
    """The meaning of an annotation.

    Attributes:
        type: The ArgType.
        nullable: Whether ``None`` is allowed.
        choices: The values of a ``Literal`` or an Enum, possibly inside a list.
        cls: The class of a map, or of each map in a slice, or the Enum of the choices.
        said: The metadata from ``Annotated``.
    """

    type: ArgType
    nullable: bool = False
    choices: tuple[Any, ...] = ()
    cls: Class | None = None
    said: Arg = UNMARKED


class UnsupportedAnnotation(Exception):
    """An annotation without an ArgType; the message says what to use."""


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
    "str, int, float, bool, bytes, array, Any, list[T], dict[str, T], Literal[…], an Enum, a TypedDict, "
    "a dataclass, an attrs class, or one of these | None"
)


INSTEAD: Final[Mapping[Any, str]] = {
    list: "list[Any]",
    Sequence: "Sequence[Any]",
    Iterable: "list[Any], or list[T]",
    tuple: "list[Any], or list[T]",
    set: "list[Any], or list[T]",
    frozenset: "list[Any], or list[T]",
    dict: "dict[str, Any]",
    Mapping: "Mapping[str, Any]",
    object: "Any",
    bytearray: "bytes",
    memoryview: "bytes",
    complex: "list[float]",
}
"""The replacement for unsupported types that are close to a supported one."""


MEANINGS: Final = ("__supertype__", "__value__")
"""The attributes with the target of a ``NewType`` and of an alias made by the ``type`` statement."""


TEXTUAL: Final = frozenset({"Path", "PurePath", "UUID", "Decimal", "Fraction", "datetime", "date", "time", "timedelta"})
"""Standard library classes that JSON represents as a string."""


def hint_of(annotation: Any) -> Hint:
    """Return the meaning of *annotation*.

    Raises:
        Unreadable: There is no ArgType for it.
    """
    if _hashable(annotation) and annotation in PLAIN:
        return Hint(PLAIN[annotation])
    form = _FORMS.get(get_origin(annotation))
    if form is not None:
        return form(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _enum(annotation)
    if is_record(annotation):
        return Hint(ArgType.MAP, cls=annotation)
    for meaning in MEANINGS:
        if hasattr(annotation, meaning):
            return hint_of(getattr(annotation, meaning))
    raise UnsupportedAnnotation(f"{annotation_text(annotation)} is not supported; use {_instead(annotation)}")


def is_record(annotation: Any) -> bool:
    """Return whether an annotation is a class with declared fields: an attrs class, a dataclass or a TypedDict."""
    if not isinstance(annotation, type):
        return False
    return attrs.has(annotation) or hasattr(annotation, "__dataclass_fields__") or is_typed_dict(annotation)


def is_typed_dict(cls: type) -> bool:
    """Return whether a class is a TypedDict from any package."""
    return issubclass(cls, dict) and hasattr(cls, "__required_keys__")


def annotations_of(thing: Any) -> dict[str, Any]:
    """Return the annotations of a function or class, evaluated only by `typing.get_type_hints`.

    Raises:
        Unreadable: One of them cannot be evaluated.
    """
    try:
        return get_type_hints(thing, include_extras=True)
    except Exception as error:
        raise UnsupportedAnnotation(f"its annotations cannot be evaluated ({type(error).__name__}: {error})") from error


def annotation_text(annotation: Any) -> str:
    """Return an annotation as the author wrote it, as closely as possible."""
    name = annotation.__qualname__ if isinstance(annotation, type) and not get_args(annotation) else annotation
    return str(name).replace("typing.", "").replace("collections.abc.", "")


def _optional(annotation: Any) -> Hint:
    others = [each for each in get_args(annotation) if each is not type(None)]
    if len(others) != 1 or len(others) == len(get_args(annotation)):
        raise UnsupportedAnnotation(f"{annotation_text(annotation)} has several types; use one of them, or Any")
    return attrs.evolve(hint_of(others[0]), nullable=True)


def _annotated(annotation: Any) -> Hint:
    kind, *marks = get_args(annotation)
    hint = hint_of(kind)
    try:
        return attrs.evolve(hint, said=apply_metadata(hint.said, marks, hint.type))
    except UnsupportedMetadata as error:
        raise UnsupportedAnnotation(str(error)) from error


def _literal(annotation: Any) -> Hint:
    values = [value for value in get_args(annotation) if value is not None]
    kinds = {type(value) for value in values}
    if len(kinds) != 1 or not kinds <= {str, int, bool}:
        raise UnsupportedAnnotation(f"{annotation_text(annotation)} must hold values of one type, str, int or bool")
    return Hint(PLAIN[kinds.pop()], nullable=None in get_args(annotation), choices=tuple(values))


def _enum(cls: type[Enum]) -> Hint:
    values = tuple(member.value for member in cls)
    kinds = {type(value) for value in values}
    if issubclass(cls, Flag):
        raise UnsupportedAnnotation(f"{annotation_text(cls)} is a Flag; use an Enum, or a list of an Enum")
    if len(kinds) != 1 or not kinds <= {str, int, float, bool}:
        raise UnsupportedAnnotation(
            f"{annotation_text(cls)} must have members whose values are of one type, str, int, float or bool"
        )
    return Hint(PLAIN[kinds.pop()], choices=values, cls=cls)


def _list(annotation: Any) -> Hint:
    if not get_args(annotation):
        raise UnsupportedAnnotation(
            f"{annotation_text(annotation)} is not supported; use {_instead(get_origin(annotation))}"
        )
    (element,) = get_args(annotation)
    if _hashable(element) and element in LISTS:
        return Hint(LISTS[element])
    hint = hint_of(element)
    if hint.said.min_length is not None or hint.said.max_length is not None or hint.said.secret:
        raise UnsupportedAnnotation("list items support only a minimum and a maximum")
    kind = _SLICES.get(hint.type)
    if kind is not None and not hint.nullable:
        return Hint(kind, choices=hint.choices, cls=hint.cls, said=hint.said)
    said = annotation_text(annotation).replace("Sequence[", "list[", 1)
    raise UnsupportedAnnotation(f"{said} is not supported; use list[Any] and describe its items")


def _dict(annotation: Any) -> Hint:
    pair = get_args(annotation)
    if _hashable(pair) and pair in DICTS:
        return Hint(DICTS[pair])
    raise UnsupportedAnnotation(
        f"{annotation_text(annotation)} is not supported; use dict[str, Any] and describe its keys and values"
    )


_SLICES: Final[Mapping[ArgType, ArgType]] = {
    ArgType.MAP: ArgType.SLICE_MAP,
    **{PLAIN[kind]: LISTS[kind] for kind in (str, int, float, bool, Any)},
}


_FORMS: Final[Mapping[Any, Callable[[Any], Hint]]] = {
    Union: _optional,
    types.UnionType: _optional,
    Annotated: _annotated,
    Literal: _literal,
    list: _list,
    Sequence: _list,
    dict: _dict,
    Mapping: _dict,
    array: lambda annotation: Hint(ArgType.EMBEDDING),
}
"""The function that reads each form of typing."""


def _instead(annotation: Any) -> str:
    if _hashable(annotation) and annotation in INSTEAD:
        return INSTEAD[annotation]
    if get_origin(annotation) in (tuple, set, frozenset, Iterable):
        return INSTEAD[get_origin(annotation)]
    if isinstance(annotation, type) and annotation.__name__ in TEXTUAL:
        return "str and parse it in the function"
    return KNOWN


def _hashable(annotation: Any) -> bool:
    try:
        hash(annotation)
    except TypeError:
        return False
    return True
