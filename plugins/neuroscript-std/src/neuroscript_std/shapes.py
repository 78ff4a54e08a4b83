"""Shape-Lite: what a map is to hold, as a map of field names to types.

A field's name may end in ``?`` (it may be absent) and ``[]`` (a list of that type), in any order; its type is one of
`TYPES`, or a map that is a shape itself.

Source: upstream ``pkg/json_lite/json_lite_guide.md``; where that stops at the first mismatch, all are told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from neuroscript import ToolFailed
from neuroscript_std.formats import is_email, is_iso_datetime, is_url
from neuroscript_std.paths import folded, spelt, type_name

DEEPEST: Final = 64
"""How many shapes may stand in each other below the first."""

LISTED: Final = 20
"""How many faults are told before the others are only counted."""

FIELD: Final = re.compile(r"(?P<name>.*?)(?:\?(?:\[\])?|\[\]\??)?", re.DOTALL)

Where = tuple[Any, "str | int"] | None
"""A place: the place that holds it, and the key or index in there."""


@attrs.frozen(eq=False, repr=False)
class Field:
    """One field of a shape.

    Attributes:
        name: Without suffixes.
        type: A word of `TYPES`, or the fields of a nested shape.
        optional: Whether it may be absent.
        many: Whether it is a list of what *type* says.
    """

    name: str
    type: str | Mapping[str, Field]
    optional: bool
    many: bool

    @property
    def expected(self) -> str:
        """What an error says is expected."""
        word = self.type if isinstance(self.type, str) else "map"
        return f"list of {word}" if self.many else word


Fields = Mapping[str, Field]
"""The fields of a shape by name; where case does not matter, by the name without regard to it."""


@attrs.define(eq=False, repr=False)
class Faults:
    """What is wrong, by path: the first of them in words, all of them in number."""

    told: list[str] = attrs.field(factory=list)
    count: int = 0

    def add(self, where: Where, expected: str, got: str) -> None:
        """Note one more."""
        self.count += 1
        if self.count <= LISTED:
            self.told.append(f"{_place(where)}: expected {expected}, got {got}")

    def refuse(self, code: str) -> None:
        """Raise a `ToolFailed` with that code if there are any."""
        if self.count:
            more = [f"and {self.count - LISTED} more"] if self.count > LISTED else []
            raise ToolFailed("; ".join([*self.told, *more]), code=code, retry="model")


def parsed(shape: Mapping[str, Any], *, case_insensitive: bool = False) -> Fields:
    """Return the fields of a shape.

    Raises:
        ToolFailed: shape.bad_shape, with every fault in it.
    """
    faults = Faults()
    fields = _fields(shape, case_insensitive, None, 0, faults)
    faults.refuse("shape.bad_shape")
    return fields


def validate(
    value: dict[str, Any], fields: Fields, *, allow_extra: bool = False, case_insensitive: bool = False
) -> None:
    """Make sure that a map holds what a shape says.

    Args:
        fields: Parsed with the same *case_insensitive*.
        allow_extra: Whether keys that the shape does not name are let be, at every level.
        case_insensitive: Whether keys may differ from the names of the shape in case.

    Raises:
        ToolFailed: shape.mismatch, with every fault up to `LISTED`.
    """
    validation = Validation(allow_extra, case_insensitive)
    validation.map(value, fields, None)
    validation.faults.refuse("shape.mismatch")


@attrs.frozen(eq=False, repr=False)
class Validation:
    """One pass over a value; what does not fit is noted in *faults*."""

    allow_extra: bool
    case_insensitive: bool
    faults: Faults = attrs.field(factory=Faults, init=False)

    def map(self, value: dict[str, Any], fields: Fields, where: Where) -> None:
        """Look through one map."""
        given = folded(value) if self.case_insensitive else {key: [key] for key in value}
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
            self._one(value, field.type, where)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self._one(item, field.type, (where, index))
        else:
            self.faults.add(where, field.expected, type_name(value))

    def _one(self, value: Any, type: str | Fields, where: Where) -> None:
        if isinstance(type, str):
            if not TYPES[type](value):
                wrong_form = type in TEXTS and isinstance(value, str)
                self.faults.add(where, type, "a text of another form" if wrong_form else type_name(value))
        elif isinstance(value, dict):
            self.map(value, type, where)
        else:
            self.faults.add(where, "map", type_name(value))


def _fields(shape: Mapping[str, Any], fold: bool, where: Where, depth: int, faults: Faults) -> Fields:
    fields: dict[str, Field] = {}
    if depth > DEEPEST:
        faults.add(where, f"at most {DEEPEST} shapes in each other", "more")
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
        faults.add(where, "a name with at most one ? and one [] behind it", "another text")
        return None
    suffixes = key[len(name) :]
    match type:
        case str() if type in TYPES:
            held: str | Fields = type
        case Mapping():
            held = _fields(type, fold, where, depth + 1, faults)
        case _:
            got = "another text" if isinstance(type, str) else type_name(type)
            faults.add(where, f"one of {', '.join(TYPES)} or a map of fields", got)
            return None
    return Field(name, held, "?" in suffixes, "[]" in suffixes)


def _place(where: Where) -> str:
    steps: list[str | int] = []
    while where is not None:
        where, step = where
        steps.append(step)
    return spelt(steps[::-1])


def _of_form(fits: Callable[[str], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and fits(value)


def _is_whole(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


TEXTS: Final[Mapping[str, Callable[[str], bool]]] = {
    "email": is_email,
    "url": is_url,
    "isoDatetime": is_iso_datetime,
}
"""The types of texts that have a form."""

TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "int": _is_whole,
    "float": lambda value: isinstance(value, int | float) and type(value) is not bool,
    "bool": lambda value: type(value) is bool,
    "any": lambda value: True,
    **{word: _of_form(fits) for word, fits in TEXTS.items()},
}
"""The words for a type, and what a value of it is."""
