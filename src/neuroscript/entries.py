"""The tools of an engine, by any spelling of their names, each with its line under a policy; and what they share.

Source: contract section 2.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Final
from weakref import WeakSet

import attrs

from neuroscript.binding import bound
from neuroscript.compiled import Compiled, compiled
from neuroscript.display import shown
from neuroscript.errors import CallError, LimitError, PluginError, PolicyError, ToolNotFound
from neuroscript.frames import CallFrame
from neuroscript.host import Host, exact_variables
from neuroscript.lent import CallRuntime, CountedRuntime
from neuroscript.line import Line
from neuroscript.names import MAX_SPELLING_CHARS, canonical
from neuroscript.policy import ExecutionPolicy
from neuroscript.registry import HOST, Listed, Registry, failure, implementation, loaded
from neuroscript.running import drive
from neuroscript.runtime import ToolInfo
from neuroscript.threads import Threads
from neuroscript.tools import ToolImplementation
from neuroscript.walk import Coercion, type_name

DEEPEST: Final = 16
"""How many calls may stand in each other where no limit says it."""


class Entry:
    """A tool that may be called: its line, and the line as a function, which is compiled when it is first wanted."""

    def __init__(self, line: Line, threads: Threads) -> None:
        self.line = line
        self._threads = threads
        self._makers: dict[bool, Callable[[CallFrame], Compiled]] = {}

    def function(self, by_name: bool, root: CallFrame) -> Compiled:
        """Return the line as a function of arguments in order, or by name.

        Args:
            root: Where its calls from outside stand.
        """
        maker = self._makers.get(by_name)
        if maker is None:
            careful = self._careful(by_name)
            direct = self.line.is_direct
            maker = self._makers[by_name] = (
                compiled(self.line, careful, by_name) if direct else partial(_from_outside, careful)
            )
        return maker(root)

    def _careful(self, by_name: bool) -> Compiled:
        """Return the way through the steps, as a function of the same form as a compiled line."""
        line, threads = self.line, self._threads
        spec, coercion = line.tool.spec, line.coercion

        def unwatched(given: object, frame: CallFrame) -> Any:
            if frame.session.secrets is not None:
                return careful(given, frame)
            return drive(line.steps(bound(spec, coercion, given, by_name=by_name), frame), threads)

        def careful(given: object, frame: CallFrame) -> Any:
            values = line.bind(frame, given, by_name)
            return drive(line.steps(values, frame, line.repairs(given, values)), threads)

        return unwatched if line.gate is None else careful


def _from_outside(careful: Compiled, root: CallFrame) -> Compiled:
    def line(given: object, frame: CallFrame = root) -> Any:
        return careful(given, frame)

    return line


@attrs.define(eq=False, repr=False)
class Moment:
    """The tools between two changes of those that were there; what is only added belongs to it too.

    A call keeps to the moment in which it began, with all calls within it.

    Attributes:
        registry: The tools.
        plugins: What some of them come from: it has to last as long as calls of this moment.
    """

    registry: Registry
    plugins: tuple[object, ...] = ()


class World:
    """What all sessions of one engine share, whatever their policies are.

    Attributes:
        host: What the host lends.
        coercion: The terms on which arguments are taken.
        secrets: The secrets that the engine knows, an `EngineSecrets`; None as long as there are none.
        moment: All tools, until some of them change or go.
        threads: The threads of the engine.
        sessions: The sessions that somebody still holds.
        views: The tools as policies let them be called.
        running: The calls that are carried out in steps.
        is_watched: Whether every call is told to somebody.
        spill: Which results for models go to files of the sandbox, a `Spill`; None where none does.
        is_closed: Whether no further call begins.
        is_over: Whether calls that have not ended are left behind.
    """

    def __init__(self, host: Host, coercion: Coercion, policy: ExecutionPolicy, **watching: Any) -> None:
        self.host = host
        self.coercion = coercion
        self.secrets = _secrets_of(host, policy)
        self.moment = Moment(Registry())
        self.threads = Threads()
        self.sessions: WeakSet[Any] = WeakSet()
        self.views: WeakSet[Entries] = WeakSet()
        self.running: set[CallFrame] = set()
        self.is_watched = any(watching.values())
        self.spill: Any = None
        self.plugin_errors: list[PluginError] = []
        self.is_closed = False
        self.is_over = False
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        self._sandbox: Any = None
        self._watching = watching
        self._watch: Any = None
        if host.sandbox_dir is not None:
            self._sandbox = self._opened()

    @property
    def registry(self) -> Registry:
        """All tools, as they are now."""
        return self.moment.registry

    def join(self, session: Any) -> None:
        """Count a new session among those that are told when tools change."""
        with self._lock:
            self.sessions.add(session)
            session.forget()

    def register(
        self,
        added: tuple[Listed, ...],
        origin: str,
        aliases: Mapping[str, str] = MappingProxyType({}),
        plugins: tuple[object, ...] = (),
    ) -> None:
        """Add tools, and have the hooks of plugins asked and told from the next call on.

        Raises:
            RegistryError: A name is taken. Neither a tool nor a plugin has been added then.
            PluginError: One of *plugins* is none, or was added before; the same holds.
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
        """Put tools in the place of all that *origin* has brought: all of them, or a `RegistryError` and none.

        Calls that have begun keep what was there, with all calls within them; no other meets it again.
        """
        with self._lock:
            self.moment = Moment(self.registry.without(origin).with_tools(added, origin, aliases))
            for session in tuple(self.sessions):
                session.forget()
        self._told(added, origin)

    def hold(self, plugins: Iterable[object]) -> None:
        """Keep what plugins have loaded as long as calls that may use it."""
        self.moment.plugins = tuple(plugins)

    def _told(self, added: tuple[Listed, ...], origin: str) -> None:
        if self._watching.get("hooks"):
            for tool in added:
                with suppress(PluginError):  # which is listed
                    self.watch.registered(ToolInfo(tool.spec, tool.policy, origin), origin)

    def _hooks_with(self, plugins: tuple[object, ...]) -> Any:
        from neuroscript.hooks import Hooks

        known = self._watching.get("hooks")
        return Hooks((*(() if known is None else known.plugins), *plugins))

    def _listen(self, hooks: Any) -> None:
        self._watching["hooks"] = hooks
        if self._watch is not None:
            self._watch.listen(hooks)
        self.is_watched = self.is_watched or bool(hooks)

    def _forget(self) -> None:
        """Make the lines of all tools anew, for what stands before them has changed."""
        for view in tuple(self.views):
            view.forget()
        for session in tuple(self.sessions):
            session.forget()

    @property
    def watch(self) -> Any:
        """Who is told of calls; made when it is first needed."""
        if self._watch is None:
            from neuroscript.watch import Watch

            with self._lock:
                self._watch = self._watch or Watch(self.host, redactor=lambda: self.redactor, **self._watching)
        return self._watch

    def warn(self, tool: str, name: str, text: str) -> None:
        """Tell the host's logger once in the life of the engine what callers of *name* have to change."""
        with self._lock:
            is_new = name not in self._warned
            self._warned.add(name)
        if is_new:
            with suppress(Exception):  # whether the log works is no affair of the call
                self.host.logger_of(tool).warning("%s", text)

    @property
    def redactor(self) -> Any:
        """Hides every secret that the engine knows; None as long as there are none."""
        return None if self.secrets is None else self.secrets.redactor

    def known_secrets(self) -> Any:
        """Return the secrets that the engine knows, an `EngineSecrets`; an empty one where there were none."""
        if self.secrets is None:
            from neuroscript.engine_secrets import EngineSecrets

            with self._lock:
                self.secrets = self.secrets or EngineSecrets(Host(), ExecutionPolicy())
        return self.secrets

    @property
    def sandbox(self) -> Any:
        """The sandbox; that of a host which names none is opened when it is first needed.

        Raises:
            SandboxError: It can not be used.
        """
        if self._sandbox is None:
            with self._lock:
                self._sandbox = self._sandbox or self._opened()
        return self._sandbox

    def _opened(self) -> Any:
        from neuroscript.sandbox import Sandbox

        return Sandbox(self.host.directory())

    def close(self, left: tuple[str, ...]) -> None:
        """Leave behind what still runs, stop the threads, close the sandbox, and tell whoever watches."""
        already, self.is_closed, self.is_over = self.is_over, True, True
        self.threads.close()
        with self._lock:
            if self._sandbox is not None:
                self._sandbox.close()
        if self.is_watched and not already:
            self.watch.close(left)


def _secrets_of(host: Host, policy: ExecutionPolicy) -> Any:
    """Return the secrets that an engine knows from the start, or None where there are none."""
    if not host.secrets and not exact_variables(policy):
        return None
    from neuroscript.engine_secrets import EngineSecrets

    secrets = EngineSecrets(host, policy)
    return None if secrets.redactor.is_empty else secrets


class Entries:
    """The tools of an engine as one policy lets them be called.

    Attributes:
        world: What does not depend on the policy.
        policy: What the host permits.
        depth: How deep calls may stand in each other.
    """

    def __init__(self, world: World, policy: ExecutionPolicy) -> None:
        self.world = world
        self.policy = policy
        self.depth: int = policy.least("depth", DEEPEST)
        self._is_gated = world.is_watched or policy.counts
        self._entries: dict[str, Entry] = {}
        self._gates: dict[str, Any] = {}
        self._infos: tuple[Registry, Mapping[str, ToolInfo]] = (Registry(), MappingProxyType({}))
        world.views.add(self)

    def narrowed(self, policy: ExecutionPolicy | None) -> Entries:
        """Return the same tools under a policy that is within this one; None is this one."""
        return self if policy is None else Entries(self.world, policy.inside(self.policy))

    def forget(self) -> None:
        """Make the lines of all tools anew when they are next called, for what stands before them has changed."""
        self._is_gated = self.world.is_watched or self.policy.counts
        self._gates = {}
        self._entries = {}  # last: whoever puts a line into this one finds the gates of now

    @cached_property
    def secrets(self) -> Any:
        """The secrets of the host that can be guessed and that this policy permits to read, a `SecretSet`."""
        return self.world.secrets.granted(self.policy)

    @property
    def count(self) -> int:
        """How many tools there are."""
        return len(self.world.registry.tools)

    def of(self, spelling: str | None, name: object, registry: Registry) -> Entry:
        """Return the tool that a spelling means, if it may be called.

        Args:
            spelling: The name as a text, or None where *name* is none.
            registry: The tools; a call that began before they changed still has the former ones.

        Raises:
            ToolNotFound: There is none, or the host does not permit any of that name.
            PolicyError: It needs what the host does not give.
            ToolFailed: Its distribution can not be loaded.
        """
        if spelling is None:
            raise ToolNotFound(f"<{type_name(name)}>")
        asked = canonical(spelling)
        listed = registry.named(asked)
        if listed is None:
            raise ToolNotFound(shown(spelling), self._near(spelling, registry))
        try:
            tool = self._admitted(listed, registry)
        except PluginError as error:
            raise failure(listed.name, error) from error
        if asked != tool.name or tool.spec.deprecated:
            self._warn(tool, asked)
        entries = self._entries  # which are forgotten, with what is put into them, if something changes meanwhile
        entry = entries.get(tool.name)
        if entry is None or entry.line.tool is not tool:
            gate = self.gate(tool) if self._is_gated else None
            runtime = CallRuntime if gate is None else CountedRuntime
            line = Line(tool, self.world.coercion, self.policy, runtime, gate)
            entry = entries[tool.name] = Entry(line, self.world.threads)
        return entry

    def _admitted(self, listed: Listed, registry: Registry) -> ToolImplementation:
        """Return a tool that may run, loaded where it was not."""
        refused = self._refusal(listed, registry)
        if refused is not None:
            raise refused
        return loaded(listed)

    def _permitted(self) -> Iterator[str]:
        """Return the names of the tools that may run."""
        registry = self.world.registry
        return (name for name in registry.tools if self._may_run(name, registry))

    def _near(self, spelling: str, registry: Registry) -> tuple[str, ...]:
        """Return at most three tools that may run and are spelled like a name that no tool has."""
        if len(spelling) > MAX_SPELLING_CHARS:
            return ()
        return registry.near_names.near(spelling, lambda name: self._may_run(name, registry))

    def _may_run(self, name: str, registry: Registry) -> bool:
        try:
            return self._refusal(registry.tools[name], registry) is None
        except PluginError:  # which is listed
            return False

    def _refusal(self, tool: Listed, registry: Registry) -> PolicyError | None:
        """Return why a tool may not run at all: what is denied stays denied under a new name."""
        refused = self.policy.verdict(tool.name, tool.policy)
        if refused is None and registry.aliases:
            denials = (self.policy.denial(old, tool.name) for old in registry.old_names(tool.name))
            refused = next((each for each in denials if each is not None), None)
        return refused

    def _warn(self, tool: ToolImplementation, asked: str) -> None:
        if asked != tool.name:
            self.world.warn(tool.name, asked, f"{asked} is an old name of {tool.name}")
        if tool.spec.deprecated:
            self.world.warn(tool.name, tool.name, f"{tool.name} is deprecated: {tool.spec.deprecated}")

    def gate(self, tool: ToolImplementation) -> Any:
        """Return what stands before a tool, and tells what becomes of its calls."""
        gates = self._gates
        gate = gates.get(tool.name)
        if gate is None or gate.tool is not tool:
            from neuroscript.gate import Gate

            origin = self.world.registry.origins.get(tool.name, HOST)
            gate = gates[tool.name] = Gate(tool, origin, self.policy, self.world.watch)
        return gate

    def refused(self, frame: CallFrame, error: CallError, values: tuple[Any, ...] | None = None) -> CallError:
        """Tell whoever has to know that the call of *frame* was refused, and return *error*."""
        if not (self.world.is_watched or isinstance(error, (PolicyError, LimitError))):
            return error
        watch = self.world.watch
        with suppress(KeyError, PluginError):
            watch = self.gate(implementation(self.world.registry.tools[frame.tool]))
        told: CallError = watch.refused(frame, error, values)
        return told

    @property
    def infos(self) -> Mapping[str, ToolInfo]:
        """The tools that may be called, by canonical name, without their functions."""
        registry, infos = self._infos
        if registry is not self.world.registry:
            registry = self.world.registry
            known: dict[str, ToolInfo] = {}
            for name in sorted(self._permitted()):
                tool = registry.tools[name]
                with suppress(PluginError):  # which is listed
                    known[name] = ToolInfo(tool.spec, tool.policy, registry.origins[name])
            infos = MappingProxyType(known)
            self._infos = registry, infos
        return infos
