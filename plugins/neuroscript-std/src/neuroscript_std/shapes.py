"""Shape-Lite: a schema for maps, written as a map of field names to types.

A field name can end in ``?`` (optional) and ``[]`` (a list of the type), in any order. Its type is one of `TYPES`, or a
map that is a nested shape. Validation reports all mismatches, not only the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from neuroscript import ToolFailed
from neuroscript_std.formats import is_email, is_iso_datetime, is_url
from neuroscript_std.paths import fold_keys, format_path, type_name

MAX_DEPTH: Final = 64
"""Maximum nesting levels of shapes below the outermost."""

MAX_LISTED_FAULTS: Final = 20
"""Maximum number of faults in an error message; the others are only counted."""

FIELD: Final = re.compile(r"(?P<name>.*?)(?:\?(?:\[\])?|\[\]\??)?", re.DOTALL)

Where = tuple[Any, "str | int"] | None
"""A location: the enclosing location, and the key or index in it."""


@attrs.frozen(eq=False, repr=False)
class Field:
    """One field of a shape.

    Attributes:
        name: Name without suffixes.
        type: A key of `TYPES`, or the fields of a nested shape.
        optional: Whether the field can be absent.
        many: Whether the field is a list of *type*.
    """

    name: str
    type: str | Mapping[str, Field]
    optional: bool
    many: bool

    @property
    def expected(self) -> str:
        """The expected type, as error messages name it."""
        word = self.type if isinstance(self.type, str) else "map"
        return f"list of {word}" if self.many else word


Fields = Mapping[str, Field]
"""The fields of a shape by name; case-folded if case does not matter."""


@attrs.define(eq=False, repr=False)
class Faults:
    """The faults that were found: the messages of the first ones, and the number of all."""

    problems: list[str] = attrs.field(factory=list)
    count: int = 0

    def add(self, where: Where, expected: str, got: str) -> None:
        """Add a fault."""
        self.count += 1
        if self.count <= MAX_LISTED_FAULTS:
            self.problems.append(f"{_format_path(where)}: expected {expected}, got {got}")

    def refuse(self, code: str) -> None:
        """Raise `ToolFailed` with *code* if there are any faults."""
        if self.count:
            more = [f"and {self.count - MAX_LISTED_FAULTS} more"] if self.count > MAX_LISTED_FAULTS else []
            raise ToolFailed("; ".join([*self.problems, *more]), code=code, retry="model")


def parse_shape(shape: Mapping[str, Any], *, case_insensitive: bool = False) -> Fields:
    """Parse a shape into its fields.

    Raises:
        ToolFailed: shape.bad_shape, with every fault up to `MAX_LISTED_FAULTS`.
    """
    faults = Faults()
    fields = _fields(shape, case_insensitive, None, 0, faults)
    faults.refuse("shape.bad_shape")
    return fields


def validate(
    value: dict[str, Any], fields: Fields, *, allow_extra: bool = False, case_insensitive: bool = False
) -> None:
    """Check that a map matches a shape.

    Args:
        fields: Parsed with the same *case_insensitive*.
        allow_extra: Whether keys that the shape does not name are let be, at every level.
        case_insensitive: Whether keys may differ from the names of the shape in case.

    Raises:
        ToolFailed: shape.mismatch, with every fault up to `MAX_LISTED_FAULTS`.
    """
    validation = Validation(allow_extra, case_insensitive)
    validation.map(value, fields, None)
    validation.faults.refuse("shape.mismatch")


@attrs.frozen(eq=False, repr=False)
class Validation:
    """One pass over a value that collects mismatches in *faults*."""

    allow_extra: bool
    case_insensitive: bool
    faults: Faults = attrs.field(factory=Faults, init=False)

    def map(self, value: dict[str, Any], fields: Fields, where: Where) -> None:
        """Validate one map."""
        given = fold_keys(value) if self.case_insensitive else {key: [key] for key in value}
        for key, field in fields.items():
            self._field(value, given.pop(key, []), field, where)
        if self.allow_extra:
            return
        for keys in given.values():
            for key in keys:
                self.faults.add((where, key), "nothing", type_name(value[key]))

    def _field(self, value: dict[str, Any], keys: list[str], field: Field, where: Where) -> None:
        if len(keys) > 1:
            self.faults.add((where, field.name), "one key", f"{len(keys)} that differ only in case")
        elif keys:
            self._value(value[keys[0]], field, (where, keys[0]))
        elif not field.optional:
            self.faults.add((where, field.name), field.expected, "nothing")

    def _value(self, value: Any, field: Field, where: Where) -> None:
        if not field.many:
            self._check_value(value, field.type, where)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self._check_value(item, field.type, (where, index))
        else:
            self.faults.add(where, field.expected, type_name(value))

    def _check_value(self, value: Any, type: str | Fields, where: Where) -> None:
        if isinstance(type, str):
            if not TYPES[type](value):
                wrong_form = type in TEXTS and isinstance(value, str)
                self.faults.add(where, type, "a string of another format" if wrong_form else type_name(value))
        elif isinstance(value, dict):
            self.map(value, type, where)
        else:
            self.faults.add(where, "map", type_name(value))


def _fields(shape: Mapping[str, Any], fold: bool, where: Where, depth: int, faults: Faults) -> Fields:
    fields: dict[str, Field] = {}
    if depth > MAX_DEPTH:
        faults.add(where, f"at most {MAX_DEPTH} levels of nested shapes", "more")
        return fields
    for key, type in shape.items():
        field = _field(key, type, fold, (where, key), depth, faults)
        if field is None:
            continue
        name = field.name.casefold() if fold else field.name
        if name in fields:
            faults.add((where, key), "each field once", "another of that name")
        fields[name] = field
    return fields


def _field(key: str, type: Any, fold: bool, where: Where, depth: int, faults: Faults) -> Field | None:
    found = FIELD.fullmatch(key)
    name = found["name"] if found else ""
    if not name or name.endswith(("?", "[]")):
        faults.add(where, "a name followed by at most one ? and one []", "another string")
        return None
    suffixes = key[len(name) :]
    match type:
        case str() if type in TYPES:
            held: str | Fields = type
        case Mapping():
            held = _fields(type, fold, where, depth + 1, faults)
        case _:
            got = "another string" if isinstance(type, str) else type_name(type)
            faults.add(where, f"one of {', '.join(TYPES)} or a map of fields", got)
            return None
    return Field(name, held, "?" in suffixes, "[]" in suffixes)


def _format_path(where: Where) -> str:
    steps: list[str | int] = []
    while where is not None:
        where, step = where
        steps.append(step)
    return format_path(steps[::-1])


def _of_form(fits: Callable[[str], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and fits(value)


def _is_whole(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


TEXTS: Final[Mapping[str, Callable[[str], bool]]] = {
    "email": is_email,
    "url": is_url,
    "isoDatetime": is_iso_datetime,
}
"""The string types with a format."""

TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "int": _is_whole,
    "float": lambda value: isinstance(value, int | float) and type(value) is not bool,
    "bool": lambda value: type(value) is bool,
    "any": lambda value: True,
    **{word: _of_form(fits) for word, fits in TEXTS.items()},
}
"""The supported types, each with the test that a value must pass."""
