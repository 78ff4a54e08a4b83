"""The fields of a class that describes a map: an attrs class, a dataclass or a TypedDict."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any, Final, NotRequired, Required, get_args, get_origin

import attrs

from neuroscript.errors import UNSET
from neuroscript.spec.annotations import (
    KNOWN,
    Hint,
    UnsupportedAnnotation,
    annotations_of,
    hint_of,
    is_record,
    is_typed_dict,
)

OPTIONAL: Final = {Required: False, NotRequired: True}
FROZEN_KEY: Final = "ReadOnly"
"""The name of typing's marker for read-only keys, available from Python 3.13."""


@attrs.frozen(eq=False, repr=False)
class Field:
    """One field of a class.

    Attributes:
        name: The name in the constructor and in the map.
        hint: The meaning of its annotation.
        default: The default of the class, or `UNSET`.
        optional: Whether it may be omitted because the class supplies a value.
    """

    name: str
    hint: Hint
    default: Any = UNSET
    optional: bool = False


def fields_of(cls: type, above: tuple[type, ...] = ()) -> tuple[Field, ...]:
    """Return the constructor fields of a class, in order.

    A field with a plain default has that default; one with a factory is optional and left to the class.

    Raises:
        Unreadable: *cls* is not a supported class, contains itself, or has a field without an ArgType.
    """
    if not is_record(cls):
        raise UnsupportedAnnotation("cls must be an attrs class, a dataclass, a TypedDict or an Enum")
    if cls in above:
        raise UnsupportedAnnotation(f"{cls.__name__} contains itself; use keys and Any instead")
    return tuple(
        Field(name, _hint(name, annotation, (*above, cls)), default, optional)
        for name, annotation, default, optional in _declared(cls, annotations_of(cls))
    )


DeclaredFields = tuple[str, Any, Any, bool]
"""A name, an annotation, a default, and whether the field may be omitted."""


def _declared(cls: Any, annotations: dict[str, Any]) -> Iterator[DeclaredFields]:
    if is_typed_dict(cls):
        yield from (
            _key(name, annotation, name not in cls.__required_keys__) for name, annotation in annotations.items()
        )
    elif attrs.has(cls):
        yield from _attributes(cls, annotations)
    else:
        yield from _members(cls, annotations)


def _key(name: str, annotation: Any, optional: bool) -> DeclaredFields:
    """Return a key of a TypedDict. Markers in its annotation take precedence over ``__required_keys__``."""
    marks: list[Any] = []
    while (form := get_origin(annotation)) in (*OPTIONAL, Annotated) or str(form).endswith(FROZEN_KEY):
        optional = OPTIONAL.get(form, optional)
        annotation, *added = get_args(annotation)
        marks = [*added, *marks]
    return name, Annotated[(annotation, *marks)] if marks else annotation, UNSET, optional


def _attributes(cls: Any, annotations: dict[str, Any]) -> Iterator[DeclaredFields]:
    for field in attrs.fields(cls):
        if field.init:
            left = isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]
            default = UNSET if left or field.default is attrs.NOTHING else field.default
            if field.name not in annotations and field.type is None:
                raise UnsupportedAnnotation(f"field {field.name}: has no annotation; use {KNOWN}")
            yield field.alias or field.name, annotations.get(field.name, field.type), default, left


def _members(cls: Any, annotations: dict[str, Any]) -> Iterator[DeclaredFields]:
    import dataclasses  # already imported by the class's module, and slow to import otherwise

    for name, annotation in annotations.items():
        if isinstance(annotation, dataclasses.InitVar):
            raise UnsupportedAnnotation(f"field {name}: InitVar is not supported; use a field")
    for field in dataclasses.fields(cls):
        if field.init:
            left = field.default_factory is not dataclasses.MISSING
            default = UNSET if field.default is dataclasses.MISSING else field.default
            yield field.name, annotations[field.name], default, left


def _hint(name: str, annotation: Any, above: tuple[type, ...]) -> Hint:
    try:
        hint = hint_of(annotation)
        if hint.cls is not None and not issubclass(hint.cls, Enum):
            fields_of(hint.cls, above)
    except UnsupportedAnnotation as error:
        raise UnsupportedAnnotation(f"field {name}: {error}") from error
    return hint


def plain(default: Any) -> Any:
    """Return a default as a caller would pass it: Enum members and instances become plain values."""
    if default is UNSET:  # UNSET is itself a member of an Enum
        return default
    if isinstance(default, Enum):
        return default.value
    if type(default) in (list, tuple):
        return [plain(each) for each in default]
    if type(default) is dict:
        return {name: plain(each) for name, each in default.items()}
    if is_record(type(default)):
        return _taken_apart(default)
    return default


def _taken_apart(instance: Any) -> Any:
    """Return an instance as a map of its fields, or unchanged if its class is not supported."""
    try:
        fields = fields_of(type(instance))
    except UnsupportedAnnotation:
        return instance
    return {field.name: plain(getattr(instance, _attribute(instance, field.name))) for field in fields}


def _attribute(instance: Any, name: str) -> str:
    """Return the attribute that stores the constructor argument *name*."""
    if not attrs.has(type(instance)):
        return name
    names: dict[str | None, str] = {field.alias: field.name for field in attrs.fields(type(instance))}
    return names[name]
