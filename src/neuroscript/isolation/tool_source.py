"""How a worker finds the tools of a toolset: by an entry point, from the files of a plugin, or in a module."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from neuroscript.discovery.lazy_tools import TOOLSETS as HOOK
from neuroscript.discovery.module_loader import Code, Source
from neuroscript.errors import NeuroScriptError, SpecError, ToolFailed
from neuroscript.spec.callables import inner, is_coroutine
from neuroscript.tools.tool import ToolImplementation, WithoutRuntime, observation_of
from neuroscript.tools.toolset import Toolset

Kind = Literal["entry", "files", "module"]

STALE: Final = "its definition differs from the index of its distribution; rebuild the index with neuroscript index"


class CannotImport(NeuroScriptError):
    """A fresh process cannot import the function of a tool; the message says why and what to do."""


@attrs.frozen
class ToolSource:
    """Where a fresh process finds tools.

    Attributes:
        kind: ``"entry"`` for an entry point of a distribution, ``"files"`` for a plugin file or package, ``"module"``
            for a module that can be imported.
        name: What messages call it.
        data: What it takes to load it, as plain data.
        paths: The files and directories of the toolset, which its workers may read.
    """

    kind: Kind
    name: str
    data: tuple[Any, ...] = attrs.field(repr=False)
    paths: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """Identifies it among the sources of an engine."""
        return (self.kind, self.data)


def source_of(tool: Any) -> ToolSource:
    """Return where a fresh process finds a tool.

    Args:
        tool: A `ToolImplementation`, or a tool that is known from an index.

    Raises:
        CannotImport: No fresh process can find its function.
    """
    if not isinstance(tool, ToolImplementation):
        return _of_listed(tool)
    tool = without_injection(tool)
    listed = getattr(tool.func, "listed", None)
    if listed is not None:
        return _of_listed(listed)
    func = tool.func.func if isinstance(tool.func, WithoutRuntime) else tool.func
    try:
        code = inner(func)
    except Exception:
        code = func
    module = getattr(code, "__module__", None)
    snapshot = getattr(code, "__globals__", {}).get("__neuroscript_code__")
    if snapshot is not None:
        return source_of_code(snapshot)
    if type(module) is not str or module == "__main__":
        raise CannotImport(
            f"{tool.name} cannot be isolated: its function is defined in the main program, which a worker cannot "
            "import; move it to a module"
        )
    if not _finds(module, tool):
        raise CannotImport(
            f"{tool.name} cannot be isolated: a worker cannot import its function from {module}; define the function, "
            "or a toolset that contains it, at the top level of a module"
        )
    return ToolSource("module", module, (module,), tuple(package_paths(module)))


def without_injection(tool: ToolImplementation) -> ToolImplementation:
    """Return a tool as its toolset contains it, because the host resolves injected arguments and observes calls."""
    while True:
        observation = observation_of(tool)
        if observation is not None:
            tool = observation.tool
        elif tool.injection is not None:
            tool = tool.injection.base
        else:
            return tool


def _of_listed(tool: Any) -> ToolSource:
    """Return where a fresh process finds a tool that is known from an index."""
    source = tool.source
    code = getattr(source, "code", None)
    if code is not None:
        return source_of_code(code)
    fingerprints = {each.name: each.fingerprint for each in source.entry.tools}
    return source_of_entry(source.distribution, source.point, fingerprints)


def source_of_entry(distribution: Any, point: Any, fingerprints: Mapping[str, str] | None = None) -> ToolSource:
    """Return where a fresh process finds the tools of an entry point.

    Args:
        fingerprints: The fingerprint of each tool in the index, which a worker compares with the tool that it loads.
    """
    return ToolSource(
        "entry",
        f"{distribution.name} {distribution.version}",
        (tuple(distribution[:4]), tuple(point), tuple((fingerprints or {}).items())),
        tuple(package_paths(point.module)),
    )


def source_of_code(code: Any) -> ToolSource:
    """Return where a fresh process finds the tools of a plugin file or package: in a snapshot of its sources."""
    files = tuple((name, str(each.path), each.data) for name, each in code.sources.items())
    top = Path(files[0][1])
    place = top.parent if top.name == "__init__.py" else top
    return ToolSource("files", str(place), (code.name, files), (str(place),))


def _finds(module: str, tool: ToolImplementation) -> bool:
    """Return whether the module, as it is imported here, contains this tool or its function."""
    loaded = sys.modules.get(module)
    if loaded is None:
        return False
    found = tools_in(loaded).get(tool.name)
    if found is not None:
        return found.func is tool.func or _code(found) is _code(tool) is not None
    return not _has_classes(tool) and _function_in(loaded, tool) is not None


def _code(tool: ToolImplementation) -> Any:
    """Return the code of the function of a tool; a hook makes a new function each time, with the same code."""
    func = tool.func.func if isinstance(tool.func, WithoutRuntime) else tool.func
    return getattr(func, "__code__", None)


def _has_classes(tool: ToolImplementation) -> bool:
    return any(arg.cls is not None or arg.nested for arg in tool.spec.args) or tool.spec.returns is not None


def _function_in(module: Any, tool: ToolImplementation) -> Any:
    """Return the function of a tool if the module has it under its own name."""
    func = tool.func.func if isinstance(tool.func, WithoutRuntime) else tool.func
    found = module
    for name in getattr(func, "__qualname__", "").split("."):
        found = getattr(found, name, None)
    return func if found is func and func is not None else None


def package_paths(module: str) -> Iterator[str]:
    """Yield, without an import, the directory of a package, or the file of a module that stands alone."""
    top = module.partition(".")[0]
    found = sys.modules.get(top)
    if found is None:
        try:
            spec = find_spec(top)
        except (ImportError, ValueError):
            return
        if spec is None:
            return
        places, file = list(spec.submodule_search_locations or ()), spec.origin
    else:
        places, file = list(getattr(found, "__path__", ())), getattr(found, "__file__", None)
    if places:
        yield from map(os.path.realpath, places)
    elif file:
        yield os.path.realpath(file)


def tools_in(module: Any) -> dict[str, ToolImplementation]:
    """Return the tools at the top level of a module, and those that its hook provides, by canonical name."""
    found: dict[str, ToolImplementation] = {}
    hook = vars(module).get(HOOK)
    for value in list(vars(module).values()):
        if isinstance(value, ToolImplementation):
            found.setdefault(value.name, value)
        elif isinstance(value, Toolset):
            found.update((tool.name, tool) for tool in value.tools if tool.name not in found)
    for toolset in hook() if callable(hook) else ():
        found.update((tool.name, tool) for tool in toolset.tools if tool.name not in found)
    return found


# In the worker


class LoadedSource:
    """The tools of a source, in a process that has loaded it."""

    def __init__(self, kind: Kind, data: Any) -> None:
        self._module: Any = None
        self._fingerprints: dict[str, str] = {}
        self._tools: Mapping[str, ToolImplementation] = LOADERS[kind](self, data)

    def function(self, name: str, qualname: str, takes_runtime: bool) -> ToolImplementation | WithoutRuntime | Any:
        """Return the tool of this name, or the function of this qualified name."""
        found: Any = self._tools.get(name)
        if found is not None:
            self._check(found)
            return found
        found = self._module
        for part in qualname.split("."):
            found = getattr(found, part)
        return found if takes_runtime else WithoutRuntime(found)

    def _check(self, tool: ToolImplementation) -> None:
        """Raise an error unless a tool has the definition in its index, by which the host makes the arguments."""
        expected = self._fingerprints.get(tool.name)
        if expected is not None:
            from neuroscript.tools.fingerprints import fingerprint

            if fingerprint(tool) != expected:
                raise ToolFailed(STALE, code="plugin.index", retry="host")
            del self._fingerprints[tool.name]

    def of_entry(self, data: Any) -> Mapping[str, ToolImplementation]:
        """Load an entry point of a distribution."""
        from neuroscript.discovery.entry_points import loaded_entry
        from neuroscript.discovery.installed import Distribution, EntryPoint

        (key, name, version, folder), point, fingerprints = data
        self._fingerprints = dict(fingerprints)
        entry = EntryPoint(*point)
        found = loaded_entry(Distribution(key, name, version, folder, (entry,)), entry)
        return {tool.name: tool for tool in found.tools}

    def of_files(self, data: Any) -> Mapping[str, ToolImplementation]:
        """Load a plugin from the sources that the host has read."""
        from neuroscript.discovery.local_plugins import registered

        code = code_of(data)
        return {tool.name: tool for tool in registered(code.run(), code.name).tools}

    def of_module(self, data: Any) -> Mapping[str, ToolImplementation]:
        """Import a module."""
        self._module = import_module(data[0])
        return tools_in(self._module)


def code_of(data: Any) -> Code:
    """Return the snapshot of a plugin from the data of its source."""
    name, files = data
    return Code(name, {each: Source(Path(path), source) for each, path, source in files})


class OwnFinder(MetaPathFinder):
    """Finds the packages of a toolset in a confined process, which cannot list the directories that contain them.

    Args:
        paths: The files and directories of the toolset.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = {Path(each).name.partition(".")[0]: Path(each) for each in paths}

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a top-level package or module of the toolset, or None."""
        place = self._paths.get(fullname)
        if place is None:
            return None
        file = place / "__init__.py" if place.is_dir() else place
        if not file.is_file():  # a namespace package
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(place)]
            return spec
        return spec_from_file_location(fullname, file)


LOADERS: Final[Mapping[str, Any]] = {
    "entry": LoadedSource.of_entry,
    "files": LoadedSource.of_files,
    "module": LoadedSource.of_module,
}


def reference(tool: Any) -> tuple[str, str, bool]:
    """Return what `LoadedSource.function` needs to find a tool."""
    if not isinstance(tool, ToolImplementation):
        return tool.name, "", True
    func = without_injection(tool).func
    inner_func: Any = func.func if isinstance(func, WithoutRuntime) else func
    return original_name(tool), getattr(inner_func, "__qualname__", ""), not isinstance(func, WithoutRuntime)


def original_name(tool: ToolImplementation) -> str:
    """Return the name of a tool before it was injected into, or in its index."""
    tool = without_injection(tool)
    listed = getattr(tool.func, "listed", None)
    name: str = tool.name if listed is None else listed.name
    return name


__all__ = ["CannotImport", "LoadedSource", "SpecError", "ToolSource", "is_coroutine", "reference", "source_of"]
