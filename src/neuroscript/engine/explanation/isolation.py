"""Isolated tools of a policy, and patterns of isolation that have no effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import attrs

from neuroscript.engine.explanation.tool_sources import ToolSource, isolation_of
from neuroscript.io.near_names import did_you_mean
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.policy.isolation import Isolation
from neuroscript.policy.scopes import is_exact_tool

Sources = Mapping[str, ToolSource]
"""What provides each tool, by its canonical name."""


@attrs.frozen
class IsolatedTool:
    """A tool that runs in a worker process.

    Attributes:
        tool: Its canonical name.
        origin: The distribution or the file that provides it.
        isolated: ``import`` if only the worker imports its code, ``function`` if the host imports it too.
    """

    tool: str
    origin: str
    isolated: str


def isolated_tools(policy: ExecutionPolicy, sources: Sources) -> Iterator[IsolatedTool]:
    """Yield the tools that a policy isolates, sorted by name."""
    for name, source in sorted(sources.items()):
        found = isolation_of(policy, name, source)
        if found is not None:
            yield IsolatedTool(name, source.origin, found.part)


def unused_isolation(isolation: Isolation, sources: Sources) -> Iterator[tuple[str, str, str]]:
    """Yield the field, the pattern and the reason of each pattern that has no effect."""
    for pattern in isolation.tools:
        if not _matched(Isolation(tools=(pattern,)), sources):
            yield "isolation.tools", pattern, _matches_no_tool(pattern, sources)
        elif not _matched(Isolation(tools=(pattern,), exclude=isolation.exclude), sources):
            yield "isolation.tools", pattern, "matches only tools that exclude excludes"
    included = _matched(attrs.evolve(isolation, exclude=(), plugins=()), sources)
    for pattern in isolation.exclude:
        if not _matched(Isolation(tools=(pattern,)), sources):
            yield "isolation.exclude", pattern, _matches_no_tool(pattern, sources)
        elif included == _matched(attrs.evolve(isolation, exclude=(pattern,), plugins=()), sources):
            yield "isolation.exclude", pattern, "matches no tool that tools isolates"
    for pattern in isolation.plugins:
        alone = Isolation(plugins=(pattern,))
        if not any(alone.isolates_import(source.origin, source.entry) for source in sources.values()):
            yield "isolation.plugins", pattern, "matches no plugin"
    for pattern in isolation.network:
        alone = Isolation(network=(pattern,))
        kept = [name for name in sources if alone.keeps_network(name)]
        isolated = (isolation_of(ExecutionPolicy(isolate=isolation), name, sources[name]) for name in kept)
        if not any(kept if isolation.programs else isolated):
            yield "isolation.network", pattern, "matches no isolated tool" if kept else "matches no tool"


def _matched(isolation: Isolation, sources: Sources) -> list[str]:
    """Return the tools that patterns of tools isolate."""
    return [name for name, source in sources.items() if isolation.isolates(name, "", "", source.old)]


def _matches_no_tool(pattern: str, sources: Sources) -> str:
    return f"matches no tool{did_you_mean(pattern, sources) if is_exact_tool(pattern) else ''}"


def isolating_patterns(isolation: Isolation, tool: str, source: ToolSource) -> Iterator[str]:
    """Yield the patterns that isolate a tool."""
    for pattern in isolation.tools:
        if Isolation(tools=(pattern,), exclude=isolation.exclude).isolates(tool, "", "", source.old):
            yield pattern
    for pattern in isolation.plugins:
        if Isolation(plugins=(pattern,)).isolates_import(source.origin, source.entry):
            yield pattern


def excluding_patterns(isolation: Isolation, tool: str, source: ToolSource) -> Iterator[str]:
    """Yield the patterns that exclude a tool, which would be isolated without them."""
    if attrs.evolve(isolation, exclude=()).isolates(tool, "", "", source.old):
        for pattern in isolation.exclude:
            if Isolation(tools=(pattern,)).isolates(tool, "", "", source.old):
                yield pattern


def counts(found: tuple[IsolatedTool, ...]) -> Iterator[tuple[str, str]]:
    """Yield each origin of isolated tools, with their number and which process imports their code."""
    for (origin, part), count in Counter((each.origin, each.isolated) for each in found).items():
        tools = f"{count} tool{'s' * (count != 1)}"
        where = "only worker processes import their code" if part == "import" else "the host imports their code too"
        yield origin, f"{tools}; {where}"
