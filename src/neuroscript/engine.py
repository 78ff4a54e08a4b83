"""The engine: what is registered, what the host lends and permits, and how it all ends.

Source: contract sections 1 and 7.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Final, Literal

from neuroscript.entries import Entries, World
from neuroscript.errors import PluginError, RegistryError, SpecError
from neuroscript.host import Host
from neuroscript.policy import ExecutionPolicy
from neuroscript.record import AuditSink, CallRecord
from neuroscript.registry import HOST
from neuroscript.session import Session
from neuroscript.tools import ToolImplementation, Toolset
from neuroscript.walk import LAX, Coercion, SizeLimits

GRACE: Final = 5.0
"""Seconds that calls in flight are given to end when an engine is closed."""

OWN: Final = "engine"
"""What the session is called that the engine itself is."""

LOOK: Final = 0.002
"""Seconds between two looks at what is in flight."""


class Engine(Session):
    """Calls tools: finds them, asks whether they may run, fits their arguments, and keeps their results to their word.

    Args:
        policy: What tools may do; the default permits what needs nothing.
        host: What is lent to tools; each engine makes its own default.
        toolsets: The tools of the host itself.
        plugins: ``"installed"`` for the toolsets of every installed distribution, ``"none"``, or the names of those
            distributions that may be loaded. A broken one is listed in `plugin_errors` and stops no other.
        mode: ``"lax"`` repairs what models and command lines send, ``"strict"`` takes only exact types.
        size_limits: How large the arguments of one call may be.
        adapters: For classes that are no built-ins, what makes a built-in of an object of that class; for callers whom
            the host trusts.
        hooks: Plugins that may refuse calls and are told of them, see `neuroscript.hookspecs`.
        audit: A sink that keeps a record of each call, or several.
        audit_required: Which calls are refused when a sink can not keep their records: those of tools with the effects
            ``writes``, ``deletes``, ``exec`` and ``net``, ``"all"`` or ``"none"``.
        recording: What keeps the content of calls, for `neuroscript.replay.replay`.

    Raises:
        RegistryError: Two of *toolsets* claim one name.
        SpecError: A keyword has no such value.
        SandboxError: The host's ``sandbox_dir`` can not be used.

    >>> from neuroscript import Engine
    >>> with Engine() as engine:
    ...     engine.call("math.add", (2, " 3 "))
    5.0

    Source: contract sections 1 and 2.
    """

    def __init__(
        self,
        *,
        policy: ExecutionPolicy | None = None,
        host: Host | None = None,
        toolsets: Iterable[Toolset] = (),
        plugins: Literal["installed", "none"] | Collection[str] = "installed",
        mode: Literal["lax", "strict"] = "lax",
        size_limits: SizeLimits = LAX.sizes,
        adapters: Mapping[type, Callable[[Any], object]] | None = None,
        hooks: Iterable[object] = (),
        audit: AuditSink | Iterable[AuditSink] = (),
        audit_required: Literal["effects", "all", "none"] = "effects",
        recording: Any = None,
    ) -> None:
        if mode not in ("lax", "strict"):
            raise SpecError("Engine", ["mode is 'lax' or 'strict'"])
        if audit_required not in ("effects", "all", "none"):
            raise SpecError("Engine", ["audit_required is 'effects', 'all' or 'none'"])
        coercion = Coercion(mode, size_limits, tuple((adapters or {}).items()))
        host, policy = host or Host(), policy or ExecutionPolicy()
        world = World(host, coercion, policy, **_watching(hooks, audit, audit_required, recording))
        super().__init__(Entries(world, policy), OWN, None, _ledger(policy.layers, host, None))
        self.plugin_errors: tuple[PluginError, ...] = ()
        for toolset in toolsets:
            self.register(toolset)
        if plugins != "none":
            self._load_installed(plugins)

    def session(
        self,
        *,
        variables: Mapping[str, Any] | None = None,
        id: str = "",
        policy: ExecutionPolicy | None = None,
    ) -> Session:
        """Return a caller of its own, with variables, handles and a ledger of its own, over the same tools.

        Args:
            variables: What its variables are at first, besides those of the host.
            id: What it is called in records and approvals. One that is resumed later, perhaps by another process, has
                to be called the same again; by default it is a word that nobody guesses.
            policy: What it permits; it can only narrow what the engine permits.

        Raises:
            CoercionError: One of the variables is no plain value.
        """
        entries = self._entries.narrowed(policy)
        own = tuple(layer for layer in entries.policy.layers if layer not in self.policy.layers)
        return Session(entries, id, variables, _ledger(own, self.host, self.ledger))

    @property
    def refusals(self) -> tuple[CallRecord, ...]:
        """The latest refusals by policy or limits, the oldest first; they are remembered without an audit too."""
        return tuple(self._world.watch.refusals)

    @property
    def idle_rules(self) -> tuple[str, ...]:
        """The patterns and names of its policy that match none of its tools, and the grants that none of them needs."""
        needs = (need for tool in self.tools.values() for need in tool.policy.capabilities)
        return (*self.policy.unmatched(self.tools), *map(str, self.policy.unused(needs)))

    def add_hooks(self, *plugins: object) -> None:
        """Have the hooks of further plugins asked and told, from the next call on.

        Raises:
            PluginError: One of them has no such hook, or was added before.
        """
        self._world.add_hooks(plugins)

    # Tools

    @property
    def tools(self) -> Mapping[str, ToolImplementation]:
        """All tools by canonical name: a snapshot, read-only."""
        return self._world.registry.tools

    def register(self, tools: ToolImplementation | Toolset, *, origin: str = HOST) -> None:
        """Add one tool, or all tools of a set.

        Args:
            origin: Who brings them.

        Raises:
            RegistryError: A name is taken; nothing has been added then.
        """
        self._world.register((tools,) if isinstance(tools, ToolImplementation) else tuple(tools), origin)

    def load_plugin(self, plugin: str | os.PathLike[str] | object) -> None:
        """Add the tools of a plugin: a file, a module or an object that has a function ``register(registrar)``.

        All that it registers is added, or nothing.

        Raises:
            PluginError: There is no such function, or it fails.
            RegistryError: A name is taken.
        """
        from neuroscript.discovery import registered

        origin, tools = registered(plugin)
        self._world.register(tools, origin)

    def _load_installed(self, plugins: str | Collection[str]) -> None:
        if isinstance(plugins, str) and plugins != "installed":
            raise SpecError("Engine", ["plugins is 'installed', 'none' or a collection of distributions"])
        from neuroscript.discovery import installed

        problems: list[PluginError] = []
        for found in installed(None if isinstance(plugins, str) else plugins):
            try:
                if isinstance(found, PluginError):
                    raise found
                self.register(found.toolset, origin=found.distribution)
            except PluginError as error:
                problems.append(error)
            except RegistryError as error:
                problems.append(PluginError(found.distribution, str(error)))
        self.plugin_errors = tuple(problems)

    # Its end

    def close(self, grace: float = GRACE) -> tuple[str, ...]:
        """Refuse further calls, let those in flight end, and leave the others behind.

        Args:
            grace: Seconds that they are given.

        Returns:
            The tools whose calls were left behind, in order; their Runtimes refuse from now on. A second time, none.
        """
        self._refuse()
        end = monotonic() + grace
        while (left := self._in_flight()) and monotonic() < end:
            sleep(LOOK)
        return self._left_behind(left)

    async def aclose(self, grace: float = GRACE) -> tuple[str, ...]:
        """Close the engine as `close` does, while the loop goes on."""
        from asyncio import sleep

        self._refuse()
        end = monotonic() + grace
        while (left := self._in_flight()) and monotonic() < end:
            await sleep(LOOK)
        return self._left_behind(left)

    def _refuse(self) -> None:
        self._world.is_closed = True
        for session in tuple(self._world.sessions):
            session.refuse()

    def _in_flight(self) -> tuple[str, ...]:
        from neuroscript.inflight import in_flight

        return () if self._world.is_over else in_flight(self._world)

    def _left_behind(self, left: tuple[str, ...]) -> tuple[str, ...]:
        for session in tuple(self._world.sessions):
            session.end()
        self._world.close(left)
        return left

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _watching(hooks: Iterable[object], audit: Any, required: str, recording: Any) -> dict[str, Any]:
    """Return what a `Watch` is made of, and nothing where nobody watches."""
    plugins = tuple(hooks)
    sinks = (audit,) if hasattr(audit, "write") else tuple(audit)
    found: dict[str, Any] = {}
    if plugins:
        from neuroscript.hooks import Hooks

        found["hooks"] = Hooks(plugins)
    if sinks:
        found |= {"sinks": sinks, "required": required}
    if recording is not None:
        found["recording"] = recording
    return found


def _ledger(layers: tuple[ExecutionPolicy, ...], host: Host, above: Any) -> Any:
    """Return what counts for these layers under what counts above, or None where nothing is counted."""
    limits = [layer.limits for layer in reversed(layers) if layer.limits is not None and not layer.limits.is_idle]
    if not limits and above is None:
        return None
    from neuroscript.ledger import Ledger

    ledger = above
    for each in limits or [None]:
        ledger = Ledger(each, host.clock, ledger)
    return ledger
