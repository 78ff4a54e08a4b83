"""The state of one pass over the arguments of a call: its mode, the problems found, and the size counted so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.parameters import WHOLE, require_fields
from neuroscript.coercion.scalars import Reading, Rejection
from neuroscript.coercion.types import READINGS
from neuroscript.errors import MAX_PROBLEMS
from neuroscript.io.text import name_of as name_of
from neuroscript.io.text import quote_untrusted
from neuroscript.io.text import type_name as type_name

Mode = Literal["lax", "strict", "result"]
"""Which values are accepted: *lax* and *strict* for arguments, *result* for the return values of tools."""

Where = tuple[Any, object] | None
"""A place in the arguments: the place of its container, and the name, key or index within it."""

ROOT: Final[Where] = (None, None)
"""The place of a single value that is not an argument of a call."""

INVALID: Final = object()
"""Marks a value that did not fit. The problem has already been recorded."""


@attrs.frozen
class SizeLimits:
    """The maximum size of the arguments of one call.

    Attributes:
        depth: How many levels containers may be nested.
        nodes: How many values there may be, counting containers and their contents.
        text: How many bytes all strings (as UTF-8), keys and byte strings may have together.
    """

    depth: int = 64
    nodes: int = 200_000
    text: int = 8 * 1024 * 1024

    def __attrs_post_init__(self) -> None:
        require_fields("SizeLimits", self, depth=WHOLE, nodes=WHOLE, text=WHOLE)


@attrs.frozen(eq=False, repr=False)
class CoercionSettings:
    """The settings for converting values.

    Attributes:
        mode: Which values are accepted.
        sizes: The maximum size of the values.
        adapters: Pairs of a class and a host function that converts an object of exactly that class to a built-in.
            They are called in lax mode only, for callers that the host trusts.
        readings: The function that reads each type without nested values in this mode.
    """

    mode: Mode = "lax"
    sizes: SizeLimits = SizeLimits()
    adapters: tuple[tuple[type, Callable[[Any], object]], ...] = ()
    readings: Mapping[str, Reading] = attrs.field(init=False, eq=False, repr=False)

    @readings.default
    def _readings_of_mode(self) -> Mapping[str, Reading]:
        return READINGS[self.mode]


LAX: Final = CoercionSettings()
RESULT: Final = CoercionSettings(mode="result", sizes=SizeLimits(nodes=2_000_000, text=64 * 1024 * 1024))
"""The settings for results. Tools may return more data than callers may send."""


UNKNOWN: Final = Rejection("arg.unknown", "")
MISSING: Final = Rejection("arg.missing", "")
LENGTH: Final = Rejection("coercion.length", "")
CHOICE: Final = Rejection("coercion.choice", "")
BOUNDS: Final = Rejection("coercion.bounds", "")
"""Problems for which the error text is derived from the rule of their place."""


class LimitExceeded(Exception):
    """A size limit was exceeded, so the pass over the arguments stops."""


class CoercionPass:
    """The state of one pass: its settings, the problems found, and the size counted so far.

    Attributes:
        noted: How many problems were found.
        notes: The first `MAX_PROBLEMS` problems: place, fault, and the type received or a description of it.
        depth: How many containers are open.
        nodes: How many values have been counted.
        text: How many bytes of text have been counted.
        work: How many of the counted values belong to alternatives of unions that were tried and not taken.
        chosen: The alternative whose problems were recorded, by the place of its union.
    """

    describes = True
    """Whether the recorded problems are shown, so hints are useful."""
    noted = 0
    nodes = 0
    text = 0
    work = 0
    chosen: dict[Where, Any] = {}  # noqa: RUF012
    depth = 0

    def __init__(self, terms: CoercionSettings) -> None:
        self.terms = terms
        self.notes: list[tuple[Where, Rejection, str | type]] = []

    def note(self, where: Where, misfit: Rejection, got: str | type) -> Any:
        """Record one problem and return `FAILED`; *got* is the type that was received, or a description of it."""
        self.noted += 1
        if self.noted <= MAX_PROBLEMS:
            self.notes.append((where, misfit, got))
        return INVALID

    def choose(self, where: Where, alternative: Any) -> None:
        """Record that the problems at and below a place are those of one alternative of a union."""
        if not self.chosen:
            self.chosen = {}
        self.chosen[where] = alternative

    def within(self, where: Where, fill: Callable[..., Any], *parts: Any) -> Any:
        """Fill a container one level deeper; return `FAILED` if one of its parts does not fit."""
        before = self.noted
        self.depth += 1
        if self.depth > self.terms.sizes.depth:
            raise self._exceed(where, "limit.depth", self.terms.sizes.depth, "levels of nesting, without cycles")
        self.spend(where, 1)
        filled = fill(self, *parts, where)
        self.depth -= 1
        return filled if self.noted == before else INVALID

    def spend(self, where: Where, nodes: int, text: int = 0) -> None:
        """Count values and bytes of text."""
        self.nodes += nodes
        self.text += text
        if self.nodes > self.terms.sizes.nodes:
            raise self.too_many_values(where)
        if self.text > self.terms.sizes.text:
            raise self.too_much_text(where)

    def charge(self, where: Where, value: object) -> None:
        """Count the work on a long text that may be in vain; only trials of alternatives do."""

    @property
    def text_left(self) -> int:
        """The number of further bytes of text that are allowed."""
        return self.terms.sizes.text - self.text

    @property
    def nodes_left(self) -> int:
        """The number of further values that are allowed."""
        return self.terms.sizes.nodes - self.nodes

    def too_many_values(self, where: Where) -> LimitExceeded:
        """Record that there are too many values, and return the exception that stops the pass."""
        return self._exceed(where, "limit.nodes", self.terms.sizes.nodes, "values in one call")

    def too_much_text(self, where: Where) -> LimitExceeded:
        """Record that there is too much text, and return the exception that stops the pass."""
        return self._exceed(where, "limit.text", self.terms.sizes.text, "bytes of text in one call")

    def _exceed(self, where: Where, code: str, most: int, what: str) -> LimitExceeded:
        self.note(where, Rejection(code, f"at most {most} {what}"), "more")
        return LimitExceeded()

    def limited(self, step: Callable[..., Any], *parts: Any) -> Any:
        """Run one step of this pass; report an exceeded size limit as a problem."""
        try:
            return step(self, *parts)
        except (LimitExceeded, RecursionError) as end:
            return self.ended(end)

    def ended(self, end: Exception) -> Any:
        """Return `FAILED` for a pass that had to stop. A recursion error is recorded here; other limits already are."""
        if isinstance(end, RecursionError):  # the caller is itself close to the recursion limit
            self.note(None, Rejection("limit.depth", "fewer levels of nesting"), "more than the stack allows")
        return INVALID


class KeyItself:
    """The last step of a place: a key of a map, rather than its value."""

    __slots__ = ("key",)

    def __init__(self, key: object) -> None:
        self.key = key


def place(where: Where) -> str:
    """Return a place in Python syntax, such as ``tags[1]`` or ``headers['x']``."""
    parts: list[str] = []
    while where is not None and where is not ROOT:
        where, key = where
        parts.append(_step(key, bare=where is None))
    return "".join(reversed(parts))


def _step(key: object, *, bare: bool) -> str:
    if type(key) is KeyItself:
        return f"{_step(key.key, bare=bare)} (key)"
    if type(key) is str:
        return quote_untrusted(key) if bare else f"['{quote_untrusted(key)}']"
    return f"[{key}]" if type(key) is int else "[…]"
