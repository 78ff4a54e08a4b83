"""Plugins loaded from a path or an object, and change detection for plugin files.

A plugin registers all of its tools or none.

Change detection polls, because no notification API works on all file systems. Each check makes one system call per
file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from weakref import finalize

import attrs

from neuroscript.coercion.parameters import PATHS, as_tuple, require
from neuroscript.discovery.module_loader import NoSource, read
from neuroscript.errors import PluginError, RegistryError, SpecError
from neuroscript.io.private_files import Exposure, exposure
from neuroscript.io.text import quote_path
from neuroscript.io.tracebacks import error_summary
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import TOOLS, Toolset

NO_TOOLSET: Final = (
    "it has neither a Toolset at its top level, such as shop = Toolset('shop'), nor a function register(registrar)"
)


NO_SOURCE: Final = "no such Python file or package (a directory with __init__.py)"


class Registrar:
    """Collects the tools in a plugin's ``register(registrar)``; they are used after that function returns."""

    def __init__(self) -> None:
        self._added: list[ToolImplementation | Toolset] = []

    def register(self, tools: ToolImplementation | Toolset) -> None:
        """Add a tool or a toolset.

        Raises:
            SpecError: It is neither.
        """
        require("register", tools=(tools, TOOLS))
        self._added.append(tools)

    def toolset(self, name: str) -> Toolset:
        """Add and return a new, empty toolset; tools can be added to it afterwards."""
        toolset = Toolset(name)
        self.register(toolset)
        return toolset

    @property
    def tools(self) -> tuple[ToolImplementation, ...]:
        """All tools so far."""
        added = ((each,) if isinstance(each, ToolImplementation) else each.tools for each in self._added)
        return tuple(tool for tools in added for tool in tools)

    @property
    def aliases(self) -> dict[str, str]:
        """Old names of the tools so far, and the current name for each.

        Raises:
            RegistryError: Two toolsets use the same old name for different tools.
        """
        found: dict[str, str] = {}
        for old, name in (
            (old, name) for each in self._added if isinstance(each, Toolset) for old, name in each.aliases.items()
        ):
            if found.setdefault(old, name) != name:
                raise RegistryError(f"{old} is declared as an old name of both {found[old]} and {name}")
        return found


@attrs.frozen(eq=False, repr=False)
class LoadedPlugin:
    """The tools that a plugin has registered. When this object is garbage-collected, its module names are released.

    Attributes:
        plugin: The path, module or object that was passed.
        origin: Its name.
        tools: All of its tools.
        aliases: Old names of its tools, and the current name for each.
        code: Its code, a `module_loader.Code`, if it was passed as a path.
        isolation: The settings of the workers that import it, if this process does not.
    """

    plugin: Any
    origin: str
    tools: tuple[Any, ...]
    aliases: Mapping[str, str]
    code: Any = None
    isolation: Any = None


def load_plugin(plugin: str | os.PathLike[str] | object, origin: str = "") -> LoadedPlugin:
    """Return the tools that a plugin registers, with its name.

    Args:
        plugin: A Python file, a package (a directory with ``__init__.py``), a module or another object. A module either
            defines a function ``register(registrar)``, which takes precedence, or contains toolsets at its top level.
            Any other object has that function as a method.
        origin: The name; by default the path as passed, or a name derived from the object.

    Raises:
        PluginError: It cannot be loaded, contains neither, or its function fails.
    """
    origin = origin or origin_of(plugin)
    code = None
    try:
        offered = plugin
        if isinstance(plugin, (str, os.PathLike)):
            code = read(plugin)
            offered = code.run()
        registrar = registered(offered, origin)
        loaded = LoadedPlugin(plugin, origin, registrar.tools, registrar.aliases, code)
        if code is not None:
            finalize(loaded, code.retire)
        return loaded
    except BaseException as error:
        if code is not None:
            code.retire()
        if isinstance(error, (KeyboardInterrupt, PluginError)):
            raise
        if isinstance(error, NoSource):
            raise PluginError(quote_path(origin), NO_SOURCE) from None
        raise PluginError(quote_path(origin), unloadable(error)) from error


def registered(offered: object, origin: str) -> Registrar:
    """Return what a plugin registers: in its function, or as toolsets in its module.

    Raises:
        PluginError: It has neither.
    """
    registrar = Registrar()
    register = getattr(offered, "register", None)
    if callable(register):
        register(registrar)
        return registrar
    toolsets = _module_toolsets(offered) if isinstance(offered, ModuleType) else ()
    if not toolsets:
        raise PluginError(quote_path(origin), NO_TOOLSET)
    for toolset in toolsets:
        registrar.register(toolset)
    return registrar


def _module_toolsets(module: ModuleType) -> tuple[Toolset, ...]:
    """Return the distinct toolsets at the top level of a module, in order, except those whose names start with ``_``.

    Imported toolsets count too, so a package can have a module for each of its toolsets.
    """
    toolsets = {id(each): each for name, each in vars(module).items() if name[0] != "_" and isinstance(each, Toolset)}
    return tuple(toolsets.values())


def origin_of(plugin: str | os.PathLike[str] | object) -> str:
    """Return the origin of a plugin's tools."""
    if isinstance(plugin, (str, os.PathLike)):
        return os.fspath(plugin)
    return plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__name__


def plugin_files(directory: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the Python files and packages in a directory, sorted by name, except those that start with ``_``.

    Raises:
        PluginError: The directory cannot be read, or other users can write to it.
    """
    from pathlib import Path

    try:
        found = sorted(Path(directory).iterdir())
        _guard(directory, exposure(directory))
    except (OSError, ValueError) as error:  # a path with a null byte or invalid characters
        raise PluginError(quote_path(os.fspath(directory)), f"it cannot be read ({type(error).__name__})") from None
    files = (each for each in found if each.suffix == ".py" or (each / "__init__.py").is_file())
    return tuple(str(each) for each in files if each.name[0] not in "._")


def check_owner(path: str) -> str:
    """Return the path of a Python file or package if no other user can change its files.

    Raises:
        PluginError: Another user can, ``plugin.unsafe``.
    """
    try:
        sources = [source.path for source in read(path).sources.values()]
        for each in dict.fromkeys(place for file in sources for place in (file.parent, file)):
            _guard(path, exposure(each))
    except (NoSource, OSError):
        pass  # loading it will report the same error
    return path


def _guard(path: str | os.PathLike[str], exposed: Exposure | None) -> None:
    if exposed is not None:
        raise PluginError(quote_path(os.fspath(path)), f"it is not loaded: {exposed}", code="plugin.unsafe")


def unloadable(error: BaseException) -> str:
    """Return why a plugin cannot be loaded: our own errors in full, or the message, file and line of other errors."""
    ours = isinstance(error, (SpecError, RegistryError, PluginError))
    return f"cannot be loaded: {error if ours else error_summary(error)}"


Stamp = tuple[tuple[str, int, int, int], ...]
"""The path, modification time (nanoseconds), size (bytes) and inode of each file; empty without files."""


class Watcher:
    """Detects changed plugins, for `Engine.reload_plugin`.

    It neither waits nor starts a thread; call it as often as you like.

    Args:
        plugins: Python files, and packages including all of their modules.
        directories: Directories of plugins, in which new plugins are detected too.

    >>> watcher = Watcher(["docs/examples/shop.py"])
    >>> watcher.changed()
    ()
    """

    def __init__(
        self, plugins: Iterable[str | os.PathLike[str]] = (), directories: Iterable[str | os.PathLike[str]] = ()
    ) -> None:
        plugins, directories = as_tuple(plugins), as_tuple(directories)
        require("Watcher", plugins=(plugins, PATHS), directories=(directories, PATHS))
        self._plugins = tuple(os.fspath(each) for each in plugins)
        self._directories = tuple(os.fspath(each) for each in directories)
        self._stamps: dict[str, Stamp] = {}
        self.changed()

    def changed(self) -> tuple[str, ...]:
        """Return the plugins that were changed, added or removed since the last check.

        Returns:
            Their paths, as passed, or for directories as in `Engine.load_plugins`.
        """
        before = self._stamps
        self._stamps = {path: _stamp(path) for path in dict.fromkeys((*before, *self._offered()))}
        return tuple(path for path, stamp in self._stamps.items() if stamp != before.get(path, ()))

    def _offered(self) -> Iterator[str]:
        yield from self._plugins
        for directory in self._directories:
            with suppress(PluginError):  # it may be missing temporarily; keep the known state
                yield from plugin_files(directory)


def _stamp(plugin: str) -> Stamp:
    path = Path(plugin)
    try:
        return tuple(_marks(sorted(path.rglob("*.py")) if path.is_dir() else [path]))
    except OSError:  # it was removed during the check
        return ()


def _marks(files: Iterable[Path]) -> Iterator[tuple[str, int, int, int]]:
    for file in files:
        with suppress(OSError):
            status = file.stat()
            yield str(file), status.st_mtime_ns, status.st_size, status.st_ino
