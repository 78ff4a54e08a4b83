"""One pass over the arguments of one call: on which terms, what was wrong and where, and how much has been seen.

Source: contract section 3; contract section 6, the places in texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.parameters import WHOLE, require_fields
from neuroscript.coercion.scalars import READINGS, Misfit, Reading
from neuroscript.errors import MAX_PROBLEMS
from neuroscript.io.text import name_of as name_of
from neuroscript.io.text import shown
from neuroscript.io.text import type_name as type_name

Mode = Literal["lax", "strict", "result"]
"""How much is accepted: *lax* and *strict* for arguments, *result* for what a tool returns."""

Where = tuple[Any, object] | None
"""A place in the arguments: the place that holds it, and the name, key or index in there."""

ROOT: Final[Where] = (None, None)
"""The place of one value that is no argument of a call."""

FAILED: Final = object()
"""Stands for a value that did not fit; what is wrong with it has been noted."""


@attrs.frozen
class SizeLimits:
    """How large the arguments of one call may be.

    Attributes:
        depth: How many containers may stand in each other.
        nodes: How many values there may be, containers and what they hold alike.
        text: How many bytes all texts (as UTF-8), keys and byte strings may have together.
    """

    depth: int = 64
    nodes: int = 200_000
    text: int = 8 * 1024 * 1024

    def __attrs_post_init__(self) -> None:
        require_fields("SizeLimits", self, depth=WHOLE, nodes=WHOLE, text=WHOLE)


@attrs.frozen(eq=False, repr=False)
class Coercion:
    """The terms on which values are taken.

    Attributes:
        mode: How much is accepted.
        sizes: How large it may be.
        adapters: For classes that are no built-ins, the host's function that gives a built-in for an object of exactly
            that class. It is called in lax mode, for callers whom the host trusts.
        readings: The function that reads each type whose values hold no others, in this mode.
    """

    mode: Mode = "lax"
    sizes: SizeLimits = SizeLimits()
    adapters: tuple[tuple[type, Callable[[Any], object]], ...] = ()
    readings: Mapping[str, Reading] = attrs.field(init=False, eq=False, repr=False)

    @readings.default
    def _readings_of_mode(self) -> Mapping[str, Reading]:
        return READINGS[self.mode]


LAX: Final = Coercion()
RESULT: Final = Coercion(mode="result", sizes=SizeLimits(nodes=2_000_000, text=64 * 1024 * 1024))
"""A tool may return more than a caller may send."""


UNKNOWN: Final = Misfit("arg.unknown", "")
MISSING: Final = Misfit("arg.missing", "")
LENGTH: Final = Misfit("coercion.length", "")
CHOICE: Final = Misfit("coercion.choice", "")
BOUNDS: Final = Misfit("coercion.bounds", "")
"""Faults that the rule of their place describes."""


class Exceeded(Exception):
    """The walk has met a limit of size and can not go on."""


class Walk:
    """The state of one pass: its terms, its notes, and what it has spent of its limits.

    Attributes:
        noted: How many problems there are.
        notes: The first `MAX_PROBLEMS` of them: the place, the fault, and the type that was given, or words for it.
        nodes: How many values have been counted.
        text: How many bytes of text have been counted.
    """

    noted = 0
    nodes = 0
    text = 0
    _depth = 0

    def __init__(self, terms: Coercion) -> None:
        self.terms = terms
        self.notes: list[tuple[Where, Misfit, str | type]] = []

    def note(self, where: Where, misfit: Misfit, got: str | type) -> Any:
        """Remember one problem and return `FAILED`; *got* is the type of what was given, or words for it."""
        self.noted += 1
        if self.noted <= MAX_PROBLEMS:
            self.notes.append((where, misfit, got))
        return FAILED

    def within(self, where: Where, fill: Callable[..., Any], *parts: Any) -> Any:
        """Fill a container, one level deeper; a part that does not fit makes it `FAILED`."""
        before = self.noted
        self._depth += 1
        if self._depth > self.terms.sizes.depth:
            raise self._exceed(where, "limit.depth", self.terms.sizes.depth, "levels, so no value that holds itself")
        self.spend(where, 1)
        filled = fill(self, *parts, where)
        self._depth -= 1
        return filled if self.noted == before else FAILED

    def spend(self, where: Where, nodes: int, text: int = 0) -> None:
        """Count values, and bytes of text."""
        self.nodes += nodes
        self.text += text
        if self.nodes > self.terms.sizes.nodes:
            raise self.too_many_values(where)
        if self.text > self.terms.sizes.text:
            raise self.too_much_text(where)

    @property
    def text_left(self) -> int:
        """How many more bytes of text there may be."""
        return self.terms.sizes.text - self.text

    @property
    def nodes_left(self) -> int:
        """How many more values there may be."""
        return self.terms.sizes.nodes - self.nodes

    def too_many_values(self, where: Where) -> Exceeded:
        """Note that there are more values than there may be, and return what ends the walk."""
        return self._exceed(where, "limit.nodes", self.terms.sizes.nodes, "values in one call")

    def too_much_text(self, where: Where) -> Exceeded:
        """Note that there is more text than there may be, and return what ends the walk."""
        return self._exceed(where, "limit.text", self.terms.sizes.text, "bytes of text in one call")

    def _exceed(self, where: Where, code: str, most: int, what: str) -> Exceeded:
        self.note(where, Misfit(code, f"at most {most} {what}"), "more")
        return Exceeded()

    def limited(self, step: Callable[..., Any], *parts: Any) -> Any:
        """Carry out one step of this walk; a limit that it meets is one more problem."""
        try:
            return step(self, *parts)
        except (Exceeded, RecursionError) as end:
            return self.ended(end)

    def ended(self, end: Exception) -> Any:
        """Return `FAILED` for a walk that could not go on; a full stack is noted here, other limits have been."""
        if isinstance(end, RecursionError):  # the caller itself stands near its end
            self.note(None, Misfit("limit.depth", "fewer levels"), "more than the stack holds")
        return FAILED


def place(where: Where) -> str:
    """Return a place as it is written in Python: ``tags[1]``, ``headers['x']``."""
    parts: list[str] = []
    while where is not None and where is not ROOT:
        where, key = where
        parts.append(_step(key, bare=where is None))
    return "".join(reversed(parts))


def _step(key: object, *, bare: bool) -> str:
    if type(key) is str:
        return shown(key) if bare else f"['{shown(key)}']"
    return f"[{key}]" if type(key) is int else "[…]"
