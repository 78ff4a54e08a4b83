"""Indexes, made: a distribution is loaded, and all that an engine has to know of it is written down.

Source: contract section 7; issue "Plugins", discovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from neuroscript.discovery.entry_points import Loaded, loaded_entry
from neuroscript.discovery.installed import Distribution
from neuroscript.discovery.package_index import IndexedEntry, IndexedTool
from neuroscript.formats.one_line import signature
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.tools.fingerprints import fingerprint
from neuroscript.tools.serialization import spec_to_data
from neuroscript.tools.tool import ToolImplementation


def load(distribution: Distribution) -> tuple[Loaded, ...]:
    """Import all that a distribution offers, and return it.

    Raises:
        PluginError: Something of it can not be used.
    """
    return tuple(loaded_entry(distribution, each) for each in distribution.entry_points)


def index(loaded: Loaded) -> IndexedEntry:
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
        tuple(map(_tool, loaded.tools)),
    )


def _tool(tool: ToolImplementation) -> IndexedTool:
    return IndexedTool(
        tool.name,
        signature(tool.spec),
        tool.is_coroutine,
        spec_to_data(tool.spec),
        needs(tool.policy),
        fingerprint(tool),
    )


def needs(policy: ToolPolicy) -> dict[str, Any]:
    """Return the fields of a policy that say something, as JSON holds them."""
    return attrs.asdict(policy, filter=lambda field, value: value != field.default)


def _hooks(plugin: object) -> tuple[str, Mapping[str, Mapping[str, Any]]]:
    """Return what a plugin of hooks is called, and its hooks with their places in the order."""
    if plugin is None:
        return "", {}
    from neuroscript.tools.hookspecs import Plugins

    found = Plugins([plugin])
    return found.names[0], found.options
