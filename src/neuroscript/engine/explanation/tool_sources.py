"""What provides each tool of an engine, and whether a worker process runs and imports it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from neuroscript.engine.engine import Engine
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.tools.toolset import entry_of

if TYPE_CHECKING:
    from neuroscript.policy.isolation import IsolationOf


class ToolSource(NamedTuple):
    """What provides a tool.

    Attributes:
        origin: The distribution or the file, or ``host``.
        entry: The name of the entry point, or ``""``.
        old: The former names of the tool.
    """

    origin: str
    entry: str
    old: tuple[str, ...]


def source_of(engine: Engine, name: str) -> ToolSource:
    """Return what provides the tool with a canonical name."""
    registry = engine._shared.registry
    return ToolSource(registry.origins[name], entry_of(registry.tools[name]), registry.old_names(name))


def isolation_of(policy: ExecutionPolicy, tool: str, source: ToolSource) -> IsolationOf | None:
    """Return how a tool is isolated, or None if it runs in the process of the host."""
    return policy.isolation_of(tool, source.origin, source.entry, source.old)


def idle_patterns(patterns: Iterable[str], engine: Engine) -> Iterator[str]:
    """Yield the patterns of plugins that match nothing that provides a tool."""
    from neuroscript.policy.isolation import Isolation

    sources = {source_of(engine, name)[:2] for name in engine.tools}
    for pattern in patterns:
        if not any(Isolation(plugins=(pattern,)).isolates_import(*source) for source in sources):
            yield pattern


def isolation_text(found: IsolationOf | None) -> str:
    """Return whether a worker process runs a tool, and which process imports its code."""
    if found is None:
        return "runs in the host's process"
    network = "with the network" if found.keeps_network else "without the network"
    imported = "which alone imports its code" if found.isolates_import else "but the host imports its code too"
    return f"runs in a worker process {network}, {imported}"
