"""The law of what is shipped beside the tools: an index that says what the code says.

Source: issue "Plugins", the publisher's kit; contract section 7.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, Final

from neuroscript.discovery.installed import Distribution, EntryPoint, distributions
from neuroscript.discovery.package_index import IndexedEntry, entries_of, shipped, written
from neuroscript.errors import PluginError
from neuroscript.testing.checks.check_case import Law
from neuroscript.testing.checks.trials import Bench

STALE: Final = "make it anew with neuroscript index"


def _indexed(bench: Bench, tool: None) -> Iterator[str]:
    for each in distributions():
        if any(_meant(point) is toolset for point in each.entry_points for toolset in bench.toolsets):
            for there, here in zip(shipped(each) or (), _here(each), strict=False):
                yield from _differing(each, there, here)


def _meant(point: EntryPoint) -> Any:
    """Return the object of an entry point whose module has been imported, or None."""
    found: Any = sys.modules.get(point.module)
    for name in filter(None, point.attribute.split(".")):
        found = getattr(found, name, None)
    return found


def _here(distribution: Distribution) -> tuple[IndexedEntry, ...]:
    """Return the index that would be made of a distribution now, as it is read from a file."""
    from neuroscript.discovery.index_builder import index, load

    try:
        made = json.dumps(written(distribution, tuple(map(index, load(distribution)))))
    except PluginError:  # which other laws say
        return ()
    return entries_of(json.loads(made), distribution) or ()


def _differing(distribution: Distribution, there: IndexedEntry, here: IndexedEntry) -> Iterator[str]:
    told, meant = ({tool.name: tool for tool in each.tools} for each in (there, here))
    names = sorted(name for name in told.keys() | meant.keys() if told.get(name) != meant.get(name))
    yield from (f"{name} is not what the index of {distribution} says; {STALE}" for name in names)
    if not names and there != here:
        yield f"entry point {here.name} is not what the index of {distribution} says; {STALE}"


LAWS: Final = (
    Law("index-current", "The index that a distribution ships is what its code says.", _indexed, of_all=True),
)
