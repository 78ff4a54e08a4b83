"""Files of Smith's tools, read as they are at one moment: what can be used, and why the others can not.

Source: Smith's document, sections 2 and 8; seed-systems.md rows SM-5, SM-23, SM-27, and section 2C on drift.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from neuroscript.discovery.local_plugins import guarded, offered
from neuroscript.errors import PluginError, SpecError
from neuroscript.interop.smith.load import Described, needs_of, read_file
from neuroscript.interop.smith.registry_json import Listed, difference, listed_in
from neuroscript.io.private_files import exposure
from neuroscript.io.text import shown, shown_path
from neuroscript.policy.tool_policy import ToolPolicy


@attrs.frozen(eq=False)
class Contents:
    """What was found at one moment.

    Attributes:
        tools: Those that can be used.
        errors: Why each other file can not.
        drift: Each difference between a ``registry.json`` and the files beside it.
    """

    tools: tuple[Described, ...]
    errors: tuple[PluginError, ...]
    drift: tuple[str, ...] = ()


def contents_of_folder(folder: Path, group: str, policy: ToolPolicy | None) -> Contents:
    """Return what the files of Python in a folder are, or raise a `PluginError` where it can not be looked at."""
    errors: list[PluginError] = []
    found = [*_readable(_files(folder), group, policy, errors)]
    return Contents(tuple(_unique(found, errors)), tuple(errors))


def contents_of_list(path: Path, folder: Path, group: str, policy: ToolPolicy | None) -> Contents:
    """Return what the files are that a ``registry.json`` lists, or raise a `SpecError` where it is none.

    Raises:
        PluginError: Others could write to it, for it decides which files are imported.
    """
    errors: list[PluginError] = []
    files = _files(folder)
    listed, drift = listed_in(path, files)
    exposed = exposure(path)
    if exposed is not None:
        raise PluginError(shown_path(str(path)), f"it is not loaded: {exposed}", code="plugin.unsafe")
    found: list[Described] = []
    for each in listed:
        if each.file is None:
            errors.append(PluginError(shown_path(str(path)), each.problem))
            continue
        for described in _readable([each.file], group, policy, errors):
            drift.extend(difference(described.metadata, each.metadata, shown(described.name)))
            found.append(_stricter(described, each, policy))
    return Contents(tuple(_unique(found, errors)), tuple(errors), tuple(drift))


def _files(folder: Path) -> list[Path]:
    """Return what is called like a file of Python; why something else is none is told when it is read."""
    return [path for each in offered(folder) if (path := Path(each)).suffix == ".py" and not path.is_dir()]


def _readable(
    files: Iterable[Path], group: str, policy: ToolPolicy | None, errors: list[PluginError]
) -> Iterator[Described]:
    """Yield the tools of files; why one has none is noted."""
    for file in files:
        try:
            yield read_file(Path(guarded(str(file))), group, policy)
        except PluginError as error:
            errors.append(error)
        except SpecError as error:
            errors.append(PluginError(shown_path(str(file)), "; ".join(error.problems), code="plugin.spec"))


def _unique(found: Iterable[Described], errors: list[PluginError]) -> Iterator[Described]:
    """Yield the tools that share their name with no other; of those that do none is taken."""
    by_name: dict[str, list[Described]] = {}
    for each in found:
        by_name.setdefault(each.tool.name, []).append(each)
    for several in by_name.values():
        if len(several) == 1:
            yield several[0]
            continue
        for each in several:
            others = " and ".join(shown_path(other.path.name) for other in several if other is not each and other.path)
            reason = f"its tool {shown(each.name)} has the name of that in {others}"
            errors.append(PluginError(shown_path(str(each.path)), reason, code="plugin.duplicate"))


def _stricter(each: Described, listed: Listed, policy: ToolPolicy | None) -> Described:
    """Return a tool that is dangerous when its file or the list says so."""
    if not listed.metadata.get("dangerous") or each.metadata.get("dangerous"):
        return each
    metadata: Mapping[str, Any] = {**each.metadata, "dangerous": True}
    return attrs.evolve(each, metadata=metadata, tool=attrs.evolve(each.tool, policy=needs_of(metadata, policy)))
