"""The files of Smith tools, read at one moment: the usable tools, and why the other files cannot be used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from neuroscript.discovery.local_plugins import check_owner, plugin_files
from neuroscript.errors import PluginError, SpecError
from neuroscript.interop.smith.load import SmithTool, policy_of, read_file
from neuroscript.interop.smith.registry_json import ListEntry, difference, read_entries
from neuroscript.io.private_files import exposure
from neuroscript.io.text import quote_path, quote_untrusted
from neuroscript.policy.tool_policy import ToolPolicy


@attrs.frozen(eq=False)
class ToolFiles:
    """What was found at one moment.

    Attributes:
        tools: The usable tools.
        errors: Why other files cannot be used.
        drift: Each difference between a ``registry.json`` and the files.
    """

    tools: tuple[SmithTool, ...]
    errors: tuple[PluginError, ...]
    drift: tuple[str, ...] = ()


def contents_of_folder(folder: Path, group: str, policy: ToolPolicy | None) -> ToolFiles:
    """Return the content of the Python files in a folder, or raise a `PluginError` if it cannot be read."""
    errors: list[PluginError] = []
    found = [*_readable(_files(folder), group, policy, errors)]
    return ToolFiles(tuple(_unique(found, errors)), tuple(errors))


def contents_of_list(path: Path, folder: Path, group: str, policy: ToolPolicy | None) -> ToolFiles:
    """Return the content of the files that a ``registry.json`` lists, or raise a `SpecError` if the list is invalid.

    Raises:
        PluginError: Other users can write to the list, which determines the files that are imported.
    """
    errors: list[PluginError] = []
    files = _files(folder)
    listed, drift = read_entries(path, files)
    exposed = exposure(path)
    if exposed is not None:
        raise PluginError(quote_path(str(path)), f"it is not loaded: {exposed}", code="plugin.unsafe")
    found: list[SmithTool] = []
    for each in listed:
        if each.file is None:
            errors.append(PluginError(quote_path(str(path)), each.problem))
            continue
        for described in _readable([each.file], group, policy, errors):
            drift.extend(difference(described.metadata, each.metadata, quote_untrusted(described.name)))
            found.append(_stricter(described, each, policy))
    return ToolFiles(tuple(_unique(found, errors)), tuple(errors), tuple(drift))


def _files(folder: Path) -> list[Path]:
    """Return the paths that are named like Python files; reading them reports those that are not."""
    return [path for each in plugin_files(folder) if (path := Path(each)).suffix == ".py" and not path.is_dir()]


def _readable(
    files: Iterable[Path], group: str, policy: ToolPolicy | None, errors: list[PluginError]
) -> Iterator[SmithTool]:
    """Yield the tools of files; record why a file has none."""
    for file in files:
        try:
            yield read_file(Path(check_owner(str(file))), group, policy)
        except PluginError as error:
            errors.append(error)
        except SpecError as error:
            errors.append(PluginError(quote_path(str(file)), "; ".join(error.problems), code="plugin.spec"))


def _unique(found: Iterable[SmithTool], errors: list[PluginError]) -> Iterator[SmithTool]:
    """Yield the tools with a unique name; record the others, none of which is used."""
    by_name: dict[str, list[SmithTool]] = {}
    for each in found:
        by_name.setdefault(each.tool.name, []).append(each)
    for several in by_name.values():
        if len(several) == 1:
            yield several[0]
            continue
        for each in several:
            others = " and ".join(quote_path(other.path.name) for other in several if other is not each and other.path)
            reason = f"its tool {quote_untrusted(each.name)} has the same name as the one in {others}"
            errors.append(PluginError(quote_path(str(each.path)), reason, code="plugin.duplicate"))


def _stricter(each: SmithTool, listed: ListEntry, policy: ToolPolicy | None) -> SmithTool:
    """Return a tool that is dangerous if its file or the list says so."""
    if not listed.metadata.get("dangerous") or each.metadata.get("dangerous"):
        return each
    metadata: Mapping[str, Any] = {**each.metadata, "dangerous": True}
    return attrs.evolve(each, metadata=metadata, tool=attrs.evolve(each.tool, policy=policy_of(metadata, policy)))
