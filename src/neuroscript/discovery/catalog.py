"""The tools of the selected distributions, read from their indexes without importing them.

A distribution without an index is loaded once in a separate process. The result is cached until a file of the
distribution changes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple, Protocol

from neuroscript._version import RUNTIME_API, misfit
from neuroscript.discovery.installed import HEAD, Distribution, installed_distributions, normalize_name
from neuroscript.discovery.package_index import IndexedEntry, entries_of, index_to_data, shipped_index
from neuroscript.errors import PluginError
from neuroscript.io.text import quote_untrusted
from neuroscript.io.user_cache import (
    are_settled,
    are_unchanged,
    cache_path,
    read_json,
    remove,
    stamps,
    stamps_below,
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
"""The distributions of this project and the groups that are reserved for them, even if they are not installed."""


INDEX_HEAD: Final = '{"of":"('
"""The beginning of a cache file with the index of a distribution."""

PROCESS_CACHE: Final[dict[tuple[Distribution, bool], dict[str, Any]]] = {}
"""Indexes that could not be cached, for this process only. They become invalid under the same conditions."""


class ConfinedImports(Protocol):
    """Imports distributions in confined processes, and returns what these report, which is not trusted."""

    def isolated(self, distribution: Distribution) -> tuple[str, ...]:
        """Return the names of the entry points of a distribution that the policy isolates."""

    def reports(self, found: Sequence[Distribution]) -> Iterable[Any]:
        """Return a `probe.Report` of each distribution."""


class DistributionOffer(NamedTuple):
    """A distribution and its entry points as described by its index.

    Attributes:
        distribution: The distribution.
        entries: Its entry points.
        is_isolated: Whether the policy isolates all of them, so that this process never imports the distribution.
    """

    distribution: Distribution
    entries: tuple[IndexedEntry, ...]
    is_isolated: bool = False

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
        """Old names of its tools, and the current name for each."""
        return {old: name for each in self.entries for old, name in each.aliases.items()}


def iter_offers(
    only: Collection[str] | None,
    without: Collection[str] = (),
    taken: Mapping[str, str] | None = None,
    check: Callable[[DistributionOffer], object] | None = None,
    imports: ConfinedImports | None = None,
    admit: Callable[[Distribution, bool], object] | None = None,
) -> Iterator[DistributionOffer | PluginError]:
    """Yield what each selected distribution provides, or why it cannot be used, in the order of `select_offers`.

    Args:
        only: The names of the distributions that may be loaded; None means all.
        without: Distributions and entry points to exclude.
        taken: Existing tools, and who provides each.
        check: Raises a `PluginError` for a distribution that is rejected for another reason.
        imports: Imports distributions whose code this process and its ordinary children do not import, or None.
        admit: Raises a `PluginError` for a distribution that must not be imported, given whether all of it is isolated.
    """
    order, problems = select_offers(installed_distributions(), only, without)
    claims = Claims(taken or {})
    admitted = []
    for distribution in order:
        try:
            if admit is not None:
                admit(distribution, _is_isolated(distribution, imports))
            admitted.append(distribution)
        except PluginError as error:
            problems.append(error)
    for each in _indexed(admitted, imports):
        try:
            claims.entry_points(each.distribution)
            if check is not None and isinstance(each, DistributionOffer):
                check(each)
            yield claims.taken(each)
        except PluginError as error:
            yield error
    yield from problems


def _is_isolated(distribution: Distribution, imports: ConfinedImports | None) -> bool:
    """Return whether all entry points of a distribution are isolated."""
    return imports is not None and len(imports.isolated(distribution)) == len(distribution.entry_points)


def select_offers(
    found: Iterable[Distribution], only: Collection[str] | None, without: Collection[str] = ()
) -> tuple[list[Distribution], list[PluginError]]:
    """Return the distributions to load, in order, and an error for each unknown name.

    Ours come first, followed by those in *only* in its order, or by all others sorted by name.
    """
    names = sorted(only) if isinstance(only, AbstractSet) else [*(only or ())]
    wanted = [normalize_name(name) for name in names]
    found = [each for each in found if only is None or each.key in wanted]
    left = [_without_excluded(each, without) for each in found]
    order = sorted((each for each in left if each.entry_points), key=lambda each: _rank(each, wanted))
    keys = {each.key for each in found}
    missing = [(name, key) for name, key in zip(names, wanted, strict=True) if key not in keys]
    return order, [_lacking(name, key) for name, key in missing]


def _lacking(name: str, key: str) -> PluginError:
    from neuroscript.discovery.bundles import not_installed_reason

    return PluginError(quote_untrusted(name), not_installed_reason(key), code="plugin.missing")


def _rank(distribution: Distribution, order: list[str]) -> tuple[bool, int, str]:
    place = order.index(distribution.key) if order else 0
    return distribution.key not in FIRST_PARTY, place, distribution.key


def _without_excluded(distribution: Distribution, without: Collection[str]) -> Distribution:
    """Return a distribution without its excluded entry points; without any if the distribution itself is excluded."""
    if not without:
        return distribution
    if distribution.key in map(normalize_name, without):
        return distribution._replace(entry_points=())
    left = tuple(each for each in distribution.entry_points if each.name not in without)
    return distribution._replace(entry_points=left)


class Fault(NamedTuple):
    """A distribution that could not be read, with the code and reason of the error."""

    distribution: Distribution
    code: str
    reason: str


class Claims:
    """The owners of entry points and tools. The first valid distribution that uses a name owns it.

    Args:
        tools: Existing tools, and who provides each.
    """

    def __init__(self, tools: Mapping[str, str]) -> None:
        self._tools = dict(tools)
        self._entries: dict[tuple[str, str], str] = {}

    def taken(self, found: DistributionOffer | Fault) -> DistributionOffer:
        """Register everything that a distribution provides, and return it.

        Raises:
            PluginError: It could not be read, or it uses a name that it must not use. Nothing is registered then.
        """
        if isinstance(found, Fault):
            raise PluginError(str(found.distribution), found.reason, code=found.code)
        for entry in found.entries:
            for api in entry.api:
                reason = misfit(tuple(api))
                if reason:
                    text = f"entry point {quote_untrusted(entry.name)} {reason}"
                    raise PluginError(str(found.distribution), text, code="plugin.api")
        self.tools(found.distribution, found.tools, found.toolsets)
        return found

    def entry_points(self, distribution: Distribution) -> None:
        """Check that the entry points of a distribution are not in use. This does not require its index.

        Raises:
            PluginError: One of them is in use.
        """
        for each in distribution.entry_points:
            owner = self._entries.get((each.group, each.name))
            if owner is not None:
                reason = f"its entry point {quote_untrusted(each.name)} has the same name as one of {owner}"
                raise PluginError(str(distribution), reason, code="plugin.duplicate_entry_point")

    def tools(self, distribution: Distribution, tools: Sequence[str], toolsets: Iterable[str]) -> None:
        """Register the tools and toolsets of a distribution.

        Raises:
            PluginError: It uses a reserved group, an existing tool name, or one name twice. Nothing is registered then.
        """
        for group in sorted({*toolsets, *(tool.rpartition(".")[0] for tool in tools)}):
            owner = owner_of(group)
            if owner not in (None, distribution.key):
                reason = f"uses the name {quote_untrusted(group)}, which belongs to {owner}"
                raise PluginError(str(distribution), reason, code="plugin.reserved_name")
        own: set[str] = set()
        for tool in tools:
            owner = str(distribution) if tool in own else self._tools.get(tool)
            if owner is not None:
                raise PluginError(
                    str(distribution), f"claims {tool}, which {owner} already provides", code="plugin.duplicate"
                )
            own.add(tool)
        self._tools.update(dict.fromkeys(tools, str(distribution)))
        self._entries.update(((each.group, each.name), str(distribution)) for each in distribution.entry_points)


def owner_of(group: str) -> str | None:
    """Return the distribution of this project that owns a group."""
    first = group.partition(".")[0]
    return next((key for key, groups in FIRST_PARTY.items() if first in groups), None)


def _indexed(order: Sequence[Distribution], imports: ConfinedImports | None) -> list[DistributionOffer | Fault]:
    """Return what each distribution provides: from the index that it ships, from the cache, or from a new index."""
    found: dict[str, DistributionOffer | Fault] = {}
    isolated = _isolated_keys(order, imports)
    for each in order:
        entries = shipped_index(each)
        is_isolated = each.key in isolated
        offer = _cached_result(each, is_isolated) if entries is None else DistributionOffer(each, entries)
        if offer is not None:
            found[each.key] = offer
    missing = [each for each in order if each.key not in found]
    if missing:
        found.update(
            (key, cache_report(report, key in isolated)) for key, report in _reports(missing, isolated, imports)
        )
    if not isolated:
        return [found[each.key] for each in order]
    return [_marked(found[each.key], _is_isolated(each, imports)) for each in order]


def _isolated_keys(found: Iterable[Distribution], imports: ConfinedImports | None) -> set[str]:
    """Return the keys of the distributions of which an entry point is isolated."""
    return set() if imports is None else {each.key for each in found if imports.isolated(each)}


def _marked(found: DistributionOffer | Fault, is_isolated: bool) -> DistributionOffer | Fault:
    return found._replace(is_isolated=is_isolated) if isinstance(found, DistributionOffer) else found


def _reports(
    found: Sequence[Distribution],
    isolated: Collection[str],
    imports: ConfinedImports | None,
    limit: float | None = None,
) -> Iterator[tuple[str, Any]]:
    """Yield the key and the report of each distribution, from a process that is confined if it is isolated."""
    confined = [each for each in found if each.key in isolated]
    ordinary = [each for each in found if each.key not in isolated]
    reports: list[Any] = []
    if confined and imports is not None:
        reports += imports.reports(confined)
    if ordinary:
        from neuroscript.discovery.probe import TIMEOUT_SECONDS, probe_all

        reports += probe_all(ordinary, limit or TIMEOUT_SECONDS)
    yield from ((each.distribution.key, each) for each in reports)


def _cache_file(distribution: Distribution, is_isolated: bool) -> str | None:
    """Return the cache file for the index of a distribution, for this Python version and these folders."""
    return cache_path("index", *_whose(distribution, is_isolated))


def _whose(distribution: Distribution, is_isolated: bool) -> tuple[object, ...]:
    """Return what identifies a cached index; one that a confined process has built never counts as another one."""
    confined = ("confined",) if is_isolated else ()
    return (sys.version, RUNTIME_API, sys.path, *distribution, *confined)


def _cached_result(distribution: Distribution, is_isolated: bool) -> DistributionOffer | Fault | None:
    """Return the cached result for a distribution if none of its files has changed."""
    file = _cache_file(distribution, is_isolated)
    cached = None if file is None else read_json(file)
    cached = PROCESS_CACHE.get((distribution, is_isolated)) if cached is None else cached
    if not isinstance(cached, dict) or not _is_current(cached, distribution, is_isolated):
        return None
    if "code" in cached:
        return Fault(distribution, str(cached["code"]), str(cached.get("reason")))
    entries = entries_of(cached.get("index"), distribution)
    return None if entries is None else DistributionOffer(distribution, entries)


def _is_current(cached: Mapping[str, Any], distribution: Distribution, is_isolated: bool) -> bool:
    """Return whether a cached result is for this distribution and none of its files has changed."""
    if cached.get("of") != repr(_whose(distribution, is_isolated)) or not are_unchanged(cached.get("stamps")):
        return False
    try:
        return bool(cached["files"] == stamps_below(cached["roots"]))
    except (KeyError, TypeError, ValueError):
        return False


def cache_report(report: Any, is_isolated: bool = False) -> DistributionOffer | Fault:
    """Return the content of a `probe.Report`, and cache it until a file of the distribution changes.

    A fault is cached only until something is installed or removed next to it. An import that does not end is cached
    longer, because each attempt takes the full time limit.

    Args:
        is_isolated: Whether it is the report of a confined process.
    """
    each: Distribution = report.distribution
    found: dict[str, Any] = {
        "of": repr(_whose(each, is_isolated)),
        "roots": report.roots,
        "files": stamps_below(report.roots),
        "stamps": [],
    }
    offer: DistributionOffer | Fault
    if report.is_usable:
        offer = DistributionOffer(each, report.entries)
        found["index"] = index_to_data(each, report.entries)
    else:
        offer = Fault(each, report.code, report.reason)
        beside = [] if offer.code == "plugin.timeout" else sys.path
        found |= {"code": offer.code, "reason": offer.reason, "stamps": stamps(beside)}
    is_lasting = report.code != "plugin.process" and found["files"] is not None
    if is_lasting and are_settled([*found["files"], *found["stamps"]], report.began):
        _write(each, found, is_isolated)
    return offer


def _write(distribution: Distribution, found: dict[str, Any], is_isolated: bool) -> None:
    """Cache the result for a distribution: for all processes or, without a cache directory, for this one."""
    file = _cache_file(distribution, is_isolated)
    if file is not None and write_json(file, found):
        tidy(os.path.dirname(file), (INDEX_HEAD, HEAD))
    else:
        PROCESS_CACHE[distribution, is_isolated] = found


def check_distributions(
    found: Iterable[Distribution], limit: float, imports: ConfinedImports | None = None
) -> Iterator[Any]:
    """Load each distribution in a new process and yield its report, including conflicts with other distributions.

    Args:
        found: The distributions in the order of an engine: if two provide the same tool, the first one owns it.
        limit: The time limit for each in seconds, including the start of its process; isolated ones have their own.
        imports: Imports distributions whose code this process and its ordinary children do not import, or None.
    """
    found = tuple(found)
    isolated = _isolated_keys(found, imports)
    reports = dict(_reports(found, isolated, imports, limit))
    claims = Claims({})
    for report in (reports[each.key] for each in found):
        offer = cache_report(report, report.distribution.key in isolated)
        try:
            claims.entry_points(report.distribution)
            if isinstance(offer, DistributionOffer):
                claims.taken(offer)
            yield report
        except PluginError as error:
            yield report.with_error(error)


def forget(distribution: Distribution) -> None:
    """Remove the cached result of a distribution that turned out to be wrong, so that the next start reads it again."""
    for is_isolated in (False, True):
        PROCESS_CACHE.pop((distribution, is_isolated), None)
        file = _cache_file(distribution, is_isolated)
        if file is not None:
            remove(file)
