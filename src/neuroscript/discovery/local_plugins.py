"""Plugins that are loaded by path or as an object: each registers all of its tools, or none.

Source: contract section 7, level C.

Plugins of files that change: which of them did since the last look.

Files are looked at, for no system tells of changes on every kind of file system; a look asks the system once for each.

Source: contract section 7, level C; issue "Plugins", ``--watch``.
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
from neuroscript.io.text import shown_path
from neuroscript.io.tracebacks import error_summary
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import TOOLS, Toolset

NOTHING: Final = (
    "it has neither a Toolset at its top level, as in shop = Toolset('shop'), nor a function register(registrar)"
)


NO_SOURCE: Final = "there is no such file of Python, nor a package (a directory with __init__.py)"


class Registrar:
    """What a plugin's ``register(registrar)`` adds its tools to; they are taken when it has returned."""

    def __init__(self) -> None:
        self._added: list[ToolImplementation | Toolset] = []

    def register(self, tools: ToolImplementation | Toolset) -> None:
        """Add a tool, or a toolset.

        Raises:
            SpecError: It is neither.
        """
        require("register", tools=(tools, TOOLS))
        self._added.append(tools)

    def toolset(self, name: str) -> Toolset:
        """Return a new, empty toolset that is added with what it then holds."""
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
        """Old names of the tools so far, and what they are called now.

        Raises:
            RegistryError: Two toolsets say of one old name different things.
        """
        found: dict[str, str] = {}
        for old, name in (
            (old, name) for each in self._added if isinstance(each, Toolset) for old, name in each.aliases.items()
        ):
            if found.setdefault(old, name) != name:
                raise RegistryError(f"{old} is said to be an old name of {found[old]} and of {name}")
        return found


@attrs.frozen(eq=False, repr=False)
class Loaded:
    """What a plugin has registered; when nobody holds this any more, the names of its modules are given back.

    Attributes:
        plugin: The path, the module or the object that was given.
        origin: What it is called.
        tools: All its tools.
        aliases: Old names of its tools, and what they are called now.
        code: Its code, an `isolated.Code`, where it was given as a path.
    """

    plugin: Any
    origin: str
    tools: tuple[ToolImplementation, ...]
    aliases: Mapping[str, str]
    code: Any = None


def registered(plugin: str | os.PathLike[str] | object, origin: str = "") -> Loaded:
    """Have a plugin register its tools, and return what it is called, and them.

    Args:
        plugin: A file of Python, a package (a directory with ``__init__.py``), a module or another object. A module
            holds toolsets at its top level, or has a function ``register(registrar)``, which then decides alone; any
            other object has that function as a method.
        origin: What it is called; by default the path as it is given, or a name of the object.

    Raises:
        PluginError: It can not be loaded, has neither, or its function fails.
    """
    origin = origin or origin_of(plugin)
    registrar, code = Registrar(), None
    try:
        offered = plugin
        if isinstance(plugin, (str, os.PathLike)):
            code = read(plugin)
            offered = code.run()
        _register(offered, registrar, origin)
        loaded = Loaded(plugin, origin, registrar.tools, registrar.aliases, code)
        if code is not None:
            finalize(loaded, code.retire)
        return loaded
    except BaseException as error:
        if code is not None:
            code.retire()
        if isinstance(error, (KeyboardInterrupt, PluginError)):
            raise
        if isinstance(error, NoSource):
            raise PluginError(shown_path(origin), NO_SOURCE) from None
        raise PluginError(shown_path(origin), unloadable(error)) from error


def _register(offered: object, registrar: Registrar, origin: str) -> None:
    """Have a plugin register its tools: by its function, or else the toolsets that its module holds."""
    register = getattr(offered, "register", None)
    if callable(register):
        register(registrar)
        return
    toolsets = _held(offered) if isinstance(offered, ModuleType) else ()
    if not toolsets:
        raise PluginError(shown_path(origin), NOTHING)
    for toolset in toolsets:
        registrar.register(toolset)


def _held(module: ModuleType) -> tuple[Toolset, ...]:
    """Return the toolsets at the top level of a module, each once, in order; a name that begins with ``_`` hides one.

    Those that are imported count too, so that a package can have a module for each of its toolsets.
    """
    held = {id(each): each for name, each in vars(module).items() if name[0] != "_" and isinstance(each, Toolset)}
    return tuple(held.values())


def origin_of(plugin: str | os.PathLike[str] | object) -> str:
    """Return what the tools of a plugin are said to come from."""
    if isinstance(plugin, (str, os.PathLike)):
        return os.fspath(plugin)
    return plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__name__


def offered(directory: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the files of Python and the packages in a directory, by their names; what begins with ``_`` is neither.

    Raises:
        PluginError: It can not be read, or others may write to it.
    """
    from pathlib import Path

    try:
        found = sorted(Path(directory).iterdir())
        _guard(directory, exposure(directory))
    except (OSError, ValueError) as error:  # a path with a null byte, or with characters that no file name has
        raise PluginError(shown_path(os.fspath(directory)), f"it can not be read ({type(error).__name__})") from None
    files = (each for each in found if each.suffix == ".py" or (each / "__init__.py").is_file())
    return tuple(str(each) for each in files if each.name[0] not in "._")


def guarded(path: str) -> str:
    """Return the path of a file of Python, or of a package, when nobody else may change what it is made of.

    Raises:
        PluginError: Somebody may, ``plugin.unsafe``.
    """
    try:
        sources = [source.path for source in read(path).sources.values()]
        for each in dict.fromkeys(place for file in sources for place in (file.parent, file)):
            _guard(path, exposure(each))
    except (NoSource, OSError):
        pass  # as whoever loads it will find
    return path


def _guard(path: str | os.PathLike[str], exposed: Exposure | None) -> None:
    if exposed is not None:
        raise PluginError(shown_path(os.fspath(path)), f"it is not loaded: {exposed}", code="plugin.unsafe")


def unloadable(error: BaseException) -> str:
    """Return why a plugin cannot be loaded: our own errors in full, any other with its message, file and line."""
    ours = isinstance(error, (SpecError, RegistryError, PluginError))
    return f"cannot be loaded: {error if ours else error_summary(error)}"


Stamp = tuple[tuple[str, int, int, int], ...]
"""Of each file its path, when it was written (nanoseconds), its size (bytes) and its number; none if there is none."""


class Watcher:
    """Tells which plugins are not what they were, for `Engine.reload_plugin`.

    It does not wait, and keeps no thread: whoever has it asks it as often as wanted.

    Args:
        plugins: Files of Python, and packages, of which every module counts.
        directories: Directories of plugins, in which new ones count too.

    >>> watcher = Watcher(["docs/examples/shop.py"])
    >>> watcher.changed()
    ()

    Source: contract section 7, level C.
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
        """Return the plugins that changed, came or went since the last look, and take note of what they are now.

        Returns:
            Their paths: as they were given, and in a directory as `Engine.load_plugins` has them.
        """
        before = self._stamps
        self._stamps = {path: _stamp(path) for path in dict.fromkeys((*before, *self._offered()))}
        return tuple(path for path, stamp in self._stamps.items() if stamp != before.get(path, ()))

    def _offered(self) -> Iterator[str]:
        yield from self._plugins
        for directory in self._directories:
            with suppress(PluginError):  # as when it is gone for a moment; what is known of it stays
                yield from offered(directory)


def _stamp(plugin: str) -> Stamp:
    path = Path(plugin)
    try:
        return tuple(_marks(sorted(path.rglob("*.py")) if path.is_dir() else [path]))
    except OSError:  # it goes while it is looked at
        return ()


def _marks(files: Iterable[Path]) -> Iterator[tuple[str, int, int, int]]:
    for file in files:
        with suppress(OSError):
            status = file.stat()
            yield str(file), status.st_mtime_ns, status.st_size, status.st_ino
