"""Labels of data: what it contains, and which calls it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

MAX_SOURCES: Final = 64
"""Maximum number of sources that a label names; the first ones are kept."""


class Source(NamedTuple):
    """A call that labelled data came from.

    Attributes:
        tool: The canonical name of the tool, or what the host calls the origin of a text.
        call: The number of the call within the run of the engine, as in its audit record; 0 for a text of the host.
    """

    tool: str
    call: int


Labels = Mapping[str, tuple[Source, ...]]
"""Labels by name, each with the calls that it came from. It is never changed."""

NO_LABELS: Final[Labels] = MappingProxyType({})


def labels_from(names: Iterable[str], source: Source) -> Labels:
    """Return labels that all come from one source."""
    return dict.fromkeys(names, (source,))


def union(first: Labels, second: Labels) -> Labels:
    """Return the labels of data that was made from two inputs."""
    if not second or first is second:
        return first
    if not first:
        return second
    merged = dict(first)
    for name, sources in second.items():
        known = merged.get(name)
        if known is None:
            merged[name] = sources
        elif known != sources:
            merged[name] = tuple(dict.fromkeys((*known, *sources)))[:MAX_SOURCES]
    return merged
