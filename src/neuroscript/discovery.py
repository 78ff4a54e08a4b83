"""Toolsets of installed distributions, found by their entry points; a broken one is reported and stops no other.

Source: contract section 7, level A.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, Final

import attrs

from neuroscript.errors import PluginError
from neuroscript.tools import Toolset

GROUP: Final = "neuroscript.toolsets"
"""The entry-point group whose entries are `Toolset` objects."""


@attrs.frozen
class Found:
    """A toolset and the distribution that brought it, for example ``neuroscript-std 0.1``."""

    distribution: str
    toolset: Toolset


def installed(only: Collection[str] | None = None) -> Iterator[Found | PluginError]:
    """Yield the toolsets of installed distributions, in the order of their names, or why one can not be used.

    Args:
        only: The names of the distributions that may be loaded; None means all of them.
    """
    from importlib.metadata import entry_points

    wanted = None if only is None else {_normalised(name) for name in only}
    offers = sorted(
        (_Offer(entry.dist.metadata, entry) for entry in entry_points(group=GROUP) if entry.dist is not None),
        key=lambda offer: (offer.name, offer.entry.name),
    )
    for offer in offers:
        if wanted is None or offer.name in wanted:
            yield _loaded(f"{offer.metadata['Name']} {offer.metadata['Version']}", offer.entry)
    for name in sorted((wanted or set()) - {offer.name for offer in offers}):
        yield PluginError(name, "is not installed, or offers no toolset")


@attrs.frozen
class _Offer:
    """An entry point, and the metadata of its distribution, which are parsed anew whenever they are asked for."""

    metadata: Any
    entry: Any
    name: str = attrs.field(init=False)

    @name.default
    def _compared_name(self) -> str:
        return _normalised(self.metadata["Name"])


def _loaded(distribution: str, entry: Any) -> Found | PluginError:
    try:
        toolset = entry.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        problem = PluginError(distribution, f"entry point {entry.name} can not be loaded ({type(error).__name__})")
        problem.__cause__ = error
        return problem
    if not isinstance(toolset, Toolset):
        return PluginError(distribution, f"entry point {entry.name} is no Toolset but a {type(toolset).__name__}")
    return Found(distribution, toolset)


def _normalised(name: str) -> str:
    """Return the name of a distribution as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
