"""The fields of a class that describes a map.

Supported are attrs classes, dataclasses, TypedDicts and NamedTuples, and with their packages pydantic models and
msgspec Structs. Type arguments of a generic class replace its type variables.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Final, Literal, NotRequired, Required, Union, get_args, get_origin

import attrs

from neuroscript.errors import UNSET
from neuroscript.spec.annotations import (
    FIELDS,
    KNOWN,
    Arg,
    Hint,
    UnsupportedAnnotation,
    annotation_text,
    annotations_of,
    hint_of,
    is_named_tuple,
    is_pydantic_model,
    is_record,
    is_struct,
    is_typed_dict,
    record_of,
    substituted,
    type_arguments,
)

LIBRARY: Final = ("pydantic", "pydantic_core")
"""The packages with classes such as URLs, which only a pydantic model may have as fields."""

JSON_TYPES: Final[dict[Any, Any]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "date": datetime.date,
    "date-time": datetime.datetime,
}
"""The annotation for the JSON form of a class, by the format or type in its JSON Schema."""

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
        attribute: The attribute of an instance that has the value; empty for a tag, which belongs to the class.
    """

    name: str
    hint: Hint
    default: Any = UNSET
    optional: bool = False
    attribute: str = ""


@attrs.frozen(eq=False, repr=False)
class Declared:
    """A field as its class declares it."""

    name: str
    annotation: Any
    default: Any = UNSET
    optional: bool = False
    attribute: str | None = None


def fields_of(cls: Any, above: tuple[Any, ...] = ()) -> tuple[Field, ...]:
    """Return the constructor fields of a class, in order.

    A field with a plain default has that default; one with a factory is optional and left to the class.

    Raises:
        UnsupportedAnnotation: *cls* is not a supported class, contains itself, or has a field without an ArgType.
    """
    if not is_record(cls):
        raise UnsupportedAnnotation("cls must be a class with annotated fields")
    if cls in above:
        cycle = " -> ".join(map(annotation_text, (*above[above.index(cls) :], cls)))
        raise UnsupportedAnnotation(f"{annotation_text(cls)} contains itself ({cycle}); use dict[str, Any] there")
    origin = get_origin(cls) or cls
    replaced = type_arguments(cls)
    return tuple(
        Field(
            each.name,
            _hint(each.name, substituted(each.annotation, replaced), (*above, cls)),
            each.default,
            each.optional,
            each.name if each.attribute is None else each.attribute,
        )
        for each in _declared(origin)
    )


def _declared(cls: Any) -> Iterator[Declared]:
    if is_pydantic_model(cls):
        yield from _model_fields(cls)
        return
    annotations = annotations_of(cls)
    if is_typed_dict(cls):
        yield from (
            _key(name, annotation, name not in cls.__required_keys__) for name, annotation in annotations.items()
        )
    elif attrs.has(cls):
        yield from _attributes(cls, annotations)
    elif is_named_tuple(cls):
        defaults = cls._field_defaults
        yield from (Declared(name, annotations.get(name, Any), defaults.get(name, UNSET)) for name in cls._fields)
    elif is_struct(cls):
        yield from _struct_fields(cls, annotations)
    else:
        yield from _members(cls, annotations)


def _key(name: str, annotation: Any, optional: bool) -> Declared:
    """Return a key of a TypedDict. Markers in its annotation take precedence over ``__required_keys__``."""
    marks: list[Any] = []
    while (form := get_origin(annotation)) in (*OPTIONAL, Annotated) or str(form).endswith(FROZEN_KEY):
        optional = OPTIONAL.get(form, optional)
        annotation, *added = get_args(annotation)
        marks = [*added, *marks]
    return Declared(name, Annotated[(annotation, *marks)] if marks else annotation, UNSET, optional)


def _attributes(cls: Any, annotations: dict[str, Any]) -> Iterator[Declared]:
    for field in attrs.fields(cls):
        if field.init:
            has_factory = isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]
            default = UNSET if has_factory or field.default is attrs.NOTHING else field.default
            if field.name not in annotations and field.type is None:
                raise UnsupportedAnnotation(f"field {field.name}: has no annotation; use {KNOWN}")
            annotation = annotations.get(field.name, field.type)
            yield Declared(field.alias or field.name, annotation, default, has_factory, field.name)


def _members(cls: Any, annotations: dict[str, Any]) -> Iterator[Declared]:
    import dataclasses  # already imported by the class's module, and slow to import otherwise

    for name, annotation in annotations.items():
        if isinstance(annotation, dataclasses.InitVar):
            raise UnsupportedAnnotation(f"field {name}: InitVar is not supported; use a field")
    for field in dataclasses.fields(cls):
        if field.init:
            has_factory = field.default_factory is not dataclasses.MISSING
            default = UNSET if field.default is dataclasses.MISSING else field.default
            yield Declared(field.name, annotations[field.name], default, has_factory)


def _struct_fields(cls: Any, annotations: dict[str, Any]) -> Iterator[Declared]:
    import msgspec

    yield from (Declared(name, Literal.__getitem__(tag), tag, attribute="") for name, tag in tag_of(cls).items())
    for field in msgspec.structs.fields(cls):
        has_factory = field.default_factory is not msgspec.NODEFAULT
        default = UNSET if field.default is msgspec.NODEFAULT else field.default
        yield Declared(field.encode_name, annotations[field.name], default, has_factory, field.name)


def tag_of(cls: Any) -> dict[str, Any]:
    """Return the tag of a msgspec Struct by the name of its key, if it has one."""
    config = getattr(cls, "__struct_config__", None)
    return {} if config is None or config.tag is None else {config.tag_field: config.tag}


def _model_fields(cls: Any) -> Iterator[Declared]:
    """Yield the fields of a pydantic model; constraints that a spec cannot express are left to its validators."""
    from pydantic_core import PydanticUndefined

    for name, field in cls.model_fields.items():
        alias = field.validation_alias if isinstance(field.validation_alias, str) else field.alias or name
        has_factory = field.default_factory is not None
        default = UNSET if has_factory or field.default is PydanticUndefined else field.default
        marks = [each for each in field.metadata if _is_expressible(each)]
        if field.description:
            marks.append(field.description)
        plain = _built_in(field.annotation, marks)
        annotation = Annotated[(plain, *marks)] if marks else plain
        yield Declared(alias, annotation, default, has_factory, name)


def library_fields(cls: Any) -> list[str]:
    """Return the fields of a pydantic model whose annotations name classes of pydantic, such as a URL."""
    return [name for name, field in cls.model_fields.items() if _built_in(field.annotation, []) != field.annotation]


def computed_fields_of(cls: Any) -> tuple[Field, ...]:
    """Return the computed fields of a pydantic model, which only a result has; none for other classes.

    Raises:
        UnsupportedAnnotation: One of them has no ArgType.
    """
    origin = get_origin(cls) or cls
    if not is_pydantic_model(origin):
        return ()
    from pydantic_core import PydanticUndefined

    found = []
    for name, field in origin.model_computed_fields.items():
        marks: list[Any] = [field.description] if field.description else []
        plain = Any if field.return_type is PydanticUndefined else _built_in(field.return_type, marks)
        annotation = Annotated[(plain, *marks)] if marks else plain
        found.append(Field(field.alias or name, _hint(name, annotation, (cls,)), UNSET, True, name))
    return tuple(found)


def _built_in(annotation: Any, marks: list[Any]) -> Any:
    """Return an annotation with the built-in of the JSON form in place of each class of pydantic, such as a URL."""
    parts = get_args(annotation)
    if get_origin(annotation) is Annotated:
        kept = [each for each in parts[1:] if _is_expressible(each)]
        bare = _built_in(parts[0], marks)
        return Annotated[(bare, *kept)] if kept else bare
    if parts:
        plain = tuple(_built_in(each, marks) if each is not Ellipsis else each for each in parts)
        if plain == parts:
            return annotation
        form = get_origin(annotation)
        return Union.__getitem__(plain) if form in (Union, UnionType) else form[plain]
    if not isinstance(annotation, type) or annotation.__module__.partition(".")[0] not in LIBRARY:
        return annotation
    if is_pydantic_model(annotation):
        return annotation
    from pydantic import TypeAdapter

    schema = TypeAdapter(annotation).json_schema()
    if schema.get("writeOnly"):
        marks.append(Arg(secret=True))
    return JSON_TYPES.get(schema.get("format") or schema.get("type"), JSON_TYPES.get(schema.get("type"), annotation))


def _is_expressible(mark: Any) -> bool:
    names = {name for name in getattr(mark, "__slots__", ()) if getattr(mark, name, None) is not None}
    return bool(names) and names <= set(FIELDS) - {"description", "documentation"}


def _hint(name: str, annotation: Any, above: tuple[Any, ...]) -> Hint:
    try:
        hint = hint_of(annotation)
        _check_cycles(hint, above)
    except UnsupportedAnnotation as error:
        raise UnsupportedAnnotation(f"field {name}: {error}") from error
    return hint


def _check_cycles(hint: Hint, above: tuple[Any, ...]) -> None:
    record = None if hint.cls is None else record_of(hint.cls)
    if record is not None and not (isinstance(record, type) and issubclass(record, Enum)):
        fields_of(record, above)
    for each in hint.nested:
        _check_cycles(each, above)
