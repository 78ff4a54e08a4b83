"""Creation of indexes: load a distribution and describe everything that an engine needs to know about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from neuroscript.discovery.entry_points import LoadedEntry, loaded_entry
from neuroscript.discovery.installed import Distribution
from neuroscript.discovery.package_index import IndexedEntry, IndexedTool
from neuroscript.formats.one_line import signature
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.tools.fingerprints import fingerprint
from neuroscript.tools.instance_makers import instance_names
from neuroscript.tools.serialization import spec_to_data
from neuroscript.tools.tool import ToolImplementation


def load(distribution: Distribution) -> tuple[LoadedEntry, ...]:
    """Import everything that a distribution offers, and return it.

    Raises:
        PluginError: A part of it cannot be used.
    """
    return tuple(loaded_entry(distribution, each) for each in distribution.entry_points)


def index(loaded: LoadedEntry) -> IndexedEntry:
    """Return the index of an entry point."""
    name, hooks = _hooks(loaded.plugin)
    return IndexedEntry(
        loaded.entry.group,
        loaded.entry.name,
        str(loaded.entry),
        [list(api) for api in loaded.api],
        name,
        hooks,
        [each.name for each in loaded.sets],
        loaded.aliases,
        tuple(map(index_tool, loaded.tools)),
    )


def index_tool(tool: ToolImplementation) -> IndexedTool:
    """Return the index of a tool."""
    return IndexedTool(
        tool.name,
        signature(tool.spec),
        tool.is_coroutine,
        spec_to_data(tool.spec),
        needs(tool.policy),
        fingerprint(tool),
        instance_names(tool.spec),
    )


def needs(policy: ToolPolicy) -> dict[str, Any]:
    """Return the fields of a policy that differ from the default, as JSON data."""
    return attrs.asdict(policy, filter=lambda field, value: value != field.default)


def _hooks(plugin: object) -> tuple[str, Mapping[str, Mapping[str, Any]]]:
    """Return the name of a hook plugin, and its hooks with their order options."""
    if plugin is None:
        return "", {}
    from neuroscript.tools.hookspecs import Plugins

    found = Plugins([plugin])
    return found.names[0], found.options
