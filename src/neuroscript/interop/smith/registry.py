"""Registries of the tools in a folder: of all its files, or of those that a ``registry.json`` lists."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from neuroscript.errors import PluginError
from neuroscript.interop.smith.load import GROUP, SmithTool
from neuroscript.interop.smith.tool_files import ToolFiles, contents_of_folder, contents_of_list
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import Toolset


@attrs.define(eq=False)
class ToolsRegistry:
    """Smith's registry, with the function names of Smith; it caches what it has read until `reset_cache`.

    >>> ToolsRegistry("smith", lambda: ToolFiles((), ())).list_tool_names()
    []
    """

    group: str
    _read_contents: Callable[[], ToolFiles] = attrs.field(repr=False)
    _contents: ToolFiles | None = attrs.field(default=None, repr=False)

    @property
    def contents(self) -> ToolFiles:
        """The content of the registry when it was last read."""
        found = self._contents  # read once, because another thread may reset it
        if found is None:
            found = self._contents = self._read_contents()
        return found

    @property
    def toolset(self) -> Toolset:
        """The tools for an engine, as a new toolset each time."""
        return Toolset(self.group, tuple(each.tool for each in self.contents.tools))

    @property
    def errors(self) -> tuple[PluginError, ...]:
        """Why files were left out; ``engine.add_plugin_errors(*registry.errors)`` adds them to the engine's list."""
        return self.contents.errors

    @property
    def drift(self) -> tuple[str, ...]:
        """Each difference between a ``registry.json`` and the files, with its place but without values."""
        return self.contents.drift

    def get_tools_registry(self) -> list[dict[str, Any]]:
        """Return copies of the METADATA of all tools, each with its ``module``."""
        return [_entry(each) for each in self.contents.tools]

    def get_tool_by_name(self, name: str) -> dict[str, Any]:
        """Return the METADATA of one tool.

        Raises:
            ValueError: The tool is unknown.
        """
        return _entry(self._tool_named(name))

    def tool(self, name: str) -> ToolImplementation:
        """Return one tool, by its name in Smith.

        Raises:
            ValueError: The tool is unknown.
        """
        return self._tool_named(name).tool

    def list_tool_names(self) -> list[str]:
        """Return the Smith names of the tools."""
        return [each.name for each in self.contents.tools]

    def reset_cache(self) -> None:
        """Read everything again at the next access; toolsets that an engine already has do not change."""
        self._contents = None

    def _tool_named(self, name: str) -> SmithTool:
        for each in self.contents.tools:
            if each.name == name:
                return each
        raise ValueError(f"Tool '{quote_untrusted(name)}' not found in registry")


def load_folder(
    folder: str | os.PathLike[str], *, group: str = GROUP, policy: ToolPolicy | None = None
) -> ToolsRegistry:
    """Return the tools in all Python files of a folder; each file is imported, **which executes it**.

    Names that begin with ``_`` or ``.`` are ignored. Files that cannot be used are left out: a file that users other
    than its owner can change, one that fails, one with invalid METADATA, and all files whose tools share a name.
    `ToolsRegistry.errors` contains the reasons.

    Args:
        group: The group of the tools.
        policy: The policy of each tool, as for `from_smith`.

    Raises:
        PluginError: The folder cannot be read, or other users can write to it.
        SpecError: The group is not a valid name.
    """
    group = Toolset(group).name
    read = partial(contents_of_folder, Path(folder), group, policy)
    return ToolsRegistry(group, read, read())


def load_registry(
    path: str | os.PathLike[str],
    *,
    folder: str | os.PathLike[str] | None = None,
    group: str = GROUP,
    policy: ToolPolicy | None = None,
) -> ToolsRegistry:
    """Return the tools that a ``registry.json`` lists; only their files are imported, **which executes them**.

    The files define the tools. Differences between the list and the files are in `ToolsRegistry.drift`, but a tool is
    dangerous if either of them says so.

    Args:
        folder: The folder of the files; the default is the folder of the list.
        group: As for `load_folder`.
        policy: As for `load_folder`.

    Raises:
        PluginError: The folder cannot be read, or other users can write to it or to the list.
        SpecError: The list cannot be read or is invalid, with every problem found; or the group is not a valid name.
    """
    group = Toolset(group).name
    place = Path(path).parent if folder is None else Path(folder)
    read = partial(contents_of_list, Path(path), place, group, policy)
    return ToolsRegistry(group, read, read())


def _entry(each: SmithTool) -> dict[str, Any]:
    found = deepcopy(dict(each.metadata))
    return found if each.path is None else {**found, "module": each.path.stem}
