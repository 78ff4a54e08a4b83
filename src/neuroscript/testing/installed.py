"""The toolsets of an installed distribution."""

from __future__ import annotations

import sys
from typing import Any

from neuroscript.coercion.parameters import STRING, require
from neuroscript.discovery.catalog import select_offers
from neuroscript.discovery.entry_points import loaded_entry
from neuroscript.discovery.installed import EntryPoint, installed_distributions
from neuroscript.tools.toolset import Toolset


def installed_toolsets(distribution: str) -> tuple[Toolset, ...]:
    """Return the toolsets that the entry points of an installed distribution provide.

    Args:
        distribution: The name of the distribution, such as ``neuroscript-std``.

    Raises:
        PluginError: If it is not installed, provides no toolset, or one of its entry points is invalid.
    """
    require("toolsets", distribution=(distribution, STRING))
    distributions, missing = select_offers(installed_distributions(), [distribution])
    if missing:
        raise missing[0]
    entries = [loaded_entry(each, entry) for each in distributions for entry in each.entry_points]
    return tuple(toolset for each in entries for toolset in each.sets)


def loaded_object(point: EntryPoint) -> Any:
    """Return the object of an entry point whose module is already imported, or None."""
    found: Any = sys.modules.get(point.module)
    for name in filter(None, point.attribute.split(".")):
        found = getattr(found, name, None)
    return found
