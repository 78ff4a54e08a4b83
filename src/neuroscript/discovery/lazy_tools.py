"""Tools and hooks that are known from an index; their distributions are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from threading import RLock
from typing import Any, Final, Protocol

from neuroscript.discovery.catalog import forget
from neuroscript.discovery.installed import Distribution, EntryPoint
from neuroscript.discovery.package_index import IndexedEntry, IndexedTool
from neuroscript.errors import PluginError, ToolFailed
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.callables import positional_signature
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import failure

STALE: Final = "does not match its index; rebuild the index with neuroscript index"

NOT_IMPORTED: Final = "its code is isolated, so this process does not import it"

TOOLSETS: Final = "neuroscript_toolsets"
"""The name of the toolset hook. `neuroscript.tools.hookspecs` also defines it, but is loaded only for other hooks."""


class Source:
    """An entry point of a distribution that is imported once, on first use.

    Args:
        report: Called with the error if it cannot be loaded.
        is_pinned: Whether every tool must match its index exactly, for example because a lock file pins it.
        isolation: The settings of the workers that import it, if this process never does.
    """

    def __init__(
        self,
        distribution: Distribution,
        entry: IndexedEntry,
        report: Callable[[PluginError], object],
        is_pinned: bool = False,
        isolation: Any = None,
    ) -> None:
        self.distribution = distribution
        self.entry = entry
        self.is_pinned = is_pinned
        self.isolation = isolation
        self._report = report
        self._lock = RLock()
        self._loaded: Any = None
        self._stale: dict[str, PluginError] = {}

    @property
    def point(self) -> EntryPoint:
        """The entry point, as the metadata of the distribution declares it."""
        points = self.distribution.entry_points
        (point,) = (each for each in points if (each.group, each.name) == self.entry[:2])
        return point

    def loaded(self) -> Any:
        """Return its content, a `neuroscript.discovery.entry_points.LoadedEntry`.

        Raises:
            PluginError: It cannot be used. The error is reported once.
        """
        if self.isolation is not None:
            raise PluginError(str(self.distribution), NOT_IMPORTED, code="plugin.isolated")
        with self._lock:
            if self._loaded is None:
                self._loaded = self._now()
        if isinstance(self._loaded, PluginError):
            raise _again(self._loaded)
        return self._loaded

    def _now(self) -> Any:
        from neuroscript.discovery.entry_points import loaded_entry

        try:
            found = loaded_entry(self.distribution, self.point)
        except PluginError as error:
            self._report(error)
            return error
        return found if self._has_hooks_of(found.plugin) else self.stale(self.entry.plugin)

    def _has_hooks_of(self, plugin: object) -> bool:
        """Return whether a plugin has the hooks in the index. A missing decision hook would permit every call."""
        if plugin is None:
            return True
        from neuroscript.tools.hookspecs import Plugins

        return Plugins([plugin]).options == self.entry.hooks

    def tool(self, name: str) -> ToolImplementation:
        """Return one of its tools.

        Raises:
            PluginError: The tool cannot be loaded.
        """
        found: ToolImplementation | None = next((each for each in self.loaded().tools if each.name == name), None)
        if found is None:
            raise self.stale(name)
        return found

    def stale(self, name: str) -> PluginError:
        """Return the error for a tool that does not match its index, and discard the cached index."""
        with self._lock:
            if name not in self._stale:
                forget(self.distribution)
                self._stale[name] = PluginError(str(self.distribution), f"{name} {STALE}", code="plugin.index")
                self._report(self._stale[name])
            return _again(self._stale[name])


def _again(error: PluginError) -> PluginError:
    """Return a copy of an error, because an exception that is raised repeatedly collects the frames of all calls."""
    copy = PluginError(error.distribution, error.reason, code=error.code)
    copy.__cause__ = error.__cause__
    return copy


class ToolOrigin(Protocol):
    """What provides a tool that is known only from an index: a `Source`, or a file that only workers import.

    Attributes:
        entry: Its index.
        is_pinned: Whether every tool must match its index exactly.
        isolation: The settings of the workers that import it, if this process never does.
    """

    @property
    def entry(self) -> IndexedEntry: ...

    @property
    def is_pinned(self) -> bool: ...

    @property
    def isolation(self) -> Any: ...

    def tool(self, name: str) -> ToolImplementation:
        """Return one of its tools, or raise a `PluginError`."""

    def stale(self, name: str) -> PluginError:
        """Return the error for a tool that does not match its index."""


class Deferred:
    """A tool that is known only from its index.

    Attributes:
        name: Its canonical name.
        fingerprint: The fingerprint of its definition in the index.
        source: What provides it.
    """

    def __init__(self, source: ToolOrigin, tool: IndexedTool) -> None:
        self.name = tool.name
        self.fingerprint = tool.fingerprint
        self.source = source
        self._tool = tool
        self._found: ToolImplementation | None = None

    @cached_property
    def policy(self) -> ToolPolicy:
        """The policy in the index."""
        try:
            return ToolPolicy(**self._tool.policy)
        except Exception:  # a JSON file may contain anything
            raise self.source.stale(self.name) from None

    @cached_property
    def spec(self) -> ToolSpec:
        """The spec in the index."""
        from neuroscript.tools.serialization import spec_from_data

        try:
            spec = spec_from_data(self._tool.spec)
        except Exception:
            raise self.source.stale(self.name) from None
        if spec.full_name != self.name:
            raise self.source.stale(self.name)
        return spec

    @property
    def isolation(self) -> Any:
        """The settings of the workers that import its code, if this process never does, or None."""
        return self.source.isolation

    def load(self) -> ToolImplementation:
        """Return the loaded tool; of a tool that this process does not import, return all but the function.

        Raises:
            PluginError: It cannot be loaded, its needs differ from the index, or its spec differs from one already
                shown.
        """
        if self.isolation is not None:
            return self.implementation
        if self._found is None:
            tool = self.source.tool(self.name)
            if tool.policy != self.policy or not self._matches_index(tool) or not self._has_same_instances(tool):
                raise self.source.stale(self.name)
            self._found = tool
        return self._found

    def _matches_index(self, tool: ToolImplementation) -> bool:
        """Return whether a tool matches its index; checked only if it is pinned or its spec has been used."""
        if not self.source.is_pinned and "spec" not in self.__dict__:
            return True
        from neuroscript.tools.fingerprints import fingerprint

        return fingerprint(tool) == self.fingerprint

    def _has_same_instances(self, tool: ToolImplementation) -> bool:
        """Return whether the index names the arguments with instances, because no others would be created."""
        if not self._tool.instances and all(arg.cls is None and not arg.nested for arg in tool.spec.args):
            return True
        from neuroscript.tools.instance_makers import instance_names

        return instance_names(tool.spec) == self._tool.instances

    def _with_class(self, name: str) -> ArgSpec | None:
        """Return the spec of an argument of the loaded tool, or None if it cannot be loaded."""
        try:
            return next(arg for arg in self.load().spec.args if arg.name == name)
        except PluginError:
            return None

    @cached_property
    def implementation(self) -> ToolImplementation:
        """The tool with a function that loads it on the first call."""
        if self.isolation is not None:
            return ToolImplementation(self.spec, IsolatedTool(self), self.policy)
        if self._found is not None:
            return self._found
        from neuroscript.spec.instances import plain_result, share_plain_result

        kind = LazyCoroutineTool if self._tool.is_coroutine else LazyTool
        if self.spec.returns is not None:
            share_plain_result(self.spec, lambda result: plain_result(self.load().spec, result))
        classes = {name: partial(self._with_class, name) for name in self._tool.instances}
        return ToolImplementation(self.spec, kind(self), self.policy, classes=classes)


class LazyTool:
    """The function of a tool that is loaded on the first call.

    Attributes:
        listed: The tool.
    """

    def __init__(self, tool: Deferred) -> None:
        self.listed = tool
        self.__signature__ = positional_signature(["rt", *(arg.name for arg in tool.spec.args)], tool.spec.variadic)

    def __call__(self, rt: object, *values: Any) -> Any:
        return self._loaded().func(rt, *values)

    def _loaded(self) -> ToolImplementation:
        try:
            return self.listed.load()
        except PluginError as error:
            raise failure(self.listed.name, error) from error


class LazyCoroutineTool(LazyTool):
    """The coroutine variant of `LazyTool`."""

    async def __call__(self, rt: object, *values: Any) -> Any:
        return await self._loaded().func(rt, *values)


class IsolatedTool(LazyTool):
    """The function of a tool that this process does not import; an engine that isolates it calls it in a worker."""

    def __call__(self, rt: object, *values: Any) -> Any:
        raise ToolFailed(
            f"{NOT_IMPORTED}; call the tool through an engine whose policy isolates it",
            tool=self.listed.name,
            code="plugin.isolated",
            retry="host",
        )


def tools(sources: Iterable[ToolOrigin]) -> tuple[Deferred, ...]:
    """Return the tools of entry points without importing them."""
    return tuple(Deferred(source, tool) for source in sources for tool in source.entry.tools)


def plugins(sources: Iterable[Source]) -> tuple[object, ...]:
    """Return the hook plugins of entry points without importing them; see `LazyPlugin`.

    Raises:
        PluginError: An index contains an unknown hook.
    """
    return tuple(filter(None, map(_plugin, sources)))


def unused_hooks(sources: Iterable[Source]) -> PluginError | None:
    """Return the error that names the hooks of isolated entry points, which are not used, or None if there are none."""
    isolated = [source for source in sources if source.isolation is not None]
    hooks = [hook for source in isolated for hook in sorted(source.entry.hooks) if hook != TOOLSETS]
    if not hooks:
        return None
    text = f"its code is isolated, so its hooks, which would run in the host, are not used: {', '.join(hooks)}"
    return PluginError(str(isolated[0].distribution), text, code="plugin.isolated")


def _plugin(source: Source) -> object:
    """Return the plugin of an entry point, or None if its only hook is the one for toolsets.

    Raises:
        PluginError: The index contains an unknown hook.
    """
    if source.entry.hooks.keys() <= {TOOLSETS}:
        return None
    from neuroscript.tools.hookspecs import ARGUMENTS, hookimpl

    if not source.entry.hooks.keys() <= ARGUMENTS.keys():
        raise source.stale(source.entry.plugin)
    plugin: LazyPlugin = type(source.entry.plugin, (LazyPlugin,), {})(source)
    for hook, places in source.entry.hooks.items():
        if hook != TOOLSETS:
            setattr(plugin, hook, hookimpl(plugin.later(hook, ARGUMENTS[hook]), **places))
    return plugin


class LazyPlugin:
    """A hook plugin that is loaded when one of its hooks is first needed for a call.

    It is then notified of the tools that were registered earlier; in an engine without calls it is never notified. If
    it cannot be loaded, its decision hook refuses calls, and its observers fail without consequences.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._functions: Mapping[str, Callable[..., Any]] | None = None
        self._notifications: list[tuple[Any, ...]] = []
        self._lock = RLock()

    def later(self, hook: str, names: tuple[str, ...]) -> Callable[..., Any]:
        """Return a placeholder function for one of its hooks."""
        from neuroscript.tools.hookspecs import CLOSED, REGISTERED

        def called(*arguments: Any) -> Any:
            if self._functions is None and hook == REGISTERED:
                self._notifications.append(arguments)
            elif self._functions is not None or hook != CLOSED:
                return self._loaded()[hook](*arguments)
            return None

        called.__signature__ = positional_signature([*names])  # type: ignore[attr-defined]
        return called

    def _loaded(self) -> Mapping[str, Callable[..., Any]]:
        with self._lock:
            if self._functions is None:
                from neuroscript.tools.hookspecs import REGISTERED, Plugins

                found = Plugins([self._source.loaded().plugin])
                self._functions = {hook: next(iter(found.of(hook).values())) for hook in found.options}
                for arguments in self._notifications:
                    with suppress(Exception):  # failures of observers are ignored
                        self._functions[REGISTERED](*arguments)
        return self._functions
