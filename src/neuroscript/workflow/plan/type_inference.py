"""What can be said of a value before it is there: of which type is a part of it, and where may it stand.

Source: issue "Plans", arguments that can not fit the types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from neuroscript.coercion.constraints import coerce
from neuroscript.coercion.types import ELEMENTS, NOTHING, VALUES, ArgType
from neuroscript.errors import ArgumentError
from neuroscript.workflow.plan.references import is_index

TEXTS: Final = ("", "a", "0", "1.5", "true", "[]", "{}", "[1.5]", "QQ==", "2020-01-01", "h-1")
"""Texts that some type takes each."""

SAMPLES: Final[Mapping[ArgType, tuple[Any, ...]]] = {
    ArgType.STRING: TEXTS,
    ArgType.INT: (0, 1),
    ArgType.FLOAT: (0.0, 1.0, 0.5),
    ArgType.BOOL: (True, False),
    ArgType.BLOB: (b"", b"a"),
    ArgType.EMBEDDING: ([], [1.0]),
}
"""Values of each type, one of which every type that can take any takes."""

UNKNOWN: Final = frozenset(
    {ArgType.ANY, ArgType.NIL, ArgType.VOID, ArgType.HANDLE, ArgType.NODEID, ArgType.ENTITYID, None}
)
"""Types of which nothing can be said beforehand."""


def within(kind: ArgType, path: Sequence[str | int]) -> ArgType | None:
    """Return the type of what stands at a path within a value of a type; `NIL` where nothing can."""
    for number, step in enumerate(path):
        if kind in NOTHING:
            return ArgType.NIL
        if kind in UNKNOWN:
            return None
        inner = VALUES.get(kind) or (ELEMENTS.get(kind) if is_index(step) else None)
        if inner is None:
            return ArgType.NIL if kind is not ArgType.EMBEDDING or number < len(path) - 1 else ArgType.FLOAT
        kind = inner
    return kind


def samples(kind: ArgType) -> tuple[Any, ...]:
    """Return values of a type; of what holds others, one that holds none."""
    return SAMPLES.get(kind) or (([],) if kind in ELEMENTS else ({},))


@cache
def can_fit(given: ArgType, wanted: ArgType) -> bool:
    """Tell whether some value of a type is taken where another type is declared."""
    if wanted in UNKNOWN or given == wanted:
        return True
    return any(_taken(sample, wanted) for sample in samples(given))


def _taken(sample: Any, wanted: ArgType) -> bool:
    try:
        coerce(sample, wanted)
    except ArgumentError:
        return False
    return True
