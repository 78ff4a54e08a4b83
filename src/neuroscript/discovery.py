"""Plugins that register their own tools: files of Python, modules and objects. Of none there is half.

Source: contract section 7, level C.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final
from weakref import finalize

import attrs

from neuroscript import isolated
from neuroscript.display import shown_path
from neuroscript.errors import PluginError, RegistryError, SpecError
from neuroscript.isolated import NoSource, read
from neuroscript.private import Exposure, exposure
from neuroscript.tools import ToolImplementation, Toolset

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
        if not isinstance(tools, (ToolImplementation, Toolset)):
            raise SpecError("register", [f"expected a ToolImplementation or a Toolset, got {type(tools).__name__}"])
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
        plugin: A file of Python, a package (a directory with ``__init__.py``), or an object, such as a module; each
            has a function ``register(registrar)``.
        origin: What it is called; by default the path as it is given, or a name of the object.

    Raises:
        PluginError: It can not be loaded, has no such function, or that fails.
    """
    origin = origin or origin_of(plugin)
    registrar, code = Registrar(), None
    try:
        offered = plugin
        if isinstance(plugin, (str, os.PathLike)):
            code = read(plugin)
            offered = code.run()
        register = getattr(offered, "register", None)
        if not callable(register):
            raise PluginError(shown_path(origin), "it has no function register(registrar)")
        register(registrar)
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
        raise PluginError(shown_path(origin), f"it can not be loaded ({told(error)})") from error


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
    except OSError as error:
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


def told(error: BaseException) -> str:
    """Return what a plugin's own author has to know: our sentences whole, of all else the type and the line."""
    if isinstance(error, (SpecError, RegistryError)):
        return str(error)
    line = error.lineno if isinstance(error, SyntaxError) else _last_line(error)
    return type(error).__name__ if line is None else f"{type(error).__name__}, line {line}"


def _last_line(error: BaseException) -> int | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_code.co_filename in (__file__, isolated.__file__):
        return None
    return trace.tb_lineno
