"""The plugins of an engine: what they provide, why others cannot be used, and how they differ from a lock file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import attrs

from neuroscript.config.lock_diff import LockDifference, Selection, lock_differences
from neuroscript.config.lock_file import Lock
from neuroscript.discovery.installed import installed_distributions
from neuroscript.engine.engine import Engine


@attrs.frozen
class LoadedPlugin:
    """What provides tools.

    Attributes:
        name: The distribution, the file, or ``host``.
        version: The version of the distribution, or ``""``.
        tools: The number of its tools.
        lock: The locked version, or ``""`` if it is not locked.
    """

    name: str
    version: str
    tools: int
    lock: str = ""


@attrs.frozen
class LockComparison:
    """How the installed distributions differ from a lock file.

    Attributes:
        locked: The number of locked distributions.
        differences: The distributions that differ.
    """

    locked: int
    differences: tuple[LockDifference, ...]


def loaded_plugins(engine: Engine, lock: Lock | None) -> Iterator[LoadedPlugin]:
    """Yield what provides the tools of an engine, sorted by name."""
    counts = Counter(engine._shared.registry.origins[name] for name in engine.tools)
    installed = {str(each): each for each in installed_distributions()}
    for origin, tools in sorted(counts.items()):
        found = installed.get(origin)
        if found is None:
            yield LoadedPlugin(origin, "", tools)
        else:
            pinned = None if lock is None else lock.of(found.name)
            yield LoadedPlugin(found.name, found.version, tools, "" if pinned is None else pinned.version)


def compare_with_lock(engine: Engine, file: Path) -> LockComparison:
    """Return how the installed distributions differ from a lock file; what the policy isolates is not imported here.

    Raises:
        SpecError: The file cannot be read or is invalid.
    """
    lock, found = Lock.read(file), installed_distributions()
    selection = Selection(tuple(found), (), engine._confined_imports)
    return LockComparison(len(lock.distributions), lock_differences(lock, found, selection))
