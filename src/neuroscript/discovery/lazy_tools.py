"""Tools and hooks of distributions that have not been imported: known by their index, loaded when first needed.

Source: contract section 7; issue "Plugins", discovery.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from threading import RLock
from typing import Any, Final

from neuroscript.discovery.catalog import forget
from neuroscript.discovery.installed import Distribution
from neuroscript.discovery.package_index import IndexedEntry, IndexedTool
from neuroscript.errors import PluginError
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.tool_spec import ToolSpec
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import failure

STALE: Final = "is not what its index says; make that anew with neuroscript index"

TOOLSETS: Final = "neuroscript_toolsets"
"""The hook for toolsets, as `neuroscript.tools.hookspecs` names it, which is loaded only for other hooks."""


class Source:
    """An entry point of a distribution, imported once, when something of it is first needed.

    Args:
        report: Is told of what can not be loaded.
        is_pinned: Whether every tool has to be what its index says in each word, as where a lock pins it.
    """

    def __init__(
        self,
        distribution: Distribution,
        entry: IndexedEntry,
        report: Callable[[PluginError], object],
        is_pinned: bool = False,
    ) -> None:
        self.distribution = distribution
        self.entry = entry
        self.is_pinned = is_pinned
        self._report = report
        self._lock = RLock()
        self._loaded: Any = None
        self._stale: dict[str, PluginError] = {}

    def loaded(self) -> Any:
        """Return what it brings, a `neuroscript.discovery.entry_points.Loaded`.

        Raises:
            PluginError: It can not be used, which is reported once.
        """
        with self._lock:
            if self._loaded is None:
                self._loaded = self._now()
        if isinstance(self._loaded, PluginError):
            raise _again(self._loaded)
        return self._loaded

    def _now(self) -> Any:
        from neuroscript.discovery.entry_points import loaded_entry

        points = self.distribution.entry_points
        (point,) = (each for each in points if (each.group, each.name) == self.entry[:2])
        try:
            found = loaded_entry(self.distribution, point)
        except PluginError as error:
            self._report(error)
            return error
        return found if self._has_hooks_of(found.plugin) else self.stale(self.entry.plugin)

    def _has_hooks_of(self, plugin: object) -> bool:
        """Tell whether a plugin has the hooks that the index tells of; a gate that it keeps back would stand open."""
        if plugin is None:
            return True
        from neuroscript.tools.hookspecs import Plugins

        return Plugins([plugin]).options == self.entry.hooks

    def tool(self, name: str) -> ToolImplementation:
        """Return one of its tools, or raise the `PluginError` that says why there is none."""
        found: ToolImplementation | None = next((each for each in self.loaded().tools if each.name == name), None)
        if found is None:
            raise self.stale(name)
        return found

    def stale(self, name: str) -> PluginError:
        """Return the error for a tool that is not what the index says; what is kept of that is not trusted again."""
        with self._lock:
            if name not in self._stale:
                forget(self.distribution)
                self._stale[name] = PluginError(str(self.distribution), f"{name} {STALE}", code="plugin.index")
                self._report(self._stale[name])
            return _again(self._stale[name])


def _again(error: PluginError) -> PluginError:
    """Return a copy of an error, to be raised: one that is raised again and again keeps the frames of all calls."""
    copy = PluginError(error.distribution, error.reason, code=error.code)
    copy.__cause__ = error.__cause__
    return copy


class Deferred:
    """A tool of which only the index has been read.

    Attributes:
        name: Its canonical name.
        fingerprint: That of its definition, as the index says.
    """

    def __init__(self, source: Source, tool: IndexedTool) -> None:
        self.name = tool.name
        self.fingerprint = tool.fingerprint
        self._source = source
        self._tool = tool
        self._found: ToolImplementation | None = None

    @cached_property
    def policy(self) -> ToolPolicy:
        """What it needs, as the index says."""
        try:
            return ToolPolicy(**self._tool.policy)
        except Exception:  # whatever a file of JSON may hold
            raise self._source.stale(self.name) from None

    @cached_property
    def spec(self) -> ToolSpec:
        """What it promises, as the index says."""
        from neuroscript.tools.serialization import spec_from_data

        try:
            spec = spec_from_data(self._tool.spec)
        except Exception:
            raise self._source.stale(self.name) from None
        if spec.full_name != self.name:
            raise self._source.stale(self.name)
        return spec

    def load(self) -> ToolImplementation:
        """Return the tool itself.

        Raises:
            PluginError: It can not be loaded, or is not what the index says it needs, or what somebody was told that it
                promises.
        """
        if self._found is None:
            tool = self._source.tool(self.name)
            if tool.policy != self.policy or not self._is_told(tool):
                raise self._source.stale(self.name)
            self._found = tool
        return self._found

    def _is_told(self, tool: ToolImplementation) -> bool:
        """Tell whether a tool promises what the index says, where it is pinned or somebody was told that."""
        if not self._source.is_pinned and "spec" not in self.__dict__:
            return True
        from neuroscript.tools.fingerprints import fingerprint

        return fingerprint(tool) == self.fingerprint

    @cached_property
    def implementation(self) -> ToolImplementation:
        """The tool, as one whose function loads it when it is called."""
        if self._found is not None:
            return self._found
        kind = LaterCoroutine if self._tool.is_coroutine else Later
        return ToolImplementation(self.spec, kind(self), self.policy)


class Later:
    """The function of a tool that is loaded when it is first called."""

    def __init__(self, tool: Deferred) -> None:
        self._tool = tool
        self.__signature__ = _signature(["rt", *(arg.name for arg in tool.spec.args)], tool.spec.variadic)

    def __call__(self, rt: object, *values: Any) -> Any:
        return self._function()(rt, *values)

    def _function(self) -> Callable[..., Any]:
        try:
            return self._tool.load().func
        except PluginError as error:
            raise failure(self._tool.name, error) from error


class LaterCoroutine(Later):
    """The same, of one that is to be awaited."""

    async def __call__(self, rt: object, *values: Any) -> Any:
        return await self._function()(rt, *values)


def _signature(names: list[str], variadic: bool = False) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in names]
    if variadic:
        parameters[-1] = parameters[-1].replace(kind=inspect.Parameter.VAR_POSITIONAL)
    return inspect.Signature(parameters)


def tools(sources: Iterable[Source]) -> tuple[Deferred, ...]:
    """Return the tools of some entry points, of which none is imported."""
    return tuple(Deferred(source, tool) for source in sources for tool in source.entry.tools)


def plugins(sources: Iterable[Source]) -> tuple[object, ...]:
    """Return the plugins of hooks of some entry points, of which none is imported, see `LaterPlugin`.

    Raises:
        PluginError: An index tells of a hook that there is not.
    """
    return tuple(filter(None, map(_plugin, sources)))


def _plugin(source: Source) -> object:
    """Return the plugin of an entry point, or None where it has no hook but the one for toolsets.

    Raises:
        PluginError: The index tells of a hook that there is not.
    """
    if source.entry.hooks.keys() <= {TOOLSETS}:
        return None
    from neuroscript.tools.hookspecs import ARGUMENTS, hookimpl

    if not source.entry.hooks.keys() <= ARGUMENTS.keys():
        raise source.stale(source.entry.plugin)
    plugin: LaterPlugin = type(source.entry.plugin, (LaterPlugin,), {})(source)
    for hook, places in source.entry.hooks.items():
        if hook != TOOLSETS:
            setattr(plugin, hook, hookimpl(plugin.later(hook, ARGUMENTS[hook]), **places))
    return plugin


class LaterPlugin:
    """A plugin of hooks that is loaded when a call is first decided by it or told to it.

    It is told then of tools that came before; an engine in which nothing is called tells it nothing. Where it can not
    be loaded, its gate refuses, and its observers fail as observers may.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._functions: Mapping[str, Callable[..., Any]] | None = None
        self._told: list[tuple[Any, ...]] = []
        self._lock = RLock()

    def later(self, hook: str, names: tuple[str, ...]) -> Callable[..., Any]:
        """Return a function in the place of one of its hooks."""
        from neuroscript.tools.hookspecs import CLOSED, REGISTERED

        def called(*arguments: Any) -> Any:
            if self._functions is None and hook == REGISTERED:
                self._told.append(arguments)
            elif self._functions is not None or hook != CLOSED:
                return self._loaded()[hook](*arguments)
            return None

        called.__signature__ = _signature([*names])  # type: ignore[attr-defined]
        return called

    def _loaded(self) -> Mapping[str, Callable[..., Any]]:
        with self._lock:
            if self._functions is None:
                from neuroscript.tools.hookspecs import REGISTERED, Plugins

                found = Plugins([self._source.loaded().plugin])
                self._functions = {hook: next(iter(found.of(hook).values())) for hook in found.options}
                for arguments in self._told:
                    with suppress(Exception):  # an observer that fails changes nothing
                        self._functions[REGISTERED](*arguments)
        return self._functions
