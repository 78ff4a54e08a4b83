"""State that all sessions of one engine share: the tools, the threads, the observers, the secrets and the sandbox."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Protocol, TypedDict, Unpack
from weakref import WeakSet

import attrs

from neuroscript.calls.steps import CallFrame
from neuroscript.coercion.context import CoercionSettings
from neuroscript.errors import PluginError
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.runtime.host import Host, exact_variables
from neuroscript.runtime.interfaces import ToolInfo
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import ListedTool, Registry

if TYPE_CHECKING:
    from neuroscript.audit.recording import Recording
    from neuroscript.calls.hooks import Hooks
    from neuroscript.calls.observers import Observers
    from neuroscript.calls.spill import Spill
    from neuroscript.calls.threads import Threads
    from neuroscript.engine.session import Session
    from neuroscript.flow.state import FileLabels, SessionFlow
    from neuroscript.isolation.pool import Pool
    from neuroscript.runtime.engine_secrets import EngineSecrets
    from neuroscript.runtime.records import AuditSink
    from neuroscript.runtime.redaction import Redactor
    from neuroscript.sandbox import Sandbox
    from neuroscript.state.shared_state import SharedState

    class Watching(TypedDict, total=False):
        """The observers of an engine's calls: the parameters of `Watch`."""

        sinks: tuple[AuditSink, ...]
        hooks: Hooks | None
        required: Literal["effects", "all", "none"]
        recording: Recording | None


@attrs.define(eq=False, repr=False)
class ToolsSnapshot:
    """The tools between two changes; tools that are only added belong to the same snapshot.

    A call keeps the snapshot in which it began, and so do all nested calls.

    Attributes:
        registry: The tools.
        plugins: The loaded plugins, which must last as long as calls of this snapshot.
    """

    registry: Registry
    plugins: tuple[object, ...] = ()


class View(Protocol):
    """The tools as one policy permits them."""

    def forget(self) -> None:
        """Compile the tools again when they are next called."""


class Shared:
    """State that all sessions of one engine share, regardless of their policies.

    Attributes:
        host: What the host provides.
        coercion: How arguments are coerced.
        secrets: The secrets that the engine knows, an `EngineSecrets`; None as long as there are none.
        moment: The current snapshot of the tools.
        sessions: The open sessions.
        views: The tools as policies permit them.
        running: The calls that are carried out in steps.
        is_watched: Whether calls have observers.
        spill: Which results for models are written to files of the sandbox, a `Spill` or None.
        files: The labels of the sandbox's files; None until a policy has rules about information flow.
        state: The database that this engine shares with other processes, or None.
        plugin_errors: Why plugins cannot be used.
        is_closed: Whether no further call begins.
        is_over: Whether calls that have not ended are abandoned.
    """

    def __init__(
        self, host: Host, coercion: CoercionSettings, policy: ExecutionPolicy, **watching: Unpack[Watching]
    ) -> None:
        self.host = host
        self.coercion = coercion
        self.secrets = _secrets_of(host, policy)
        self.moment = ToolsSnapshot(Registry())
        self.sessions: WeakSet[Session] = WeakSet()
        self.views: WeakSet[View] = WeakSet()
        self.running: set[CallFrame] = set()
        self.is_watched = any(watching.values())
        self.spill: Spill | None = None
        self.files: FileLabels | None = None
        self.state: SharedState | None = None
        self._own_state: SharedState | None = None
        self.plugin_errors: list[PluginError] = []
        self.is_closed = False
        self.is_over = False
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        self._sandbox: Sandbox | None = None
        self._threads: Threads | None = None
        self._pool: Pool | None = None
        self._owns_pool = True
        self._watching = watching
        self._watch: Observers | None = None
        if host.sandbox_dir is not None:
            self._sandbox = self._opened()

    @property
    def registry(self) -> Registry:
        """The current tools."""
        return self.moment.registry

    @property
    def threads(self) -> Threads:
        """The threads of the engine, made when something first has to wait."""
        if self._threads is None:
            from neuroscript.calls.threads import Threads

            with self._lock:
                self._threads = self._threads or Threads()
        return self._threads

    @property
    def pool(self) -> Pool:
        """The processes of isolated tools, which start when they are needed."""
        if self._pool is None:
            from neuroscript.isolation.pool import Pool

            with self._lock:
                self._pool = self._pool or Pool()
        return self._pool

    def use_pool(self, pool: Pool) -> None:
        """Run isolated tools in the processes of a pool that outlives this engine."""
        self._pool, self._owns_pool = pool, False

    def use_state(self, state: SharedState | str, namespace: str, opened: ExitStack) -> None:
        """Share state with other processes; what is opened here for an address is closed with the engine.

        Raises:
            SpecError: If the database cannot be used.
        """
        if isinstance(state, str):
            from neuroscript.state.shared_state import SharedState

            state = self._own_state = opened.enter_context(SharedState(state, namespace=namespace))
        self.state = state

    def join(self, session: Session) -> None:
        """Add a session to those that are notified when tools change."""
        with self._lock:
            self.sessions.add(session)
            session._forget()

    def register(
        self,
        added: tuple[ListedTool, ...],
        origin: str,
        aliases: Mapping[str, str] = MappingProxyType({}),
        plugins: tuple[object, ...] = (),
    ) -> None:
        """Add tools and the hooks of plugins, which apply from the next call on.

        Raises:
            RegistryError: A name is taken. Neither a tool nor a plugin has been added then.
            PluginError: A plugin has no hooks, or was added before; nothing has been added then.
        """
        with self._lock:
            hooks = self._hooks_with(plugins) if plugins else None
            self.moment.registry = self.registry.with_tools(added, origin, aliases)
            if hooks is not None:
                self._listen(hooks)
                self._forget()
        self._told(added, origin)

    def exchange(
        self, added: tuple[ToolImplementation, ...], origin: str, aliases: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Replace all tools of *origin*: all of them, or none and a `RegistryError`.

        Calls that have begun keep the former tools, with all nested calls; other calls see only the new ones.
        """
        with self._lock:
            self.moment = ToolsSnapshot(self.registry.without(origin).with_tools(added, origin, aliases))
            for session in tuple(self.sessions):
                session._forget()
        self._told(added, origin)

    def hold(self, plugins: Iterable[object]) -> None:
        """Retain what plugins have loaded as long as calls may use it."""
        self.moment.plugins = tuple(plugins)

    def _told(self, added: tuple[ListedTool, ...], origin: str) -> None:
        if self._watching.get("hooks"):
            for tool in added:
                with suppress(PluginError):  # it is in plugin_errors
                    self.watch.registered(ToolInfo(tool.spec, tool.policy, origin), origin)

    def _hooks_with(self, plugins: tuple[object, ...]) -> Hooks:
        from neuroscript.calls.hooks import Hooks

        known = self._watching.get("hooks")
        return Hooks((*(() if known is None else known.plugins), *plugins))

    def _listen(self, hooks: Hooks) -> None:
        self._watching["hooks"] = hooks
        if self._watch is not None:
            self._watch.listen(hooks)
        self.is_watched = self.is_watched or bool(hooks)

    def _forget(self) -> None:
        """Compile all tools again, because hooks have changed."""
        for view in tuple(self.views):
            view.forget()
        for session in tuple(self.sessions):
            session._forget()

    @property
    def watch(self) -> Observers:
        """The observers of calls, created when they are first needed."""
        if self._watch is None:
            from neuroscript.calls.observers import Observers

            with self._lock:
                self._watch = self._watch or Observers(self.host, redactor=lambda: self.redactor, **self._watching)
        return self._watch

    def warn(self, tool: str, name: str, text: str) -> None:
        """Log a warning for callers of *name*, once in the life of the engine."""
        with self._lock:
            is_new = name not in self._warned
            self._warned.add(name)
        if is_new:
            with suppress(Exception):  # whether the log works does not affect the call
                self.host.logger_of(tool).warning("%s", text)

    @property
    def redactor(self) -> Redactor | None:
        """Hides every secret that the engine knows; None as long as there are none."""
        return None if self.secrets is None else self.secrets.redactor

    def known_secrets(self) -> EngineSecrets:
        """Return the secrets that the engine knows, an `EngineSecrets`, created if there were none."""
        if self.secrets is None:
            from neuroscript.runtime.engine_secrets import EngineSecrets

            with self._lock:
                self.secrets = self.secrets or EngineSecrets(Host(), ExecutionPolicy())
        return self.secrets

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox; the default one is opened when it is first needed.

        Raises:
            SandboxError: It cannot be used.
        """
        if self._sandbox is None:
            with self._lock:
                self._sandbox = self._sandbox or self._opened()
        return self._sandbox

    def new_flow(self) -> SessionFlow:
        """Return what a new session knows about information flow; the labels of files are those of the engine."""
        from neuroscript.flow.state import FileLabels, SessionFlow

        with self._lock:
            self.files = self.files or FileLabels()
        return SessionFlow(self.files)

    def _opened(self) -> Sandbox:
        from neuroscript.sandbox import Sandbox

        return Sandbox(self.host.directory())

    def close(self, left: tuple[str, ...]) -> None:
        """Abandon what still runs, stop the threads, close the sandbox, and notify the observers."""
        already, self.is_closed, self.is_over = self.is_over, True, True
        with self._lock:
            threads = self._threads
            pool = self._pool
        if threads is not None:
            threads.close()
        if pool is not None and self._owns_pool:
            pool.close()
        with self._lock:
            if self._sandbox is not None:
                self._sandbox.close()
        if self.is_watched and not already:
            self.watch.close(left)
        if self._own_state is not None:
            self._own_state.close()


def _secrets_of(host: Host, policy: ExecutionPolicy) -> EngineSecrets | None:
    """Return the secrets that an engine knows from the start, or None if there are none."""
    if not host.secrets and not exact_variables(policy):
        return None
    from neuroscript.runtime.engine_secrets import EngineSecrets

    secrets = EngineSecrets(host, policy)
    return None if secrets.redactor.is_empty else secrets
