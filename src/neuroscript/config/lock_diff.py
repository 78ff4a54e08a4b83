"""How the installed distributions differ from a lock file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import attrs

from neuroscript.config.lock_file import Lock
from neuroscript.config.pinned import Difference, Pinned, compare
from neuroscript.discovery.catalog import ConfinedImports, iter_offers
from neuroscript.discovery.installed import Distribution
from neuroscript.errors import PluginError


@attrs.frozen
class LockDifference:
    """A distribution that differs from the lock file.

    Attributes:
        state: ``"changed"``, ``"new"`` if it is not in the file, ``"missing"``, or ``"unusable"``.
        old: The locked distribution, or None.
        new: The installed distribution, or None if it is missing or unusable.
        differences: The differences of a changed distribution.
        error: Why it is unusable, or None.
    """

    state: str
    old: Pinned | None = None
    new: Pinned | None = None
    differences: tuple[Difference, ...] = ()
    error: PluginError | None = None


@attrs.frozen
class Selection:
    """The distributions that an engine would load.

    Attributes:
        taken: The distributions.
        without: The excluded distributions and entry points.
        imports: Imports those that are isolated, or None.
    """

    taken: Sequence[Distribution]
    without: Collection[str]
    imports: ConfinedImports | None


def lock_differences(lock: Lock, found: Iterable[Distribution], selection: Selection) -> tuple[LockDifference, ...]:
    """Return the distributions that differ from a lock file, sorted by name.

    Args:
        found: All installed distributions.
        selection: The distributions that are compared.
    """
    left_out = {each.key for each in found} - {each.key for each in selection.taken}
    pins, errors = pins_of(selection, lock)
    return tuple(_differing(lock, {each.key: each for each in pins}, errors, left_out))


def _differing(
    lock: Lock, pins: dict[str, Pinned], errors: dict[str, PluginError], left_out: Collection[str]
) -> Iterator[LockDifference]:
    old = {each.key: each for each in lock.distributions}
    for key in sorted({*old, *pins, *errors} - {*left_out}):
        if key in errors:
            yield LockDifference("unusable", old.get(key), error=errors[key])
        elif key not in pins:
            yield LockDifference("missing", old[key])
        elif key not in old:
            yield LockDifference("new", new=pins[key])
        elif differences := compare(old[key], pins[key]):
            yield LockDifference("changed", old[key], pins[key], differences)


def pins_of(selection: Selection, known: Lock | None) -> tuple[list[Pinned], dict[str, PluginError]]:
    """Return the pins of the usable distributions, and the errors of the others by key.

    Args:
        known: The lock file, which may require that a distribution is isolated, or None.
    """
    admit = None if known is None else known.admit
    keys = {str(each): each.key for each in selection.taken}
    pins: list[Pinned] = []
    errors: dict[str, PluginError] = {}
    for found in iter_offers(list(keys.values()), selection.without, imports=selection.imports, admit=admit):
        try:
            if isinstance(found, PluginError):
                raise found
            pins.append(Pinned.of(found))
        except PluginError as error:
            errors[keys[error.distribution]] = error
    return pins, errors
