"""The index of a distribution: everything that an engine needs to know about its tools before the first call.

It is a JSON file, ``neuroscript.json``, in the metadata or the package of the distribution. An invalid index, or one
that does not match its distribution, is ignored, and the distribution is loaded instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from neuroscript._version import is_api
from neuroscript.discovery.installed import TOOLSETS, Distribution, normalize_name
from neuroscript.io.user_cache import read_json
from neuroscript.names import canonical, is_group_name

FORMAT: Final = 2
"""The version of the index format."""

FILE: Final = "neuroscript.json"
"""The name of the file, in the package of a distribution or below its metadata."""

METADATA: Final = "extra_metadata"
"""The folder in a distribution's metadata for files from build hooks."""

SHAPE: Final[Mapping[str, type]] = {
    "group": str,
    "name": str,
    "target": str,
    "api": list,
    "plugin": str,
    "hooks": dict,
    "toolsets": list,
    "aliases": dict,
    "tools": list,
}
"""The fields of each entry point in an index."""

TOOL: Final[Mapping[str, type]] = {
    "name": str,
    "signature": str,
    "is_coroutine": bool,
    "spec": dict,
    "policy": dict,
    "fingerprint": str,
    "instances": list,
}
"""The fields of each tool."""


PLACES: Final[Mapping[str, type]] = {"tryfirst": bool, "trylast": bool}
"""The fields of each hook."""


class IndexedTool(NamedTuple):
    """A tool in an index.

    Attributes:
        name: Its canonical name.
        signature: Its arguments and result in one line.
        is_coroutine: Whether its function must be awaited.
        spec: Its spec as plain data; see `neuroscript.spec_to_data`.
        policy: The fields of its `ToolPolicy` that differ from the default.
        fingerprint: The fingerprint of its complete definition.
        instances: The names of its arguments for which the function receives instances of classes.
    """

    name: str
    signature: str
    is_coroutine: bool
    spec: Mapping[str, Any]
    policy: Mapping[str, Any]
    fingerprint: str
    instances: list[str]


class IndexedEntry(NamedTuple):
    """An entry point in an index.

    Attributes:
        group: Its group.
        name: Its name within the group.
        target: The object that it refers to, as `EntryPoint` formats it.
        api: The versions of the Runtime that its toolsets and plugins require.
        plugin: The name of its hook plugin, or ``""`` for a toolset.
        hooks: The hooks of its plugin, and whether each is to be called first or last.
        toolsets: The names of its toolsets.
        aliases: Old names of its tools, and the current name for each.
        tools: Its tools, in order.
    """

    group: str
    name: str
    target: str
    api: list[list[int]]
    plugin: str
    hooks: Mapping[str, Mapping[str, Any]]
    toolsets: list[str]
    aliases: Mapping[str, str]
    tools: tuple[IndexedTool, ...]


def shipped_index(distribution: Distribution) -> tuple[IndexedEntry, ...] | None:
    """Return the index that a distribution ships, or None if there is no valid one.

    A distribution whose sources are elsewhere, such as an editable install, is always loaded, because it is not rebuilt
    after each edit. The same applies to computed toolsets, because they may differ between machines.
    """
    if is_computed(distribution):
        return None
    for file in _index_locations(distribution):
        entries = entries_of(read_json(file), distribution)
        if entries is not None:
            return entries
    return None


def is_computed(distribution: Distribution) -> bool:
    """Return whether a distribution has hook plugins, which may provide different tools on each machine."""
    return any(each.group != TOOLSETS for each in distribution.entry_points)


def _index_locations(distribution: Distribution) -> Iterator[str]:
    """Yield the possible locations of an index, in the metadata and in each package, if all packages are next to it."""
    if not distribution.folder.endswith(".dist-info"):  # older tools create other folders, next to live sources
        return
    site = os.path.dirname(distribution.folder)
    modules = dict.fromkeys(each.module.partition(".")[0] for each in distribution.entry_points)
    places = [os.path.join(site, module) for module in modules]
    if all(os.path.exists(f"{place}.py") or os.path.isdir(place) for place in places):
        yield os.path.join(distribution.folder, METADATA, FILE)
        yield from (os.path.join(place, FILE) for place in places)


def index_to_data(distribution: Distribution, entries: tuple[IndexedEntry, ...]) -> dict[str, Any]:
    """Return an index as plain data."""
    return {
        "format": FORMAT,
        "distribution": distribution.name,
        "version": distribution.version,
        "entry_points": [entry_to_data(each) for each in entries],
    }


def entry_to_data(entry: IndexedEntry) -> dict[str, Any]:
    """Return an entry point in an index as plain data."""
    return {**entry._asdict(), "tools": [tool._asdict() for tool in entry.tools]}


def entries_of(data: Any, distribution: Distribution) -> tuple[IndexedEntry, ...] | None:
    """Return the entry points of a distribution from plain data, in its order, or None if the data is invalid."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        return None
    if normalize_name(str(data.get("distribution"))) != distribution.key or data.get("version") != distribution.version:
        return None
    found = data.get("entry_points")
    if not isinstance(found, list):
        return None
    by_name = {(each.group, each.name): each for each in map(parse_entry, found) if each is not None}
    points = distribution.entry_points
    entries = ((by_name.get((point.group, point.name)), str(point)) for point in points)
    own = tuple(entry for entry, target in entries if entry is not None and entry.target == target)
    return own if len(own) == len(points) else None


def parse_entry(data: Any) -> IndexedEntry | None:
    """Return one entry point from plain data, or None if the data is invalid."""
    if not _has_shape(data, SHAPE):
        return None
    tools = tuple(IndexedTool(**each) for each in data["tools"] if _has_shape(each, TOOL))
    names = (*data["toolsets"], *data["aliases"], *data["aliases"].values(), *(tool.name for tool in tools))
    is_whole = len(tools) == len(data["tools"]) and all(map(_is_name, names)) and all(map(_is_api, data["api"]))
    is_whole = is_whole and all(type(name) is str for tool in tools for name in tool.instances)
    if not is_whole or not (_has_no_hook if data["group"] == TOOLSETS else _has_hooks)(data):
        return None
    return IndexedEntry(**{**data, "tools": tools})


def _is_name(data: Any) -> bool:
    """Return whether a value is a valid name of a toolset or tool."""
    return isinstance(data, str) and data == canonical(data) and is_group_name(data)


def _is_api(data: Any) -> bool:
    return isinstance(data, list) and is_api(tuple(data))


def _has_no_hook(data: Mapping[str, Any]) -> bool:
    return not data["plugin"] and not data["hooks"]


def _has_hooks(data: Mapping[str, Any]) -> bool:
    is_named: bool = data["plugin"] != "" and data["plugin"].isprintable()
    return is_named and all(_has_shape(each, PLACES) for each in data["hooks"].values())


def _has_shape(data: Any, shape: Mapping[str, type]) -> bool:
    return (
        isinstance(data, dict)
        and data.keys() == shape.keys()
        and all(type(data[name]) is kind for name, kind in shape.items())
    )
