"""Toolsets of others: installed distributions, found by their entry points, and plugins that register their own.

A broken one is reported and stops no other; of none there is half.

Source: contract section 7, levels A and C.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from types import ModuleType
from typing import Any, Final

import attrs

from neuroscript.display import shown
from neuroscript.errors import PluginError, SpecError
from neuroscript.tools import ToolImplementation, Toolset

GROUP: Final = "neuroscript.toolsets"
"""The entry-point group whose entries are `Toolset` objects."""


@attrs.frozen(eq=False, repr=False)
class Found:
    """A toolset and the distribution that brought it, for example ``neuroscript-std 0.1``."""

    distribution: str
    toolset: Toolset


def installed(only: Collection[str] | None = None) -> Iterator[Found | PluginError]:
    """Yield the toolsets of installed distributions, in the order of their names, or why one can not be used.

    Args:
        only: The names of the distributions that may be loaded; None means all of them.
    """
    from importlib.metadata import entry_points

    wanted = None if only is None else {_normalised(name) for name in only}
    offers = sorted(_offers(entry_points(group=GROUP)), key=lambda offer: (offer.name, offer.entry.name))
    for offer in offers:
        if wanted is None or offer.name in wanted:
            yield _loaded(offer.distribution, offer.entry)
    for name in sorted((wanted or set()) - {offer.name for offer in offers}):
        yield PluginError(name, "is not installed, or offers no toolset")


@attrs.frozen(eq=False, repr=False)
class _Offer:
    """An entry point, and its distribution: the name that is compared, and the name and version that are told."""

    name: str
    distribution: str
    entry: Any


def _offers(entries: Iterable[Any]) -> Iterator[_Offer]:
    """Yield the entry points with their distributions, whose metadata are parsed anew whenever they are asked for."""
    known: dict[int, Any] = {}
    for entry in entries:
        if entry.dist is not None:
            metadata = known.get(id(entry.dist)) or known.setdefault(id(entry.dist), entry.dist.metadata)
            yield _Offer(_normalised(metadata["Name"]), f"{metadata['Name']} {metadata['Version']}", entry)


def _loaded(distribution: str, entry: Any) -> Found | PluginError:
    try:
        toolset = entry.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        problem = PluginError(distribution, f"entry point {entry.name} can not be loaded ({type(error).__name__})")
        problem.__cause__ = error
        return problem
    if not isinstance(toolset, Toolset):
        return PluginError(distribution, f"entry point {entry.name} is no Toolset but a {type(toolset).__name__}")
    return Found(distribution, toolset)


def _normalised(name: str) -> str:
    """Return the name of a distribution as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


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


def registered(plugin: str | os.PathLike[str] | object) -> tuple[str, tuple[ToolImplementation, ...]]:
    """Have a plugin register its tools, and return what it is called, and them.

    Args:
        plugin: A file of Python, or an object, such as a module, that has a function ``register(registrar)``.

    Raises:
        PluginError: It can not be loaded, has no such function, or that fails.
    """
    origin = os.fspath(plugin) if isinstance(plugin, (str, os.PathLike)) else _name_of(plugin)
    registrar = Registrar()
    try:
        offered = _module_of(origin) if isinstance(plugin, (str, os.PathLike)) else plugin
        register = getattr(offered, "register", None)
        if not callable(register):
            raise PluginError(shown(origin), "it has no function register(registrar)")
        register(registrar)
    except (KeyboardInterrupt, PluginError):
        raise
    except BaseException as error:
        raise PluginError(shown(origin), f"it can not be loaded ({_told(error)})") from error
    return origin, registrar.tools


def _name_of(plugin: object) -> str:
    return plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__name__


def _told(error: BaseException) -> str:
    """Return what a plugin's own author has to know: our sentences whole, of all else the type and the line."""
    if isinstance(error, SpecError):
        return str(error)
    line = error.lineno if isinstance(error, SyntaxError) else _last_line(error)
    return type(error).__name__ if line is None else f"{type(error).__name__}, line {line}"


def _last_line(error: BaseException) -> int | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None or trace.tb_frame.f_code.co_filename == __file__ else trace.tb_lineno


def _module_of(file: str) -> ModuleType:
    """Return the module that a file of Python makes; two files of one name are two modules."""
    from importlib.util import module_from_spec, spec_from_file_location
    from pathlib import Path

    path = Path(file).absolute()
    name = f"neuroscript_plugin_{path.stem}_{abs(hash(path)):x}"
    spec = spec_from_file_location(name, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise PluginError(shown(file), "there is no such file of Python")
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
