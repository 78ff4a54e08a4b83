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
from typing import Final

import attrs

from neuroscript.display import shown

TOOLSETS: Final = "neuroscript.toolsets"
"""The entry-point group whose entries are `Toolset` objects."""

PLUGINS: Final = "neuroscript.plugins"
"""The entry-point group whose entries have hooks: computed toolsets, gates and observers."""

ENDS: Final = {".dist-info": "METADATA", ".egg-info": "PKG-INFO"}
"""How the folders of distributions end, and the file in each that says its name and version."""

CHUNK: Final = 1 << 16
"""How many bytes are read at once."""

TARGET: Final = re.compile(r"(?P<module>[\w.]+)\s*(?::\s*(?P<attribute>[\w.]+))?\s*(?:\[.*\])?")
"""The object that an entry point means: ``module``, or ``module:attribute``."""


@attrs.frozen
class EntryPoint:
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


@attrs.frozen
class Distribution:
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


def _metadata(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the key and the folder of each distribution whose metadata lie in *folder*."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name.endswith(".dist-info"):
            stem = name[:-10]
        elif name.endswith(".egg-info"):
            stem = re.sub(r"-py\d[\d.]*$", "", name[:-9])
        else:
            continue
        yield normalised(stem.rpartition("-")[0] or stem), f"{folder}{os.sep}{name}"


def _offering(place: str) -> Iterator[Distribution]:
    """Yield the distribution whose metadata lie in *place*, if it offers something to us."""
    text = _read(f"{place}{os.sep}entry_points.txt")
    if "neuroscript." not in text:
        return
    entries = tuple(sorted(_entry_points(text), key=lambda each: (each.group != TOOLSETS, each.name)))
    if entries:
        stem, end = os.path.splitext(os.path.basename(place))
        headers = _headers(_read(os.path.join(place, ENDS[end])))
        name = headers.get("name") or stem.rpartition("-")[0] or stem
        yield Distribution(normalised(name), name, headers.get("version") or "?", place, entries)


def _read(file: str) -> str:
    """Return what a file says, or nothing where there is none; a text file of the library costs three times as much."""
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return ""
    data = b""
    try:
        while len(part := os.read(descriptor, CHUNK)) == CHUNK:
            data += part
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return (data + part).decode("utf-8", "replace")


def _headers(text: str) -> dict[str, str]:
    """Return the headers of a metadata file, by their names in lower case; the first of each."""
    headers: dict[str, str] = {}
    for line in text.splitlines():
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
        elif group in (TOOLSETS, PLUGINS) and line and line[0] not in "#;":
            name, _, target = line.partition("=")
            meant = TARGET.fullmatch(target.strip())
            module, attribute = (meant["module"], meant["attribute"] or "") if meant else ("", "")
            yield EntryPoint(group, name.strip(), module, attribute)
