"""Isolation of the toolsets under test: their functions run in workers of one pool, or their programs run confined."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final

import attrs

from neuroscript.discovery.entry_points import loaded_entry
from neuroscript.discovery.index_builder import index
from neuroscript.discovery.installed import distributions
from neuroscript.discovery.lazy_tools import Deferred, Source
from neuroscript.engine.engine import Engine
from neuroscript.isolation.pool import Pool
from neuroscript.isolation.tool_source import CannotImport, source_of
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.policy.isolation import Isolation
from neuroscript.testing.installed import loaded_object
from neuroscript.tools.tool import OBSERVATION, Observation, ToolImplementation, observation_of
from neuroscript.tools.toolset import HOST, Toolset

CONFINED_PROGRAMS: Final = Isolation(programs=True, network=("*",))
"""Confines the programs of all tools, and lets them use the network."""


class OfDistributions(Isolation):
    """Isolates the tools of distributions; a test adds others, which often no other process can import."""

    def isolates(self, tool: str, origin: str, entry: str = "", old: Collection[str] = ()) -> bool:
        """Return whether an entry point provides a tool."""
        return entry != ""


class IsolatedTests:
    """Runs the toolsets under test in worker processes, or confines the programs that they start.

    Attributes:
        programs: Whether the functions run in this process, and the programs that they start are confined.
        pool: The processes, which are reused for all engines.
    """

    def __init__(self, *, programs: bool = False) -> None:
        self.programs = programs
        self.pool = Pool()
        self._known: dict[int, tuple[ToolImplementation, ToolImplementation]] = {}

    def settings(self, tools: Sequence[ToolImplementation]) -> Isolation:
        """Return the isolation of these tools, or of none. Those with the effect ``net`` keep the network."""
        names = tuple(tool.name for tool in tools)
        net = tuple(tool.name for tool in tools if "net" in tool.policy.effects)
        if self.programs:
            return Isolation(programs=bool(names), network=net)
        return Isolation(tools=names, network=net)

    def register(self, engine: Engine, tools: Iterable[ToolImplementation]) -> None:
        """Add tools to an engine that isolates them, and let it use these processes."""
        if not self.programs:
            engine._shared.use_pool(self.pool)
            tools = map(self._as_listed, tools)
        engine._shared.register(tuple(tools), HOST)

    def isolate_engines(self) -> Callable[[], None]:
        """Let every engine of this process isolate tools of distributions, or confine programs; return what ends that.

        An engine whose policy isolates tools itself is not changed.
        """
        kind: Any = Engine
        original = kind.__init__
        isolate = CONFINED_PROGRAMS if self.programs else OfDistributions(network=("*",))

        @wraps(original)
        def isolating(engine: Engine, *, policy: ExecutionPolicy | None = None, **options: Any) -> None:
            if policy is None:
                policy = ExecutionPolicy()
            if isinstance(policy, ExecutionPolicy) and not policy.isolates:
                policy = attrs.evolve(policy, isolate=isolate)
                original(engine, policy=policy, **options)
                engine._shared.use_pool(self.pool)
            else:
                original(engine, policy=policy, **options)

        def restore() -> None:
            kind.__init__ = original

        kind.__init__ = isolating
        return restore

    def fault(self, tool: ToolImplementation) -> str:
        """Return why a worker process cannot import a tool, or ``""``."""
        if self.programs:
            return ""
        try:
            source_of(self._as_listed(tool))
        except CannotImport as error:
            return str(error)
        return ""

    def close(self) -> None:
        """End the processes."""
        self.pool.close()

    def _as_listed(self, tool: ToolImplementation) -> ToolImplementation:
        """Return a tool of an installed distribution as an engine knows it, from its index; others unchanged."""
        observation = observation_of(tool)
        if observation is not None:
            listed = self._as_listed(observation.tool)
            func = observation.around(listed.func)
            setattr(func, OBSERVATION, Observation(listed, observation.around))
            return attrs.evolve(listed, func=func)
        if id(tool) not in self._known:
            self._known[id(tool)] = tool, tool
            for each, listed in _installed():
                self._known[id(each)] = each, listed
        return self._known[id(tool)][1]


def _installed() -> Iterator[tuple[ToolImplementation, ToolImplementation]]:
    """Yield the tools of the installed toolsets that this process has imported, each also as an engine knows it."""
    for distribution in distributions():
        for point in distribution.entry_points:
            toolset = loaded_object(point)
            if isinstance(toolset, Toolset):
                entry = index(loaded_entry(distribution, point))
                source = Source(distribution, entry, lambda error: None)
                listed = {each.name: Deferred(source, each) for each in entry.tools}
                yield from ((tool, listed[tool.name].implementation) for tool in toolset)


CURRENT: Final[ContextVar[IsolatedTests | None]] = ContextVar("isolated tests", default=None)
"""The isolation of the tests that are running."""


def isolation_of_tests() -> IsolatedTests | None:
    """Return what isolates the toolsets under test, or None if their functions run in this process."""
    return CURRENT.get()
