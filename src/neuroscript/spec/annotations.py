"""Annotations of Python functions, read as ArgTypes with descriptions and bounds.

An annotation without an ArgType raises an error that names a replacement; it never falls back to `any`. In
``Annotated``, a string is a description. Metadata of ``annotated_types`` and compatible packages is supported;
constraints that an `ArgSpec` cannot express are rejected, because a bound that is not enforced is worse than none.
"""

from __future__ import annotations

import types
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
)
from collections.abc import Set as AbstractSet
from enum import Enum, Flag
from typing import Annotated, Any, Final, Literal, Tuple, TypeVar, Union, get_args, get_origin, get_type_hints  # noqa: UP035

import attrs

from neuroscript.coercion.parameters import FLAG, NUMBER, STRING, WHOLE, optional, require_fields
from neuroscript.coercion.scalars import AnyContent
from neuroscript.coercion.types import ANNOTATIONS, CHOICE_TYPES, ELEMENTS, LISTS, ArgType
from neuroscript.errors import SpecError

FIELDS: Final = {
    "description": "description",
    "documentation": "description",
    "ge": "minimum",
    "le": "maximum",
    "gt": "exclusive_minimum",
    "lt": "exclusive_maximum",
    "min_length": "min_length",
    "max_length": "max_length",
}
"""Metadata attributes of other packages, and the `Arg` fields with the same meaning."""


UNSUPPORTED: Final = ("pattern", "multiple_of", "tz")
"""Metadata attributes that an `ArgSpec` cannot express."""


KNOWN_PACKAGES: Final = frozenset({"annotated_types", "msgspec", "pydantic", "typing_extensions"})
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
        exclusive_minimum: A number that the value, or each number in a list, must exceed.
        exclusive_maximum: A number that the value, or each number in a list, must be less than.
        secret: Whether the value must never be displayed or logged.

    Raises:
        SpecError: With every problem.
    """

    description: str = ""
    minimum: float | None = attrs.field(default=None, kw_only=True)
    maximum: float | None = attrs.field(default=None, kw_only=True)
    min_length: int | None = attrs.field(default=None, kw_only=True)
    max_length: int | None = attrs.field(default=None, kw_only=True)
    exclusive_minimum: float | None = attrs.field(default=None, kw_only=True)
    exclusive_maximum: float | None = attrs.field(default=None, kw_only=True)
    secret: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        number, length = optional(NUMBER), optional(WHOLE)
        bounds = {"minimum": number, "maximum": number, "min_length": length, "max_length": length}
        bounds |= {"exclusive_minimum": number, "exclusive_maximum": number}
        require_fields("Arg", self, description=STRING, secret=FLAG, **bounds)


UNMARKED: Final = Arg()


def apply_metadata(before: Arg, marks: Iterable[Any]) -> Arg:
    """Return *before* updated with the metadata of an argument. Later metadata takes precedence.

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
            found.update(_read(mark))
    try:
        return Arg(**found)
    except SpecError as error:  # from the metadata of another package
        raise UnsupportedMetadata("; ".join(error.problems)) from None


def _read(mark: Any) -> dict[str, Any]:
    """Return the `Arg` fields that the metadata of another package sets."""
    found: dict[str, Any] = {}
    for each in getattr(mark, "metadata", None) or ():
        found.update(_read(each))
    known = {name: getattr(mark, name) for name in FIELDS if hasattr(mark, name)}
    if not known or any(getattr(mark, name, None) is not None for name in UNSUPPORTED):
        raise UnsupportedMetadata(
            f"{type(mark).__name__} is not supported; remove it and check the value in the function"
        )
    found.update({FIELDS[name]: _number(value) for name, value in known.items() if value is not None})
    return found


def _number(value: Any) -> Any:
    """Return a Decimal as the int or float of the same value; return any other value as it is."""
    from decimal import Decimal

    if type(value) is not Decimal or not value.is_finite():
        return value
    number = int(value) if value == value.to_integral_value() and abs(value.adjusted()) < 19 else float(value)
    return number if Decimal(repr(number)) == value else value


@attrs.frozen(eq=False, repr=False)
class Hint:
    """The meaning of an annotation, as the fields of an `ArgSpec`.

    Attributes:
        type: The ArgType.
        nullable: Whether ``None`` is allowed.
        choices: The values of a ``Literal`` or an Enum, possibly inside a list.
        cls: The class that the function receives.
        said: The metadata from ``Annotated``.
        items: The meaning of each item of a list.
        prefix_items: The meaning of each item of a tuple of fixed length.
        unique_items: Whether it is a set.
        value_spec: The meaning of each value of a map.
        key_spec: The meaning of each key of a map.
        any_of: The meaning of each member of a union.
        format: The format of a string.
    """

    type: ArgType
    nullable: bool = False
    choices: tuple[Any, ...] = ()
    cls: Any = None
    said: Arg = UNMARKED
    items: Hint | None = None
    prefix_items: tuple[Hint, ...] = ()
    unique_items: bool = False
    value_spec: Hint | None = None
    key_spec: Hint | None = None
    any_of: tuple[Hint, ...] = ()
    format: str = ""

    @property
    def nested(self) -> tuple[Hint, ...]:
        """The hints directly within this one."""
        parts = (self.items, *self.prefix_items, self.value_spec, self.key_spec, *self.any_of)
        return tuple(each for each in parts if each is not None)


class UnsupportedAnnotation(Exception):
    """An annotation without an ArgType; the message says what to use."""


CONTAINERS: Final[frozenset[Any]] = frozenset({tuple, set, frozenset, deque})
"""The classes that a function may receive instead of a list."""


MAPPINGS: Final[frozenset[Any]] = frozenset({OrderedDict, defaultdict})
"""The classes that a function may receive instead of a dict."""


BARE: Final[Mapping[Any, Any]] = {
    **dict.fromkeys((Sequence, Iterable, Collection, MutableSequence), list),
    **dict.fromkeys((Mapping, MutableMapping), dict),
    **dict.fromkeys((AbstractSet, MutableSet), set),
    Tuple: tuple,  # noqa: UP006
    object: Any,
}
"""The annotation with the same meaning, for classes without type arguments."""


KNOWN: Final = (
    "str, int, float, bool, bytes, bytearray, array, Any, list, dict, OrderedDict, defaultdict, tuple or set of T, a "
    "union, Literal, an Enum, a class with annotated fields, datetime, date, time, timedelta, UUID, Decimal, Path, or "
    "one of these | None"
)


INSTEAD: Final[Mapping[Any, str]] = {
    memoryview: "bytes",
    complex: "list[float]",
}
"""The replacement for unsupported types that are close to a supported one."""


MEANINGS: Final = ("__supertype__", "__value__")
"""The attributes with the target of a ``NewType`` and of an alias made by the ``type`` statement."""


def hint_of(annotation: Any) -> Hint:
    """Return the meaning of *annotation*.

    Raises:
        UnsupportedAnnotation: There is no ArgType for it.
    """
    if _hashable(annotation):
        annotation = BARE.get(annotation, annotation)
        if annotation in ANNOTATIONS:
            return Hint(ANNOTATIONS[annotation])
        if annotation in CONTAINERS:
            return Hint(ArgType.SLICE_ANY, cls=annotation, unique_items=annotation in _SETS)
        if annotation in MAPPINGS:
            return Hint(ArgType.MAP, cls=annotation)
        if annotation is bytearray:
            return Hint(ArgType.BLOB, cls=bytearray)
    form = _FORMS.get(get_origin(annotation))
    if form is not None:
        return form(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _enum(annotation)
    if is_root_model(annotation):
        return _root(annotation)
    if is_content(annotation):
        raise UnsupportedAnnotation("Content is supported only as a result or item, alone or in a union; use Any")
    if is_record(annotation):
        return Hint(ArgType.MAP, cls=annotation)
    if isinstance(annotation, type):
        from neuroscript.coercion.string_formats import format_of_class

        name = format_of_class(annotation)
        if name is not None:
            return Hint(ArgType.STRING, cls=annotation, format=name)
    for meaning in MEANINGS:
        if hasattr(annotation, meaning):
            target = getattr(annotation, meaning)
            return hint_of(substituted(target, type_arguments(annotation)))
    raise UnsupportedAnnotation(f"{annotation_text(annotation)} is not supported; use {_instead(annotation)}")


def is_content(annotation: Any) -> bool:
    """Return whether an annotation is the class of content."""
    return isinstance(annotation, type) and issubclass(annotation, AnyContent)


def type_arguments(annotation: Any) -> dict[Any, Any]:
    """Return the type arguments of a generic class or alias, by type variable."""
    origin = get_origin(annotation) or annotation
    variables = getattr(origin, "__type_params__", ()) or getattr(origin, "__parameters__", ())
    return dict(zip(variables, get_args(annotation), strict=False))


def substituted(annotation: Any, replaced: Mapping[Any, Any]) -> Any:
    """Return an annotation with type variables replaced by type arguments."""
    if not replaced:
        return annotation
    if isinstance(annotation, TypeVar):
        return replaced.get(annotation, annotation)
    free = getattr(annotation, "__parameters__", ())
    return annotation[tuple(replaced.get(each, each) for each in free)] if free else annotation


def is_annotation(value: Any) -> bool:
    """Return whether a value is a class, an alias or a form of typing, supported or not."""
    is_alias = any(hasattr(value, name) for name in ("__origin__", "__args__", *MEANINGS))
    return isinstance(value, (type, types.UnionType)) or value is Any or is_alias


def is_record(annotation: Any) -> bool:
    """Return whether an annotation is a class with declared fields, possibly with type arguments.

    These are attrs classes, dataclasses, TypedDicts, NamedTuples, pydantic models and msgspec Structs.
    """
    cls = get_origin(annotation) or annotation
    if not isinstance(cls, type) or is_root_model(cls):
        return False
    return (
        attrs.has(cls)
        or hasattr(cls, "__dataclass_fields__")
        or is_typed_dict(cls)
        or is_named_tuple(cls)
        or is_pydantic_model(cls)
        or is_struct(cls)
    )


def is_typed_dict(cls: type) -> bool:
    """Return whether a class is a TypedDict from any package."""
    return issubclass(cls, dict) and hasattr(cls, "__required_keys__")


def is_named_tuple(cls: type) -> bool:
    """Return whether a class is a NamedTuple with annotated fields."""
    return issubclass(cls, tuple) and hasattr(cls, "_field_defaults") and hasattr(cls, "__annotations__")


def is_pydantic_model(cls: type) -> bool:
    """Return whether a class is a pydantic model."""
    return hasattr(cls, "__pydantic_validator__") and hasattr(cls, "model_fields")


def is_root_model(cls: Any) -> bool:
    """Return whether a class is a pydantic model of one value that is not a field."""
    return hasattr(cls, "__pydantic_root_model__") and bool(cls.__pydantic_root_model__)


def root_of(cls: Any) -> Hint:
    """Return the meaning of the value of a RootModel."""
    field = cls.model_fields["root"]
    return hint_of(Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation)


def record_of(cls: Any) -> Any:
    """Return the class whose fields are the keys of a map: *cls*, the class in a RootModel, or None."""
    while is_root_model(cls):
        hint = root_of(cls)
        cls = hint.cls if hint.type is ArgType.MAP else None
    return cls if is_record(cls) else None


def allows_extra_keys(cls: Any) -> bool:
    """Return whether a class is a pydantic model that stores keys without a field."""
    model = get_origin(cls) or cls
    return isinstance(model, type) and is_pydantic_model(model) and model.model_config.get("extra") == "allow"  # type: ignore[attr-defined]


def is_struct(cls: type) -> bool:
    """Return whether a class is a msgspec Struct."""
    return hasattr(cls, "__struct_fields__") and hasattr(cls, "__struct_config__")


def annotations_of(thing: Any) -> dict[str, Any]:
    """Return the annotations of a function or class, evaluated only by `typing.get_type_hints`.

    Raises:
        UnsupportedAnnotation: One of them cannot be evaluated.
    """
    try:
        return get_type_hints(thing, include_extras=True)
    except Exception as error:
        raise UnsupportedAnnotation(f"its annotations cannot be evaluated ({type(error).__name__}: {error})") from error


def annotation_text(annotation: Any) -> str:
    """Return an annotation as the author wrote it, as closely as possible."""
    name = annotation.__qualname__ if isinstance(annotation, type) and not get_args(annotation) else annotation
    return str(name).replace("typing.", "").replace("collections.abc.", "")


def _union(annotation: Any) -> Hint:
    members = get_args(annotation)
    hints = [hint_of(each) for each in members if each is not type(None)]
    nullable = len(hints) < len(members)
    if len(hints) == 1:
        return attrs.evolve(hints[0], nullable=nullable or hints[0].nullable)
    return Hint(ArgType.ANY, nullable=nullable, any_of=tuple(hints))


def _annotated(annotation: Any) -> Hint:
    kind, *marks = get_args(annotation)
    hint = hint_of(kind)
    try:
        return attrs.evolve(hint, said=apply_metadata(hint.said, marks))
    except UnsupportedMetadata as error:
        raise UnsupportedAnnotation(str(error)) from error


def _literal(annotation: Any) -> Hint:
    values = tuple(value for value in get_args(annotation) if value is not None)
    nullable = None in get_args(annotation)
    if not values:
        return Hint(ArgType.NIL)
    members = [value for value in values if isinstance(value, Enum)]
    if members:
        return _literal_members(annotation, values, nullable)
    if not {*map(type, values)} <= {str, int, bool}:
        raise UnsupportedAnnotation(f"{annotation_text(annotation)} must hold strings, ints, booleans or Enum members")
    return attrs.evolve(_choices(values), nullable=nullable)


def _literal_members(annotation: Any, values: tuple[Any, ...], nullable: bool) -> Hint:
    """Return the meaning of some members of one Enum."""
    classes = {type(value) for value in values}
    hint = hint_of(classes.pop())
    if classes or not hint.choices:
        raise UnsupportedAnnotation(f"{annotation_text(annotation)} must hold members of one Enum")
    return attrs.evolve(hint, nullable=nullable, choices=tuple(choice_of(value) for value in values))


def _choices(values: tuple[Any, ...], cls: Any = None) -> Hint:
    """Return the meaning of a choice among scalars: one type with choices, or alternatives by type."""
    kinds = dict.fromkeys(map(type, values))
    if len(kinds) == 1:
        return Hint(ANNOTATIONS[type(values[0])], choices=values, cls=cls)
    parts = (tuple(value for value in values if type(value) is kind) for kind in kinds)
    return Hint(ArgType.ANY, any_of=tuple(_choices(part) for part in parts), cls=cls)


def _root(cls: Any) -> Hint:
    """Return the meaning of a RootModel: that of its value, with items that have a class as a spec of their own."""
    hint = root_of(cls)
    if hint.type in ELEMENTS and hint.cls is not None and hint.cls not in CONTAINERS:
        item = Hint(ELEMENTS[hint.type], choices=hint.choices, cls=hint.cls)
        return attrs.evolve(hint, type=ArgType.SLICE_ANY, choices=(), items=item, cls=cls)
    return attrs.evolve(hint, cls=cls)


def _enum(cls: type[Enum]) -> Hint:
    names = tuple(cls.__members__)
    if not names:
        raise UnsupportedAnnotation(f"{annotation_text(cls)} has no members")
    if issubclass(cls, Flag):
        return Hint(ArgType.SLICE_STRING, choices=names, cls=cls, unique_items=True)
    return _choices(tuple(choice_of(member) for member in cls), cls)


def choice_of(member: Enum) -> Any:
    """Return the plain value of an Enum member: its value if all members have scalars as values, else its name."""
    has_scalars = all(type(each.value) in (str, int, float, bool) for each in type(member))
    return member.value if has_scalars else member.name


def _list(annotation: Any) -> Hint:
    return _items(annotation, None)


def _items(annotation: Any, cls: Any) -> Hint:
    """Return the meaning of a list, set, or tuple of any length."""
    is_set = cls in _SETS
    element = (*get_args(annotation), Any)[0]
    form = types.GenericAlias(list, element)
    hint = Hint(ANNOTATIONS[form]) if _hashable(form) and form in ANNOTATIONS else None
    if hint is None:
        inner = hint_of(element)
        kind = LISTS.get(inner.type)
        if kind is not None and _is_simple(inner) and (cls is None or inner.cls is None):
            bounds = attrs.evolve(inner.said, description="")
            hint = Hint(kind, choices=inner.choices, cls=inner.cls, said=bounds)
        else:
            hint = Hint(ArgType.SLICE_ANY, items=inner)
    return hint if cls is None else attrs.evolve(hint, cls=cls, unique_items=is_set)


def _is_simple(hint: Hint) -> bool:
    """Return whether a hint for the items of a list can be expressed by a slice type with choices, bounds and keys."""
    said = hint.said
    is_plain = not (hint.nullable or hint.nested or hint.unique_items or hint.format)
    return (
        is_plain
        and not replaces_item(hint.cls)
        and said.min_length is None
        and said.max_length is None
        and not said.secret
    )


def replaces_item(cls: Any) -> bool:
    """Return whether the class of an item requires a spec of its own, because its fields are not the keys."""
    return is_root_model(cls) or cls in MAPPINGS


def _container(annotation: Any) -> Hint:
    return _items(annotation, get_origin(annotation))


def _set(annotation: Any) -> Hint:
    return _items(annotation, set)


def _tuple(annotation: Any) -> Hint:
    parts = get_args(annotation)
    if len(parts) == 2 and parts[1] is Ellipsis:
        return _items(annotation, tuple)
    if not parts:
        raise UnsupportedAnnotation("tuple[()] is not supported; leave the argument out")
    return Hint(ArgType.SLICE_ANY, cls=tuple, prefix_items=tuple(map(hint_of, parts)))


def _dict(annotation: Any) -> Hint:
    pair = get_args(annotation) or (str, Any)
    form = types.GenericAlias(dict, pair)
    if _hashable(form) and form in ANNOTATIONS:
        return Hint(ANNOTATIONS[form])
    key, value = map(hint_of, pair)
    if key.type not in CHOICE_TYPES or key.nullable or key.unique_items:
        raise UnsupportedAnnotation(
            f"{annotation_text(annotation)} is not supported; use str, int, float, bool, an Enum, a Literal or a class "
            "with a string format as key"
        )
    has_texts = key.type is ArgType.STRING
    is_plain = has_texts and key.cls is None and not key.choices and not key.format and key.said == UNMARKED
    kind = ArgType.MAP if has_texts else ArgType.MAP_ANY_ANY
    return Hint(kind, key_spec=None if is_plain else key, value_spec=value)


def _mapping(annotation: Any) -> Hint:
    return attrs.evolve(_dict(annotation), cls=get_origin(annotation))


_SETS: Final[frozenset[Any]] = frozenset({set, frozenset})

_FORMS: Final[Mapping[Any, Callable[[Any], Hint]]] = {
    Union: _union,
    types.UnionType: _union,
    Annotated: _annotated,
    Literal: _literal,
    **dict.fromkeys((list, Sequence, Iterable, Collection, MutableSequence), _list),
    **dict.fromkeys((dict, Mapping, MutableMapping), _dict),
    **dict.fromkeys(MAPPINGS, _mapping),
    **dict.fromkeys((set, frozenset, deque), _container),
    **dict.fromkeys((AbstractSet, MutableSet), _set),
    tuple: _tuple,
    array: lambda annotation: Hint(ArgType.EMBEDDING),
}
"""The function that reads each form of typing."""


def _instead(annotation: Any) -> str:
    if _hashable(annotation) and annotation in INSTEAD:
        return INSTEAD[annotation]
    if isinstance(annotation, TypeVar):
        return "a concrete type"
    return KNOWN


def _hashable(annotation: Any) -> bool:
    try:
        hash(annotation)
    except TypeError:
        return False
    return True
