"""Installed distributions and their entry points, read from metadata without importing anything.

The folders of ``sys.path`` are scanned directly. `importlib.metadata` parses the entry points of every distribution,
which takes longer than the start of an engine. Distributions in zip files or with custom finders are not found.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, starmap
from time import time_ns
from typing import Any, Final, NamedTuple

from neuroscript.io.text import quote_untrusted
from neuroscript.io.user_cache import are_settled, are_unchanged, cache_path, checksum, read_text, stamps, write_text

TOOLSETS: Final = "neuroscript.toolsets"
"""The entry-point group whose entries are `Toolset` objects."""

PLUGINS: Final = "neuroscript.plugins"
"""The entry-point group for hook plugins: computed toolsets, decision hooks and observers."""

GROUPS: Final = (TOOLSETS, PLUGINS)
"""Both groups, in loading order."""

SHAPE: Final = 3
"""The version of the cache format."""

HEAD: Final = "neuroscript: what is installed"
END: Final = "whole"
"""The first field, and the start of the last line, of a cache file. A newline within a field invalidates the file."""

FIELD: Final = "\0"
"""The separator between fields; paths and lines of a file cannot contain it."""

ENDS: Final = {".dist-info": "METADATA", ".egg-info": "PKG-INFO"}
"""The suffixes of metadata folders, and the file in each that contains the name and version."""

TARGET: Final = r"(?P<module>[\w.]+)\s*(?::\s*(?P<attribute>[\w.]+))?\s*(?:\[.*\])?"
"""The object of an entry point: ``module``, or ``module:attribute``."""


class EntryPoint(NamedTuple):
    """One entry point of a distribution.

    Attributes:
        group: `TOOLSETS` or `PLUGINS`.
        name: The name within the group.
        module: The module to import, or ``""`` if the declaration is invalid.
        attribute: The dotted attribute in the module, or ``""`` for the module itself.
    """

    group: str
    name: str
    module: str
    attribute: str

    def __str__(self) -> str:
        return f"{self.module}:{self.attribute}" if self.attribute else self.module


class Distribution(NamedTuple):
    """An installed distribution with entry points for this project.

    Attributes:
        key: The name, normalized as in PEP 503.
        name: The name as written.
        version: The version, or ``"?"`` if it is unknown.
        folder: The folder with its metadata.
        entry_points: Its entry points, sorted by group and name.
    """

    key: str
    name: str
    version: str
    folder: str
    entry_points: tuple[EntryPoint, ...]

    def __str__(self) -> str:
        return f"{quote_untrusted(self.name)} {quote_untrusted(self.version)}"


def normalize_name(name: str) -> str:
    """Return the name of a distribution, normalized as in PEP 503.

    >>> normalize_name("Acme._Tools")
    'acme-tools'
    """
    key = name.replace("_", "-").replace(".", "-").lower()
    return re.sub("-+", "-", key) if "--" in key else key


def distributions(path: Iterable[str] | None = None) -> tuple[Distribution, ...]:
    """Return the installed distributions that offer toolsets or plugins, sorted by name.

    Args:
        path: The folders to search, ``sys.path`` if None. If two distributions have the same name, the first one
            counts, as for imports.
    """
    seen: set[str] = set()
    found: list[Distribution] = []
    for folder in dict.fromkeys(sys.path if path is None else path):
        for key, place in sorted(_metadata(folder or os.curdir)):
            if key not in seen:
                seen.add(key)
                found.extend(_offering(place))
    return tuple(sorted(found, key=lambda each: each.key))


def installed_distributions() -> tuple[Distribution, ...]:
    """Return the installed `distributions`, from the cache if nothing has changed since the last search.

    Changes are detected from the folders of ``sys.path``, where installers create and remove metadata folders, and from
    the metadata of each distribution that was found.
    """
    start, path = time_ns(), [*_absolute(sys.path)]
    file = cache_path("installed", SHAPE, path)
    cached = None if file is None else _cached_distributions(read_text(file), path)
    if cached is not None:
        return cached
    found = distributions(path)
    looked_at = stamps([*dict.fromkeys(path), *_files_of(path, found)])
    if file is not None and are_settled(looked_at, start):
        write_text(file, _text(path, looked_at, found))
    return found


def _absolute(path: Iterable[str]) -> Iterator[str]:
    """Yield absolute paths of folders; folders relative to a deleted working directory are skipped."""
    for folder in path:
        with suppress(OSError):
            yield folder if os.path.isabs(folder) else os.path.join(os.getcwd(), folder)


def _text(path: list[str], looked_at: list[list[Any]], found: Iterable[Distribution]) -> str:
    """Return the cache content as lines of fields, because importing the json library would take too long."""
    seen = [field for each in looked_at for field in each]
    lines = [[HEAD, *path], seen, *([*each[:4], *chain(*each.entry_points)] for each in found)]
    content = "\n".join(FIELD.join(map(str, each)) for each in lines)
    return f"{content}\n{_end(content)}"


def _end(content: str) -> str:
    """Return the last line of a cache file: a checksum, because damaged content can still be well-formed."""
    return f"{END} {checksum(content)}"


def _cached_distributions(text: str, path: list[str]) -> tuple[Distribution, ...] | None:
    """Return the distributions from the content of `_text`, if it is complete and nothing has changed since."""
    content, _, end = text.rpartition("\n")
    lines = [line.split(FIELD) for line in content.split("\n")]
    if len(lines) < 2 or lines[0] != [HEAD, *path] or end != _end(content):
        return None
    seen = lines[1]
    try:
        are_same = are_unchanged(zip(seen[::3], map(int, seen[1::3]), map(int, seen[2::3]), strict=True))
        return tuple(map(_distribution, lines[2:])) if are_same else None
    except (TypeError, ValueError):
        return None


def _distribution(fields: list[str]) -> Distribution:
    rest = iter(fields[4:])
    key, name, version, folder = fields[:4]
    return Distribution(
        key, name, version, folder, tuple(starmap(EntryPoint, zip(rest, rest, rest, rest, strict=True)))
    )


def from_plain(data: Any) -> Distribution:
    """Return the distribution for the list of its fields in JSON."""
    key, name, version, folder, points = data
    return Distribution(key, name, version, folder, tuple(EntryPoint(*point) for point in points))


def _files_of(path: list[str], found: Iterable[Distribution]) -> Iterator[str]:
    """Yield the files that may change in place: metadata, and metadata folders next to sources."""
    for each in found:
        yield os.path.join(each.folder, "entry_points.txt")
        yield os.path.join(each.folder, ENDS[os.path.splitext(each.folder)[1]])
    for folder in dict.fromkeys(path):
        beside = (name for name in _names(folder) if name.endswith(".egg-info"))
        yield from (os.path.join(folder, name, "entry_points.txt") for name in beside)


def _metadata(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the key and folder of each distribution with metadata in *folder*."""
    for name in _names(folder):
        if name.endswith(".dist-info"):
            stem = name[:-10]
        elif name.endswith(".egg-info"):
            stem = re.sub(r"-py\d[\d.]*$", "", name[:-9])
        else:
            continue
        yield normalize_name(stem.rpartition("-")[0] or stem), f"{folder}{os.sep}{name}"


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _offering(place: str) -> Iterator[Distribution]:
    """Yield the distribution with metadata in *place*, if it has entry points for this project."""
    text = read_text(f"{place}{os.sep}entry_points.txt")
    if "neuroscript." not in text:
        return
    entries = tuple(sorted(_entry_points(text), key=lambda each: (each.group != TOOLSETS, each.name)))
    if entries:
        stem, end = os.path.splitext(os.path.basename(place))
        headers = _headers(read_text(os.path.join(place, ENDS[end])))
        name = headers.get("name") or stem.rpartition("-")[0] or stem
        yield Distribution(normalize_name(name), name, headers.get("version") or "?", place, entries)


def _headers(text: str) -> dict[str, str]:
    """Return the headers of a metadata file by lower-case name; the first of each name."""
    headers: dict[str, str] = {}
    for line in text.partition("\n\n")[0].splitlines():
        if not line:
            break
        name, colon, value = line.partition(":")
        if colon:
            headers.setdefault(name.strip().lower(), value.strip())
    return headers


def _entry_points(text: str) -> Iterator[EntryPoint]:
    """Yield the entry points of our groups from a file with sections and lines ``name = module:attribute``."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[] ")
        elif group in GROUPS and line and line[0] not in "#;":
            name, _, target = line.partition("=")
            yield entry_point(group, name.strip(), target.strip())


def entry_point(group: str, name: str, target: str) -> EntryPoint:
    """Return the entry point for a target ``module:attribute`` from the metadata."""
    meant = re.fullmatch(TARGET, target)
    module, attribute = (meant["module"], meant["attribute"] or "") if meant else ("", "")
    return EntryPoint(group, name, module, attribute)
