"""What stands in ``Annotated`` beside a type: a description, bounds, whether it is secret.

A text is a description. The marks of ``annotated_types``, and of those who build on it, are read as they are; one that
says what no `ArgSpec` can say is refused, for a bound that nobody keeps is worse than none.

Source: issue "Authoring from Python", ``Annotated`` with descriptions and bounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import attrs

from neuroscript.argtypes import ELEMENTS, ArgType
from neuroscript.checks import FLAG, NUMBER, STRING, WHOLE, optional, require_fields
from neuroscript.errors import SpecError

FIELDS: Final = {
    "description": "description",
    "documentation": "description",
    "ge": "minimum",
    "le": "maximum",
    "min_length": "min_length",
    "max_length": "max_length",
}
"""Attributes of the marks of others, and the fields of an `Arg` that say the same."""

OPEN: Final = {"gt": ("minimum", 1), "lt": ("maximum", -1)}
"""Bounds that are not reached: of whole numbers the next one is."""

OTHERS: Final = frozenset({"annotated_types", "pydantic", "typing_extensions"})
"""Packages whose marks are read; those of all other packages mean something to somebody else."""


class Unmarkable(Exception):
    """A mark that says what no `ArgSpec` can; its text says what to write instead."""


@attrs.frozen
class Arg:
    """What an annotation says of an argument beyond its type.

    ``Annotated[int, Arg("How many.", minimum=1)]``; a text alone, as in ``Annotated[int, "How many."]``, is a
    description.

    Attributes:
        description: What it is, with its unit; it goes before what the docstring says.
        minimum: The least number it may be, or each element of a list of numbers.
        maximum: The greatest.
        min_length: The least number of characters, bytes, items or keys.
        max_length: The greatest.
        secret: Whether its value must be seen nowhere.

    Raises:
        SpecError: With everything that is wrong with it.

    Source: contract section 1, `ArgSpec`.
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


def marked(before: Arg, marks: Iterable[Any], kind: ArgType) -> Arg:
    """Return *before* with what *marks* say of an argument of type *kind*; the last one that speaks is right.

    Raises:
        Unmarkable: A bound can not be said.
    """
    found = attrs.asdict(before)
    for mark in marks:
        if type(mark) is str:
            found["description"] = mark
        elif type(mark) is Arg:
            found.update(attrs.asdict(mark, filter=lambda field, value: value != field.default))
        elif type(mark).__module__.partition(".")[0] in OTHERS:
            found.update(_read(mark, kind))
    try:
        return Arg(**found)
    except SpecError as error:  # of the mark of another package
        raise Unmarkable("; ".join(error.problems)) from None


def _read(mark: Any, kind: ArgType) -> dict[str, Any]:
    """Return the fields of an `Arg` that the mark of another package speaks of."""
    found: dict[str, Any] = {}
    for each in getattr(mark, "metadata", None) or ():
        found.update(_read(each, kind))
    known = {name: getattr(mark, name) for name in (*FIELDS, *OPEN) if hasattr(mark, name)}
    if not known or getattr(mark, "pattern", None) is not None:
        raise Unmarkable(f"{type(mark).__name__} can not be kept; leave it out, and look at the value inside")
    said = {name: value for name, value in known.items() if value is not None}
    found.update({FIELDS[name]: value for name, value in said.items() if name in FIELDS})
    found.update(_next(name, said[name], kind) for name in OPEN if name in said)
    return found


def _next(name: str, bound: Any, kind: ArgType) -> tuple[str, Any]:
    field, step = OPEN[name]
    if ELEMENTS.get(kind, kind) is not ArgType.INT or type(bound) is not int:
        raise Unmarkable(f"a {field} that is not reached can be said of int alone; write one that is")
    return field, bound + step
