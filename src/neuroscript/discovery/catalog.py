"""What the chosen distributions bring, told by their indexes: nothing of them is imported to know it.

A distribution that brings no index of its own is read once, in a process of its own, and what came of that is kept
until a file of it changes.

Source: contract section 7, level A; issue "Plugins", discovery; reliability.md part 4.3; peers.md, lessons of plugin
hosts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from neuroscript._version import RUNTIME_API, misfit
from neuroscript.discovery.installed import HEAD, Distribution, known, normalised
from neuroscript.discovery.package_index import IndexedEntry, entries_of, shipped, written
from neuroscript.errors import PluginError
from neuroscript.io.text import shown
from neuroscript.io.user_cache import (
    are_settled,
    are_unchanged,
    below,
    kept_at,
    read_json,
    remove,
    stamps,
    tidy,
    write_json,
)

FIRST_PARTY: Final[Mapping[str, frozenset[str]]] = {
    "neuroscript-std": frozenset(
        {"crypto", "error", "handle", "io", "list", "llm", "math", "meta", "shape", "str", "time", "tree", "var"}
    ),
    "neuroscript-fs": frozenset({"fs"}),
    "neuroscript-git": frozenset({"git"}),
    "neuroscript-http": frozenset({"http"}),
    "neuroscript-shell": frozenset({"shell", "os"}),
}
"""The distributions of this project, and the groups that no other one may use, whether or not they are installed."""


INDEX_HEAD: Final = '{"of":"('
"""How a file of the cache begins that holds the index of a distribution."""

HELD: Final[dict[Distribution, dict[str, Any]]] = {}
"""What this process has read and no file could keep; it counts only as long as a file of it would."""


class Offer(NamedTuple):
    """What a distribution brings: it, and its entry points as its index tells of them."""

    distribution: Distribution
    entries: tuple[IndexedEntry, ...]

    @property
    def tools(self) -> list[str]:
        """The names of its tools, in order."""
        return [tool.name for each in self.entries for tool in each.tools]

    @property
    def toolsets(self) -> list[str]:
        """The names of its toolsets."""
        return [name for each in self.entries for name in each.toolsets]

    @property
    def aliases(self) -> dict[str, str]:
        """Old names of its tools, with the names that they have now."""
        return {old: name for each in self.entries for old, name in each.aliases.items()}


def offered(
    only: Collection[str] | None,
    without: Collection[str] = (),
    taken: Mapping[str, str] | None = None,
    check: Callable[[Offer], object] | None = None,
) -> Iterator[Offer | PluginError]:
    """Yield what each chosen distribution brings, or why it can not be used, in the order of `chosen`.

    Args:
        only: The names of the distributions that may be loaded; None means all of them.
        without: Distributions and entry points that are left out.
        taken: The tools that there are, with who brought them.
        check: Raises the `PluginError` of a distribution that may not be used for another reason.
    """
    order, problems = chosen(known(), only, without)
    claims = Claims(taken or {})
    for each in _indexed(order):
        try:
            claims.entry_points(each.distribution)
            if check is not None and isinstance(each, Offer):
                check(each)
            yield claims.taken(each)
        except PluginError as error:
            yield error
    yield from problems


def chosen(
    found: Iterable[Distribution], only: Collection[str] | None, without: Collection[str] = ()
) -> tuple[list[Distribution], list[PluginError]]:
    """Return the distributions that are to be loaded, in order, and the names that mean none.

    Our own come first, then those of *only* in its order, else all in the order of their names.
    """
    names = sorted(only) if isinstance(only, AbstractSet) else [*(only or ())]
    wanted = [normalised(name) for name in names]
    found = [each for each in found if only is None or each.key in wanted]
    left = [_cut(each, without) for each in found]
    order = sorted((each for each in left if each.entry_points), key=lambda each: _rank(each, wanted))
    keys = {each.key for each in found}
    missing = [(name, key) for name, key in zip(names, wanted, strict=True) if key not in keys]
    return order, [_lacking(name, key) for name, key in missing]


def _lacking(name: str, key: str) -> PluginError:
    from neuroscript.discovery.bundles import lacking

    return PluginError(shown(name), lacking(key), code="plugin.missing")


def _rank(distribution: Distribution, wanted: list[str]) -> tuple[bool, int, str]:
    place = wanted.index(distribution.key) if wanted else 0
    return distribution.key not in FIRST_PARTY, place, distribution.key


def _cut(distribution: Distribution, without: Collection[str]) -> Distribution:
    """Return a distribution without the entry points that are left out; all of them, if it is left out itself."""
    if not without:
        return distribution
    if distribution.key in map(normalised, without):
        return distribution._replace(entry_points=())
    left = tuple(each for each in distribution.entry_points if each.name not in without)
    return distribution._replace(entry_points=left)


class Fault(NamedTuple):
    """A distribution that could not be read: it, and the code and the reason of the error."""

    distribution: Distribution
    code: str
    reason: str


class Claims:
    """Who has which entry points and tools: the first one that is not broken.

    Args:
        tools: The tools that there are, with who brought them.
    """

    def __init__(self, tools: Mapping[str, str]) -> None:
        self._tools = dict(tools)
        self._entries: dict[tuple[str, str], str] = {}

    def taken(self, found: Offer | Fault) -> Offer:
        """Take note of all that a distribution brings, and return it.

        Raises:
            PluginError: It could not be read, or it claims what it must not have. Nothing is noted then.
        """
        if isinstance(found, Fault):
            raise PluginError(str(found.distribution), found.reason, code=found.code)
        for entry in found.entries:
            for api in entry.api:
                reason = misfit(tuple(api))
                if reason:
                    text = f"entry point {shown(entry.name)} {reason}"
                    raise PluginError(str(found.distribution), text, code="plugin.api")
        self.tools(found.distribution, found.tools, found.toolsets)
        return found

    def entry_points(self, distribution: Distribution) -> None:
        """Look whether an entry point of a distribution is there already; nothing has to be known of it for that.

        Raises:
            PluginError: One is.
        """
        for each in distribution.entry_points:
            owner = self._entries.get((each.group, each.name))
            if owner is not None:
                reason = f"its entry point {shown(each.name)} is called as that of {owner}"
                raise PluginError(str(distribution), reason, code="plugin.entry")

    def tools(self, distribution: Distribution, tools: Sequence[str], toolsets: Iterable[str]) -> None:
        """Take note of all that a distribution brings.

        Raises:
            PluginError: It uses a group of ours, or brings a tool that there is, or one twice. Nothing is noted then.
        """
        for group in sorted({*toolsets, *(tool.rpartition(".")[0] for tool in tools)}):
            owner = owner_of(group)
            if owner not in (None, distribution.key):
                reason = f"uses the name {shown(group)}, which belongs to {owner}"
                raise PluginError(str(distribution), reason, code="plugin.shadow")
        own: set[str] = set()
        for tool in tools:
            owner = str(distribution) if tool in own else self._tools.get(tool)
            if owner is not None:
                raise PluginError(str(distribution), f"claims {tool}, which {owner} has", code="plugin.duplicate")
            own.add(tool)
        self._tools.update(dict.fromkeys(tools, str(distribution)))
        self._entries.update(((each.group, each.name), str(distribution)) for each in distribution.entry_points)


def owner_of(group: str) -> str | None:
    """Return the distribution of ours that a group belongs to."""
    first = group.partition(".")[0]
    return next((key for key, groups in FIRST_PARTY.items() if first in groups), None)


def _indexed(order: Sequence[Distribution]) -> list[Offer | Fault]:
    """Return what each distribution brings, by the index that it ships, or that is kept, or that is made now."""
    found: dict[str, Offer | Fault] = {}
    for each in order:
        entries = shipped(each)
        offer = _kept(each) if entries is None else Offer(each, entries)
        if offer is not None:
            found[each.key] = offer
    missing = [each for each in order if each.key not in found]
    if missing:
        from neuroscript.discovery.probe import probed

        found.update((report.distribution.key, keep(report)) for report in probed(missing))
    return [found[each.key] for each in order]


def _place(distribution: Distribution) -> str | None:
    """Return the file in which the index of a distribution is kept, for this Python and these folders."""
    return kept_at("index", *_whose(distribution))


def _whose(distribution: Distribution) -> tuple[object, ...]:
    return (sys.version, RUNTIME_API, sys.path, *distribution)


def _kept(distribution: Distribution) -> Offer | Fault | None:
    """Return what was made of a distribution before, if no file of it has changed since."""
    file = _place(distribution)
    kept = None if file is None else read_json(file)
    kept = HELD.get(distribution) if kept is None else kept
    if not isinstance(kept, dict) or not _is_current(kept, distribution):
        return None
    if "code" in kept:
        return Fault(distribution, str(kept["code"]), str(kept.get("reason")))
    entries = entries_of(kept.get("index"), distribution)
    return None if entries is None else Offer(distribution, entries)


def _is_current(kept: Mapping[str, Any], distribution: Distribution) -> bool:
    """Tell whether what was kept is of a distribution, and no file has changed since."""
    if kept.get("of") != repr(_whose(distribution)) or not are_unchanged(kept.get("stamps")):
        return False
    try:
        return bool(kept["files"] == below(kept["roots"]))
    except (KeyError, TypeError, ValueError):
        return False


def keep(report: Any) -> Offer | Fault:
    """Return what a `probing.Report` tells of a distribution, and keep it as long as no file of it changes.

    A fault is kept only as long as nothing is installed or removed beside it; that an import does not end is kept
    longer, for each look at it takes its time.
    """
    each: Distribution = report.distribution
    found: dict[str, Any] = {
        "of": repr(_whose(each)),
        "roots": report.roots,
        "files": below(report.roots),
        "stamps": [],
    }
    offer: Offer | Fault
    if report.is_usable:
        offer = Offer(each, report.entries)
        found["index"] = written(each, report.entries)
    else:
        offer = Fault(each, report.code, report.reason)
        beside = [] if offer.code == "plugin.hang" else sys.path
        found |= {"code": offer.code, "reason": offer.reason, "stamps": stamps(beside)}
    is_lasting = report.code != "plugin.process" and found["files"] is not None
    if is_lasting and are_settled([*found["files"], *found["stamps"]], report.began):
        _write(each, found)
    return offer


def _write(distribution: Distribution, found: dict[str, Any]) -> None:
    """Keep what was found of a distribution: for all processes, or, where there is no cache, for this one."""
    file = _place(distribution)
    if file is not None and write_json(file, found):
        tidy(os.path.dirname(file), (INDEX_HEAD, HEAD))
    else:
        HELD[distribution] = found


def checked(found: Iterable[Distribution], limit: float) -> Iterator[Any]:
    """Load distributions anew, each in a process, and yield the report of each, with what others have already.

    Args:
        found: In the order in which an engine would take them: where two claim one tool, the first one has it.
        limit: Seconds that each is given, the start of its process among them.
    """
    from neuroscript.discovery.probe import probed

    claims = Claims({})
    for report in probed(found, limit):
        offer = keep(report)
        try:
            claims.entry_points(report.distribution)
            if isinstance(offer, Offer):
                claims.taken(offer)
            yield report
        except PluginError as error:
            yield report.told(error)


def forget(distribution: Distribution) -> None:
    """Let a distribution be read anew at the next start, for it is not what is kept of it."""
    HELD.pop(distribution, None)
    file = _place(distribution)
    if file is not None:
        remove(file)
