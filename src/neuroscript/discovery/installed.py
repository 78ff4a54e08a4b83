"""What is installed: distributions and what they offer, read from their metadata; nothing of them is imported.

The folders of ``sys.path`` are looked through by hand. `importlib.metadata` parses the entry points of every
distribution there is, which takes longer than the start of an engine. What lies in a zip file, or is found by a finder
of its own, is not seen.

Source: contract section 7; performance.md part 6, row 22; PEP 376 and PEP 503 for the names.
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

from neuroscript.io.text import shown
from neuroscript.io.user_cache import are_settled, are_unchanged, kept_at, read_text, stamps, write_text

TOOLSETS: Final = "neuroscript.toolsets"
"""The entry-point group whose entries are `Toolset` objects."""

PLUGINS: Final = "neuroscript.plugins"
"""The entry-point group whose entries have hooks: computed toolsets, gates and observers."""

GROUPS: Final = (TOOLSETS, PLUGINS)
"""Both, in the order in which their entries are loaded."""

SHAPE: Final = 2
"""The version of the shape of what is kept in the cache."""

HEAD: Final = "neuroscript: what is installed"
END: Final = "whole"
"""The first field and the last line of it; a newline in a field makes it worthless."""

FIELD: Final = "\0"
"""What stands between two fields; no path and no line of a file holds it."""

ENDS: Final = {".dist-info": "METADATA", ".egg-info": "PKG-INFO"}
"""How the folders of distributions end, and the file in each that says its name and version."""

TARGET: Final = r"(?P<module>[\w.]+)\s*(?::\s*(?P<attribute>[\w.]+))?\s*(?:\[.*\])?"
"""The object that an entry point means: ``module``, or ``module:attribute``."""


class EntryPoint(NamedTuple):
    """One thing that a distribution offers.

    Attributes:
        group: `TOOLSETS` or `PLUGINS`.
        name: What it is called there.
        module: What has to be imported for it, or ``""`` where the distribution does not say it properly.
        attribute: What it is in the module, with dots, or ``""`` for the module itself.
    """

    group: str
    name: str
    module: str
    attribute: str

    def __str__(self) -> str:
        return f"{self.module}:{self.attribute}" if self.attribute else self.module


class Distribution(NamedTuple):
    """An installed distribution that offers something to us.

    Attributes:
        key: Its name as PEP 503 compares it.
        name: Its name as it is written.
        version: Its version, or ``"?"`` where it says none.
        folder: Where its metadata are.
        entry_points: What it offers, in the order of groups and names.
    """

    key: str
    name: str
    version: str
    folder: str
    entry_points: tuple[EntryPoint, ...]

    def __str__(self) -> str:
        return f"{shown(self.name)} {shown(self.version)}"


def normalised(name: str) -> str:
    """Return the name of a distribution as PEP 503 compares it.

    >>> normalised("Acme._Tools")
    'acme-tools'
    """
    key = name.replace("_", "-").replace(".", "-").lower()
    return re.sub("-+", "-", key) if "--" in key else key


def distributions(path: Iterable[str] | None = None) -> tuple[Distribution, ...]:
    """Return the installed distributions that offer toolsets or plugins, in the order of their names.

    Args:
        path: The folders to look in, ``sys.path`` if None. Of two distributions of one name the first one counts, as
            it does when a module is imported.
    """
    seen: set[str] = set()
    found: list[Distribution] = []
    for folder in dict.fromkeys(sys.path if path is None else path):
        for key, place in sorted(_metadata(folder or os.curdir)):
            if key not in seen:
                seen.add(key)
                found.extend(_offering(place))
    return tuple(sorted(found, key=lambda each: each.key))


def known() -> tuple[Distribution, ...]:
    """Return the installed `distributions`, out of the cache where nothing has changed since they were looked for.

    What tells of a change are the folders of ``sys.path``, in which an installer makes and removes others, and the
    metadata of each distribution that was found.
    """
    start, path = time_ns(), [*_absolute(sys.path)]
    file = kept_at("installed", SHAPE, path)
    kept = None if file is None else _kept(read_text(file), path)
    if kept is not None:
        return kept
    found = distributions(path)
    looked_at = stamps([*dict.fromkeys(path), *_files_of(path, found)])
    if file is not None and are_settled(looked_at, start):
        write_text(file, _text(path, looked_at, found))
    return found


def _absolute(path: Iterable[str]) -> Iterator[str]:
    """Yield folders as they are from everywhere; those in a working directory that is gone hold nothing."""
    for folder in path:
        with suppress(OSError):
            yield folder if os.path.isabs(folder) else os.path.join(os.getcwd(), folder)


def _text(path: list[str], looked_at: list[list[Any]], found: Iterable[Distribution]) -> str:
    """Return what is kept: lines of fields, for the library of JSON would take longer to load than all else."""
    seen = [field for each in looked_at for field in each]
    lines = [[HEAD, *path], seen, *([*each[:4], *chain(*each.entry_points)] for each in found), [END]]
    return "\n".join(FIELD.join(map(str, each)) for each in lines)


def _kept(text: str, path: list[str]) -> tuple[Distribution, ...] | None:
    """Return the distributions that `_text` has written down, if it is whole and nothing has changed since."""
    lines = [line.split(FIELD) for line in text.split("\n")]
    if len(lines) < 3 or lines[0] != [HEAD, *path] or lines[-1] != [END]:
        return None
    seen = lines[1]
    try:
        are_same = are_unchanged(zip(seen[::3], map(int, seen[1::3]), map(int, seen[2::3]), strict=True))
        return tuple(map(_distribution, lines[2:-1])) if are_same else None
    except (TypeError, ValueError):
        return None


def _distribution(fields: list[str]) -> Distribution:
    rest = iter(fields[4:])
    key, name, version, folder = fields[:4]
    return Distribution(
        key, name, version, folder, tuple(starmap(EntryPoint, zip(rest, rest, rest, rest, strict=True)))
    )


def from_plain(data: Any) -> Distribution:
    """Return the distribution that JSON holds as a list of its fields."""
    key, name, version, folder, points = data
    return Distribution(key, name, version, folder, tuple(EntryPoint(*point) for point in points))


def _files_of(path: list[str], found: Iterable[Distribution]) -> Iterator[str]:
    """Yield what may be changed in place: the metadata of distributions, and those that stand beside their sources."""
    for each in found:
        yield os.path.join(each.folder, "entry_points.txt")
        yield os.path.join(each.folder, ENDS[os.path.splitext(each.folder)[1]])
    for folder in dict.fromkeys(path):
        beside = (name for name in _names(folder) if name.endswith(".egg-info"))
        yield from (os.path.join(folder, name, "entry_points.txt") for name in beside)


def _metadata(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the key and the folder of each distribution whose metadata lie in *folder*."""
    for name in _names(folder):
        if name.endswith(".dist-info"):
            stem = name[:-10]
        elif name.endswith(".egg-info"):
            stem = re.sub(r"-py\d[\d.]*$", "", name[:-9])
        else:
            continue
        yield normalised(stem.rpartition("-")[0] or stem), f"{folder}{os.sep}{name}"


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _offering(place: str) -> Iterator[Distribution]:
    """Yield the distribution whose metadata lie in *place*, if it offers something to us."""
    text = read_text(f"{place}{os.sep}entry_points.txt")
    if "neuroscript." not in text:
        return
    entries = tuple(sorted(_entry_points(text), key=lambda each: (each.group != TOOLSETS, each.name)))
    if entries:
        stem, end = os.path.splitext(os.path.basename(place))
        headers = _headers(read_text(os.path.join(place, ENDS[end])))
        name = headers.get("name") or stem.rpartition("-")[0] or stem
        yield Distribution(normalised(name), name, headers.get("version") or "?", place, entries)


def _headers(text: str) -> dict[str, str]:
    """Return the headers of a metadata file, by their names in lower case; the first of each."""
    headers: dict[str, str] = {}
    for line in text.partition("\n\n")[0].splitlines():
        if not line:
            break
        name, colon, value = line.partition(":")
        if colon:
            headers.setdefault(name.strip().lower(), value.strip())
    return headers


def _entry_points(text: str) -> Iterator[EntryPoint]:
    """Yield the entry points of our groups, of a file with sections and lines ``name = module:attribute``."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[] ")
        elif group in GROUPS and line and line[0] not in "#;":
            name, _, target = line.partition("=")
            yield entry_point(group, name.strip(), target.strip())


def entry_point(group: str, name: str, target: str) -> EntryPoint:
    """Return what a distribution offers under a name, as its metadata say it: ``module:attribute``."""
    meant = re.fullmatch(TARGET, target)
    module, attribute = (meant["module"], meant["attribute"] or "") if meant else ("", "")
    return EntryPoint(group, name, module, attribute)
