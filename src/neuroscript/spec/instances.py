"""Conversion of exact values to instances of the classes that a function declares: classes with fields, and Enums.

All checks are done by this point, so no value needs conversion: an Enum member is looked up by value, and a class is
called with its fields by name.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from neuroscript.coercion.context import type_name
from neuroscript.coercion.types import ELEMENTS, ArgType
from neuroscript.errors import ArgumentError, Problem
from neuroscript.spec.fields import fields_of
from neuroscript.spec.tool_spec import ArgSpec

Maker = Callable[[Any], Any]


def maker_of(arg: ArgSpec, tool: str) -> Maker | None:
    """Return the function that creates the instance for an argument of *tool*, or None if it has no class.

    Raises:
        ArgumentError: From the returned function, if the class rejects the values.
    """
    if arg.cls is None:
        return None
    cls = arg.cls
    make = _maker(cls, arg.type)

    def made(value: Any) -> Any:
        try:
            return make(value)
        except Exception as error:
            problem = Problem(arg.name, "coercion.class", f"a value that {cls.__name__} accepts", type_name(value))
            raise ArgumentError([problem], tool) from error

    return made


def _maker(cls: type, kind: ArgType) -> Maker:
    """Return a function that converts an exact value to one instance or a list of them; None stays None."""
    one = _member(cls) if issubclass(cls, Enum) else _record(cls)
    if kind in ELEMENTS:
        return lambda values: None if values is None else [one(value) for value in values]
    return lambda value: None if value is None else one(value)


def _member(cls: type[Enum]) -> Maker:
    return {member.value: member for member in cls}.__getitem__


def _record(cls: type) -> Maker:
    inner = {
        field.name: _maker(field.hint.cls, field.hint.type) for field in fields_of(cls) if field.hint.cls is not None
    }
    if not inner:
        return lambda values: cls(**values)
    return lambda values: cls(
        **{name: inner[name](value) if name in inner else value for name, value in values.items()}
    )
