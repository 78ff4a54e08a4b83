"""The engine: what tools there are, what the host provides and permits, and how everything is closed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from itertools import count
from threading import RLock
from time import monotonic, sleep
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal

from neuroscript.coercion.context import LAX, CoercionSettings, SizeLimits
from neuroscript.coercion.parameters import (
    BY_NAME,
    DURATION,
    FLAG,
    PATH,
    STRING,
    STRINGS,
    Form,
    as_tuple,
    collection,
    instance,
    object_form,
    one_of,
    optional,
    require,
    sequence,
)
from neuroscript.engine.entries import ToolView
from neuroscript.engine.session import Session
from neuroscript.engine.shared import Shared
from neuroscript.errors import PluginError, RegistryError, SpecError
from neuroscript.io.text import quote_path
from neuroscript.policy.execution_policy import POLICY, ExecutionPolicy
from neuroscript.runtime.host import Host
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import HOST, TOOLS, ListedTool, Toolset, implementation, load_tool

if TYPE_CHECKING:
    from neuroscript.audit.recording import Recording
    from neuroscript.calls.spill import Spill
    from neuroscript.config.lock_file import Lock
    from neuroscript.discovery.catalog import DistributionOffer
    from neuroscript.discovery.local_plugins import LoadedPlugin
    from neuroscript.engine.shared import Watching
    from neuroscript.isolation.imports import ConfinedImports
    from neuroscript.isolation.pool import WorkerInfo
    from neuroscript.policy.ledger import Ledger
    from neuroscript.policy.limits import Limits
    from neuroscript.runtime.records import AuditSink, CallRecord
    from neuroscript.state.shared_state import SharedState

CLOSE_GRACE_SECONDS: Final = 5.0
"""Seconds that calls in flight get to end when an engine is closed."""

ENGINE_SESSION_ID: Final = "engine"
"""The id of the engine's own session."""

POLL_SECONDS: Final = 0.002
"""Seconds between two checks of what is in flight."""


class Engine(Session):
    """Runs tools: it finds a tool, checks permissions, coerces the arguments, calls the function and checks the result.

    Args:
        policy: What tools may do; by default only tools that need nothing may run.
        host: What the host provides to tools; each engine creates its own default.
        toolsets: The host's own tools: one `Toolset`, or a list of toolsets and tools.
        plugins: ``"installed"`` for the toolsets of every installed distribution, ``"none"``, or the names of the
            distributions to load, in order. A broken distribution is listed in `plugin_errors` and does not affect the
            others. A distribution is imported when one of its tools is first called.
        without: Names of distributions and of entry points to leave out, whatever *plugins* says.
        strict: Whether a broken distribution is an error; all of them are checked before it is raised. Problems that
            appear only when a tool is loaded are found by `preload`.
        lock: A `neuroscript.Lock`: installed distributions are loaded only if they match it, and the others are listed
            in `plugin_errors`. A tool that differs from its lock when it is loaded is not called.
        mode: ``"lax"`` repairs what models and command lines send, ``"strict"`` accepts only exact types.
        size_limits: How large the arguments of one call may be.
        adapters: Functions that convert instances of other classes to built-ins, by class; for trusted callers.
        hooks: Plugins that provide tools, may refuse calls or observe them, see `neuroscript.tools.hookspecs`.
        audit: An audit log that stores a record of each call, or several. A path opens a `SqliteAudit` for the suffixes
            ``.db``, ``.sqlite`` and ``.sqlite3``, and otherwise a `FileAudit`.
        audit_required: Which calls are refused when an audit log cannot store their records: those of tools with the
            effects ``writes``, ``deletes``, ``exec`` and ``net`` (``"effects"``), ``"all"`` or ``"none"``.
        recording: A `Recording` or its path; it stores the content of calls, for `neuroscript.testing.replay.replay`.
        spill: A `neuroscript.Spill`: which results of `execute` are so large that they are written to a file of the
            sandbox.
        state: A `neuroscript.SharedState` that the engines of several processes share, or the address of its database.
        namespace: The name of the application in that database, if *state* is an address.

    Raises:
        RegistryError: Two of *toolsets*, or of the toolsets of *hooks*, use the same name.
        PluginError: One of *hooks* is not a plugin; or *strict* is set and distributions cannot be used, see its
            ``errors``.
        SpecError: Parameters have the wrong type or value; each problem is listed.
        AuditError: The file of an audit log is not an audit log.
        OSError: The file of an audit log cannot be opened.
        SandboxError: The host's ``sandbox_dir`` cannot be used.

    >>> from neuroscript import Engine
    >>> with Engine() as engine:
    ...     engine.call("math.add", (2, " 3 "))
    5.0
    """

    _is_engine = True

    def __init__(
        self,
        *,
        policy: ExecutionPolicy | None = None,
        host: Host | None = None,
        toolsets: Toolset | ToolImplementation | Iterable[Toolset | ToolImplementation] = (),
        plugins: Literal["installed", "none"] | Collection[str] = "installed",
        without: Collection[str] = (),
        strict: bool = False,
        lock: Lock | None = None,
        mode: Literal["lax", "strict"] = "lax",
        size_limits: SizeLimits = LAX.sizes,
        adapters: Mapping[type, Callable[[Any], object]] | None = None,
        hooks: Iterable[object] = (),
        audit: AuditSink | str | os.PathLike[str] | Iterable[AuditSink | str | os.PathLike[str]] = (),
        audit_required: Literal["effects", "all", "none"] = "effects",
        recording: Recording | str | os.PathLike[str] | None = None,
        spill: Spill | None = None,
        state: SharedState | str | None = None,
        namespace: str = "default",
    ) -> None:
        toolsets = (toolsets,) if isinstance(toolsets, (Toolset, ToolImplementation)) else as_tuple(toolsets)
        plugged, sinks = as_tuple(hooks), _sinks(audit)
        given = {"policy": policy, "host": host, "toolsets": toolsets, "plugins": plugins, "without": without}
        given |= {"strict": strict, "lock": lock, "mode": mode, "size_limits": size_limits, "adapters": adapters}
        given |= {"hooks": plugged, "audit": sinks, "audit_required": audit_required}
        given |= {"recording": recording, "spill": spill, "state": state, "namespace": namespace}
        require("Engine", **{name: (value, FORMS[name]) for name, value in given.items()})
        coercion = CoercionSettings(mode, size_limits, tuple((adapters or {}).items()))
        host, policy = host or Host(), policy or ExecutionPolicy()
        with ExitStack() as opened:
            shared = Shared(host, coercion, policy, **_watching(plugged, sinks, audit_required, recording, opened))
            shared.spill = spill
            if state is not None:
                shared.use_state(state, namespace, opened)
            super().__init__(ToolView(shared, policy), ENGINE_SESSION_ID, None, _ledger(policy.layers, host, None))
            self._plugins: dict[str, LoadedPlugin] = {}
            self._loading = RLock()
            for toolset in toolsets:
                self.register(toolset)
            if plugged:
                shared.register(_brought(plugged), HOST)
            if plugins != "none":
                self._load_installed(plugins, without, strict, lock)
            opened.pop_all()  # from now on the engine closes them

    def session(
        self,
        *,
        variables: Mapping[str, Any] | None = None,
        id: str = "",
        policy: ExecutionPolicy | None = None,
        host: Host | None = None,
    ) -> Session:
        """Return a session for one caller, with its own variables, handles and ledger, over the same tools.

        Args:
            variables: Initial variables, in addition to those of the host.
            id: The id in records and approvals; by default a random id is generated. A session that is resumed later,
                perhaps by another process, must have the same id again.
            policy: What it permits; it can only narrow what the engine permits.
            host: The input, output, logger, prompter and progress of this caller; everything else, such as the sandbox,
                the secrets, the constants and the clock, comes from the engine's host.

        Raises:
            CoercionError: One of the variables is not plain data.
        """
        given = {"variables": variables, "id": id, "policy": policy, "host": host}
        require("session", **{name: (value, FORMS[name]) for name, value in given.items()})
        entries = self._entries.narrowed(policy)
        own = tuple(layer for layer in entries.policy.layers if layer not in self.policy.layers)
        return Session(entries, id, variables, _ledger(own, self.host, self.ledger), _lent(self.host, host))

    @property
    def plugin_errors(self) -> tuple[PluginError, ...]:
        """The errors of unusable plugins that have been found so far."""
        return tuple(self._shared.plugin_errors)

    def add_plugin_errors(self, *errors: PluginError) -> None:
        """Add the errors of plugins that other code loads to `plugin_errors`."""
        require("add_plugin_errors", errors=(errors, ERRORS))
        self._shared.plugin_errors.extend(errors)

    @property
    def refusals(self) -> tuple[CallRecord, ...]:
        """The latest refusals by policy or limits, oldest first; they are stored even without an audit log."""
        return tuple(self._shared.watch.refusals)

    @property
    def workers(self) -> tuple[WorkerInfo, ...]:
        """The worker processes of isolated tools that run now, with the layers that confine each."""
        return () if self._shared._pool is None else self._shared.pool.workers

    @property
    def unused_rules(self) -> tuple[str, ...]:
        """The patterns and names of its policy that match none of its tools, and the grants that no tool needs."""
        needs: list[str] = []
        for tool in self._shared.registry.tools.values():
            with suppress(PluginError):  # it is in plugin_errors
                needs += tool.policy.capabilities
        return (*self.policy.unmatched(self.tools, self.aliases), *map(str, self.policy.unused(needs)))

    def add_hooks(self, *plugins: object) -> None:
        """Add the tools and the hooks of more plugins, which take effect from the next call on.

        Raises:
            PluginError: One of them has no such hook, or was added before. Nothing is added then.
            RegistryError: One of their tools already exists. Nothing is added then.
        """
        self._shared.register(_brought(plugins), HOST, plugins=plugins)

    # Tools

    @property
    def tools(self) -> Mapping[str, ToolImplementation]:
        """All tools by canonical name: a read-only snapshot.

        A tool of an installed distribution is loaded when its function is called, see `preload`.
        """
        return Implementations(self._shared.registry.tools)

    @property
    def aliases(self) -> Mapping[str, str]:
        """The old names of tools, with their canonical names: a read-only snapshot."""
        return self._shared.registry.aliases

    def register(self, tools: ToolImplementation | Toolset, *, origin: str = "") -> None:
        """Add one tool, or all tools of a toolset with their old names.

        Args:
            origin: Who provides them; by default the origin of the toolset, or else the host.

        Raises:
            RegistryError: A name is taken. Nothing is added then.
            SpecError: One of them is to run in a worker, which cannot import its function. Nothing is added then.
        """
        require("register", tools=(tools, TOOLS), origin=(origin, STRING))
        if isinstance(tools, ToolImplementation):
            self._register((tools,), origin or HOST, {})
        else:
            self._register(tools.tools, origin or tools.origin or HOST, tools.aliases)

    def _register(self, tools: tuple[ToolImplementation, ...], origin: str, aliases: Mapping[str, str]) -> None:
        self._check_isolated(tools, origin, aliases)
        self._shared.register(tools, origin, aliases)

    def preload(self, pattern: str = "*") -> tuple[PluginError, ...]:
        """Load tools now instead of on their first call.

        Args:
            pattern: A pattern for their canonical names, for example ``fs.*``.

        Returns:
            The errors of tools that could not be loaded. Calls of these tools fail; the other tools work.
        """
        from fnmatch import fnmatchcase

        require("preload", pattern=(pattern, STRING))
        problems: dict[str, PluginError] = {}
        for name, tool in self._shared.registry.tools.items():
            if fnmatchcase(name, pattern):
                try:
                    load_tool(tool)
                except PluginError as error:
                    problems[str(error)] = error
        return tuple(problems.values())

    def load_plugin(self, plugin: str | os.PathLike[str] | object) -> str:
        """Add the tools of a plugin: a file, a package, a module or an object.

        A plugin is a module with one or several `Toolset` objects at its top level, or anything with a function
        ``register(registrar)``, which takes precedence. All of its tools are added, or none. A package is a directory
        with an ``__init__.py``; its modules import each other by relative imports, and are separate from other plugins
        with the same name. A file or package that the policy isolates is imported in confined processes alone.

        Returns:
            Its origin for `unload_plugin`. This is the path as it was passed, or the name of the module or of the
            object's class, with a number if another plugin has the same one.

        Raises:
            PluginError: It has neither a toolset nor such a function, or it fails.
            RegistryError: A name is taken, or the plugin was loaded before.
        """
        from neuroscript.discovery.local_plugins import origin_of

        with self._loading:
            if self._loaded(plugin) is not None:
                hint = "call reload_plugin to load its current version"
                raise RegistryError(f"already registered: {quote_path(origin_of(plugin))}; {hint}")
            loaded = self._read_plugin(plugin, self._unused(origin_of(plugin)))
            self._take(loaded, self._shared.register)
            return loaded.origin

    def load_plugins(self, directory: str | os.PathLike[str]) -> tuple[PluginError, ...]:
        """Load each Python file and each package in a directory, in the order of their names.

        Names that begin with ``_`` or ``.`` are left out. A broken plugin does not affect the others; its error is
        added to `plugin_errors`. So is a plugin, or the directory, that users other than this one and the system's
        could change (``plugin.unsafe``).

        Returns:
            The errors of plugins that could not be loaded.
        """
        from neuroscript.discovery.local_plugins import check_owner, plugin_files

        require("load_plugins", directory=(directory, PATH))
        problems: list[PluginError] = []
        try:
            for path in plugin_files(directory):
                try:
                    self.load_plugin(check_owner(path))
                except PluginError as error:
                    problems.append(error)
                except RegistryError as error:
                    problems.append(PluginError(quote_path(path), str(error)))
        except PluginError as error:
            problems.append(error)
        self._shared.plugin_errors += problems
        return tuple(problems)

    def reload_plugin(self, plugin: str | os.PathLike[str] | object) -> None:
        """Replace a plugin with its current version, atomically.

        Running calls continue with the functions and the other tools that existed when they began. No call is lost, and
        none uses both versions.

        Args:
            plugin: Its origin, its path, or the module or object that was loaded, which registers again.

        Raises:
            PluginError: It was not loaded, or cannot be loaded now; the tools are unchanged.
            RegistryError: A name is taken; the tools are unchanged.
        """
        with self._loading:
            old = self._known_plugin(plugin)
            self._take(self._read_plugin(old.plugin, old.origin, old.isolation), self._shared.exchange)

    def unload_plugin(self, plugin: str | os.PathLike[str] | object) -> None:
        """Remove the tools of a plugin; running calls end normally.

        Args:
            plugin: Its origin, its path, or the module or object that was loaded.

        Raises:
            PluginError: It was not loaded.
        """
        with self._loading:
            old = self._known_plugin(plugin)
            self._shared.exchange((), old.origin)
            del self._plugins[old.origin]
            self._shared.hold(self._plugins.values())

    def _read_plugin(self, plugin: Any, origin: str, isolation: Any = None) -> LoadedPlugin:
        """Return the tools of a plugin. A file that the policy isolates is imported in a confined process alone.

        Args:
            isolation: The settings of the workers that imported its former version, or None.
        """
        imports = self._confined_imports if isinstance(plugin, (str, os.PathLike)) else None
        if imports is not None:
            isolation = isolation or imports.of_file(plugin)
            if isolation is not None:
                return imports.plugin(plugin, origin, isolation)
        from neuroscript.discovery.local_plugins import load_plugin

        return load_plugin(plugin, origin)

    @property
    def _confined_imports(self) -> ConfinedImports | None:
        """Imports plugins in confined processes; None if the policy isolates nothing."""
        if not self.policy.isolates:
            return None
        from neuroscript.isolation.imports import ConfinedImports

        return ConfinedImports(self.policy, lambda: self._shared.pool)

    def _take(self, loaded: LoadedPlugin, take: Callable[..., None]) -> None:
        self._check_isolated(loaded.tools, loaded.origin, loaded.aliases)
        take(loaded.tools, loaded.origin, loaded.aliases)
        self._plugins[loaded.origin] = loaded
        self._shared.hold(self._plugins.values())

    def _check_isolated(self, tools: Iterable[ToolImplementation], origin: str, aliases: Mapping[str, str]) -> None:
        """Raise a `SpecError` if one of these tools is to run in a worker, which cannot import its function."""
        if not self.policy.isolates:
            return
        from neuroscript.isolation.tool_source import CannotImport, source_of

        problems = []
        for tool in tools:
            old = tuple(name for name, current in aliases.items() if current == tool.name)
            if self.policy.isolation_of(tool.name, origin, old=old) is not None:
                try:
                    source_of(tool)
                except CannotImport as error:
                    problems.append(str(error))
        if problems:
            raise SpecError("isolation", problems)

    def _loaded(self, plugin: object) -> LoadedPlugin | None:
        """Return what was loaded from a plugin, or None."""
        if isinstance(plugin, (str, os.PathLike)):
            file = os.path.abspath(plugin)  # noqa: PTH100
            paths = ((each, each.plugin) for each in self._plugins.values() if each.code is not None)
            return next((each for each, path in paths if os.path.abspath(path) == file), None)  # noqa: PTH100
        return next((each for each in self._plugins.values() if each.plugin is plugin), None)

    def _known_plugin(self, plugin: object) -> LoadedPlugin:
        named = self._plugins.get(plugin) if isinstance(plugin, str) else None
        found = named or self._loaded(plugin)
        if found is None:
            from neuroscript.discovery.local_plugins import origin_of

            reason = "no such plugin was loaded with load_plugin"
            raise PluginError(quote_path(origin_of(plugin)), reason, code="plugin.unknown")
        return found

    def _unused(self, origin: str) -> str:
        """Return an origin that no other plugin has."""
        taken = {*self._plugins, *self._shared.registry.origins.values()}
        numbered = (f"{origin} {number}" for number in count(2))
        return origin if origin not in taken else next(each for each in numbered if each not in taken)

    def _load_installed(
        self, plugins: str | Collection[str], without: Collection[str], strict: bool, lock: Lock | None
    ) -> None:
        from neuroscript.discovery.catalog import iter_offers

        problems = self._shared.plugin_errors
        only = None if isinstance(plugins, str) else plugins
        imports = self._confined_imports
        check, admit = (None, None) if lock is None else (lock.check, lock.admit)
        for found in iter_offers(only, without, self._shared.registry.origins, check, imports, admit):
            if isinstance(found, PluginError):
                problems.append(found)
            else:
                self._bring(found, lock is not None, imports)
        if lock is not None and only is None:
            problems += lock.missing(without)
        if strict and problems:
            self.close(0)
            raise PluginError("plugins", "; ".join(map(str, problems)), errors=problems)

    def _bring(self, found: DistributionOffer, is_pinned: bool, imports: ConfinedImports | None) -> None:
        """Add the tools and hooks of a distribution, all of them or none; hooks of isolated code are not used."""
        from neuroscript.discovery import lazy_tools as deferred

        problems, origin = self._shared.plugin_errors, str(found.distribution)
        sources = []
        for each in found.entries:
            isolation = None if imports is None else imports.of_entry(found.distribution, each.name)
            sources.append(deferred.Source(found.distribution, each, problems.append, is_pinned, isolation))
        try:
            hooks = deferred.plugins([each for each in sources if each.isolation is None])
            self._shared.register(deferred.tools(sources), origin, found.aliases, hooks)
        except PluginError:  # it is in plugin_errors
            return
        except RegistryError as error:  # an old name is taken, or takes one
            problems.append(PluginError(origin, f"cannot be used ({error})", code="plugin.duplicate"))
            return
        problems.extend(filter(None, [deferred.unused_hooks(sources)]))

    # Closing

    def close(self, grace: float = CLOSE_GRACE_SECONDS) -> tuple[str, ...]:
        """Refuse further calls, wait for running calls to end, and abandon those that do not.

        Args:
            grace: Maximum number of seconds to wait for running calls.

        Returns:
            The tools whose calls were abandoned, in order; their Runtimes stop working. Closing again returns none.
        """
        require("close", grace=(grace, DURATION))
        self._refuse_all()
        end = monotonic() + grace
        while (left := self._in_flight()) and monotonic() < end:
            sleep(POLL_SECONDS)
        return self._left_behind(left)

    async def aclose(self, grace: float = CLOSE_GRACE_SECONDS) -> tuple[str, ...]:
        """Close the engine as `close` does, without blocking the event loop."""
        from asyncio import sleep

        require("aclose", grace=(grace, DURATION))
        self._refuse_all()
        end = monotonic() + grace
        while (left := self._in_flight()) and monotonic() < end:
            await sleep(POLL_SECONDS)
        return self._left_behind(left)

    def _refuse_all(self) -> None:
        self._shared.is_closed = True
        for session in tuple(self._shared.sessions):
            session._refuse()

    def _in_flight(self) -> tuple[str, ...]:
        from neuroscript.engine.inflight import in_flight

        return () if self._shared.is_over else in_flight(self._shared)

    def _left_behind(self, left: tuple[str, ...]) -> tuple[str, ...]:
        for session in tuple(self._shared.sessions):
            session._end()
        self._shared.close(left)
        return left

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Implementations(Mapping[str, ToolImplementation]):
    """The tools of a registry, by canonical name."""

    def __init__(self, tools: Mapping[str, ListedTool]) -> None:
        self._tools = tools

    def __getitem__(self, name: str) -> ToolImplementation:
        return implementation(self._tools[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools


def _brought(plugins: tuple[object, ...]) -> tuple[ToolImplementation, ...]:
    """Return the tools that plugins with hooks provide."""
    from neuroscript.discovery.entry_points import toolsets_from_hooks

    return tuple(tool for toolset in toolsets_from_hooks(plugins) for tool in toolset)


def _sinks(audit: Any) -> Any:
    """Return one audit log or several as a tuple; anything else unchanged, so that a check refuses it."""
    is_one = isinstance(audit, (str, os.PathLike)) or hasattr(audit, "write")
    return (audit,) if is_one else as_tuple(audit)


def _watching(
    plugins: tuple[object, ...],
    audit: tuple[AuditSink | str | os.PathLike[str], ...],
    required: Literal["effects", "all", "none"],
    recording: Recording | str | os.PathLike[str] | None,
    opened: ExitStack,
) -> Watching:
    """Return the parameters of a `Watch`, none if there are no observers.

    Args:
        opened: Closes the files that are opened here if the engine cannot be created.
    """
    sinks = [_at_path(each, opened, _audit_at) for each in audit]
    recorder = _at_path(recording, opened, _recording_at)
    found: Watching = {}
    if plugins:
        from neuroscript.calls.hooks import Hooks

        found["hooks"] = Hooks(plugins)
    if sinks:
        found["sinks"], found["required"] = tuple(sinks), required
    if recorder is not None:
        found["recording"] = recorder
    return found


def _at_path(part: Any, opened: ExitStack, make: Callable[[Any], Any]) -> Any:
    """Return what *make* opens at a path; anything else is returned unchanged."""
    return opened.enter_context(closing(make(part))) if isinstance(part, (str, os.PathLike)) else part


def _audit_at(path: str | os.PathLike[str]) -> AuditSink:
    from neuroscript.audit.location import sink_at

    return sink_at(path)


def _recording_at(path: str | os.PathLike[str]) -> Recording:
    from neuroscript.audit.recording import Recording

    return Recording(path)


def _is_spill(value: object) -> bool:
    from neuroscript.calls.spill import Spill

    return isinstance(value, Spill)


def _is_state(value: object) -> bool:
    from neuroscript.state.shared_state import SharedState

    return isinstance(value, (str, SharedState))


# The form of each parameter

RECORDING: Final = object_form("a Recording", "write", "omit", "close")
SINK: Final = object_form("an audit log", "write", "close")
PLUGINS: Final = collection(STRING, "names of distributions")
FORMS: Final = {
    "policy": optional(POLICY),
    "host": optional(instance(Host, "write Host(...)")),
    "toolsets": collection(TOOLS, "Toolsets"),
    "plugins": Form(
        "'installed', 'none' or a collection of names of distributions",
        lambda plugins: isinstance(plugins, str) or not [*PLUGINS.problems("", plugins)],
        lambda plugins: not isinstance(plugins, str) or plugins in ("installed", "none"),
    ),
    "without": STRINGS,
    "strict": FLAG,
    "lock": optional(object_form("a Lock", "admit", "check", "missing")),
    "mode": one_of("lax", "strict"),
    "size_limits": instance(SizeLimits),
    "adapters": optional(
        Form(
            "a mapping of functions by class",
            lambda adapters: (
                isinstance(adapters, Mapping)
                and all(isinstance(kind, type) and callable(adapt) for kind, adapt in adapters.items())
            ),
        )
    ),
    "hooks": Form("a list or tuple of plugins", lambda hooks: isinstance(hooks, tuple)),
    "audit": collection(
        Form(f"a path, or {SINK.words}", lambda sink: PATH.accepts(sink) or SINK.accepts(sink)), "paths or audit logs"
    ),
    "audit_required": one_of("effects", "all", "none"),
    "recording": optional(
        Form(
            "a path or a Recording",
            lambda recording: PATH.accepts(recording) or RECORDING.accepts(recording),
        )
    ),
    "spill": optional(Form("a Spill", _is_spill, hint="write Spill(...)")),
    "state": optional(Form("a SharedState or the address of a database", _is_state)),
    "namespace": STRING,
    "variables": optional(BY_NAME),
    "id": STRING,
}
ERRORS: Final = sequence(instance(PluginError), "PluginErrors")


def _lent(host: Host, own: Host | None) -> Host:
    """Return a host with the caller's own parts of *own*, and all other parts of the engine's host."""
    if own is None:
        return host
    import attrs

    parts = ("logger", "stdin", "stdout", "stderr", "prompter", "progress")
    return attrs.evolve(host, **{part: getattr(own, part) for part in parts})


def _ledger(layers: tuple[ExecutionPolicy, ...], host: Host, above: Ledger | None) -> Ledger | None:
    """Return what counts for these layers, below the ledger *above*, or None if nothing is counted."""
    limits: list[Limits | None] = [
        layer.limits for layer in reversed(layers) if layer.limits is not None and not layer.limits.is_idle
    ]
    if not limits and above is None:
        return None
    from neuroscript.policy.ledger import Ledger

    ledger = above
    for each in limits or [None]:
        ledger = Ledger(each, host.clock, ledger)
    return ledger
