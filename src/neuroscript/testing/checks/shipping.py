"""The contract check of the index that a distribution ships: it matches the code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from neuroscript.discovery.installed import Distribution, distributions
from neuroscript.discovery.package_index import IndexedEntry, entries_of, index_to_data, shipped_index
from neuroscript.errors import PluginError
from neuroscript.testing.checks.check_case import ContractCheck
from neuroscript.testing.checks.trials import Bench
from neuroscript.testing.installed import loaded_object

STALE: Final = "rebuild it with neuroscript index"


def _indexed(bench: Bench, tool: None) -> Iterator[str]:
    for each in distributions():
        if any(loaded_object(point) is toolset for point in each.entry_points for toolset in bench.toolsets):
            for there, here in zip(shipped_index(each) or (), _current_index(each), strict=False):
                yield from _differing(each, there, here)


def _current_index(distribution: Distribution) -> tuple[IndexedEntry, ...]:
    """Return the index that the distribution would get now, as if read from a file."""
    from neuroscript.discovery.index_builder import index, load

    try:
        made = json.dumps(index_to_data(distribution, tuple(map(index, load(distribution)))))
    except PluginError:  # reported by other checks
        return ()
    return entries_of(json.loads(made), distribution) or ()


def _differing(distribution: Distribution, there: IndexedEntry, here: IndexedEntry) -> Iterator[str]:
    told, meant = ({tool.name: tool for tool in each.tools} for each in (there, here))
    names = sorted(name for name in told.keys() | meant.keys() if told.get(name) != meant.get(name))
    yield from (f"{name} differs from the index of {distribution}; {STALE}" for name in names)
    if not names and there != here:
        yield f"entry point {here.name} differs from the index of {distribution}; {STALE}"


CHECKS: Final = (
    ContractCheck("index-current", "The index that a distribution ships matches its code.", _indexed, of_all=True),
)
