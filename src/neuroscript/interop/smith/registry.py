"""The tools of a folder: of all its files, or of those that a ``registry.json`` lists; and what is wrong with others.

Source: Smith's document, sections 2 and 8; seed-systems.md rows SM-5, SM-23, SM-27, SM-60.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from neuroscript.errors import PluginError
from neuroscript.interop.smith.load import GROUP, Described
from neuroscript.interop.smith.tool_files import Contents, contents_of_folder, contents_of_list
from neuroscript.io.text import shown
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import Toolset


@attrs.define(eq=False)
class ToolsRegistry:
    """Smith's registry, under the names of its functions; it keeps what it has read until `reset_cache`.

    >>> ToolsRegistry("smith", lambda: Contents((), ())).list_tool_names()
    []
    """

    group: str
    _read: Callable[[], Contents] = attrs.field(repr=False)
    _kept: Contents | None = attrs.field(default=None, repr=False)

    @property
    def contents(self) -> Contents:
        """What was found when it was read."""
        found = self._kept  # once, for another thread may reset it
        if found is None:
            found = self._kept = self._read()
        return found

    @property
    def toolset(self) -> Toolset:
        """The tools, for an engine; a new set each time."""
        return Toolset(self.group, tuple(each.tool for each in self.contents.tools))

    @property
    def errors(self) -> tuple[PluginError, ...]:
        """Why files were left out; ``engine.add_plugin_errors(*registry.errors)`` lists them with the others."""
        return self.contents.errors

    @property
    def drift(self) -> tuple[str, ...]:
        """Each difference between a ``registry.json`` and the files, with its place; no value."""
        return self.contents.drift

    def get_tools_registry(self) -> list[dict[str, Any]]:
        """Return the METADATA of all tools, each with its ``module``; copies of your own."""
        return [_entry(each) for each in self.contents.tools]

    def get_tool_by_name(self, name: str) -> dict[str, Any]:
        """Return the METADATA of one tool.

        Raises:
            ValueError: There is none of that name.
        """
        return _entry(self._named(name))

    def tool(self, name: str) -> ToolImplementation:
        """Return one tool, by its name in Smith.

        Raises:
            ValueError: There is none of that name.
        """
        return self._named(name).tool

    def list_tool_names(self) -> list[str]:
        """Return the names of the tools, as Smith has them."""
        return [each.name for each in self.contents.tools]

    def reset_cache(self) -> None:
        """Read everything anew when it is asked for next; what an engine has been given stays what it is."""
        self._kept = None

    def _named(self, name: str) -> Described:
        for each in self.contents.tools:
            if each.name == name:
                return each
        raise ValueError(f"Tool '{shown(name)}' not found in registry")


def load_folder(
    folder: str | os.PathLike[str], *, group: str = GROUP, policy: ToolPolicy | None = None
) -> ToolsRegistry:
    """Return the tools of all files of Python in a folder; each is imported, **which runs it**.

    What begins with ``_`` or ``.`` is left out. So is what can not be used: a file that others than its owner could
    change, one that fails, one whose METADATA has problems, all of those that share a name; `ToolsRegistry.errors` has
    the reason of each.

    Args:
        group: The group of the tools.
        policy: What each of them needs, as for `from_smith`.

    Raises:
        PluginError: The folder can not be read, or others could write to it.
        SpecError: The name of the group is none.
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
    """Return the tools that a ``registry.json`` lists; their files are imported, **which runs them**, and no others.

    The files say what the tools are. Where the list says something else it stands in `ToolsRegistry.drift`; but a tool
    is dangerous as soon as one of the two says so.

    Args:
        folder: Where the files lie; by default beside the list.
        group: As for `load_folder`, and so is *policy*.

    Raises:
        PluginError: The folder can not be read, or others could write to it, or to the list.
        SpecError: It can not be read, or is no such list, with every problem; or the name of the group is none.
    """
    group = Toolset(group).name
    place = Path(path).parent if folder is None else Path(folder)
    read = partial(contents_of_list, Path(path), place, group, policy)
    return ToolsRegistry(group, read, read())


def _entry(each: Described) -> dict[str, Any]:
    found = deepcopy(dict(each.metadata))
    return found if each.path is None else {**found, "module": each.path.stem}
