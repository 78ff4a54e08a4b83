"""Pinned distributions: a reviewed or installed distribution, and the differences between two of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from neuroscript.config.change import Change, breaking_change, compatible
from neuroscript.config.tool_diff import Definition, changes
from neuroscript.discovery.catalog import DistributionOffer
from neuroscript.discovery.installed import normalize_name
from neuroscript.discovery.package_index import IndexedTool
from neuroscript.errors import PluginError, SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.tools.fingerprints import digest_of
from neuroscript.tools.serialization import spec_from_data

MAX_LISTED_CHANGES: Final = 3
"""Number of changes that a summary lists; the others are only counted."""


@attrs.frozen
class PinnedTool:
    """A tool of a pinned distribution.

    Attributes:
        fingerprint: The fingerprint of its whole definition, see `neuroscript.tools.fingerprints.fingerprint`.
        data: Its definition as plain data, under ``spec`` and ``policy``.
    """

    fingerprint: str
    data: Mapping[str, Any] = attrs.field(repr=False)

    @classmethod
    def of(cls, definition: Definition) -> PinnedTool:
        """Return the pinned tool for a definition."""
        data = definition.data
        return cls(digest_of(data), data)

    @property
    def definition(self) -> Definition:
        """Its spec and its policy. Raises a `SpecError` if the data is invalid."""
        return Definition.of_data(self.data)


@attrs.frozen
class Pinned:
    """A distribution at one point in time.

    Attributes:
        name: Its name as written.
        version: Its version.
        tools: Its tools by canonical name.
        aliases: Former names of its tools, with their current names.
        hooks: The unique names of its hooks, sorted.
        is_isolated: Whether the policy isolates it, so that the host never imports its code.
    """

    name: str
    version: str
    tools: Mapping[str, PinnedTool] = attrs.field(factory=dict, repr=False)
    aliases: Mapping[str, str] = attrs.field(factory=dict)
    hooks: tuple[str, ...] = ()
    is_isolated: bool = False

    @classmethod
    def of(cls, offer: DistributionOffer) -> Pinned:
        """Return a distribution as described by its index. Fingerprints are recomputed, not trusted.

        Raises:
            PluginError: If the index contains no valid definitions.
        """
        tools = {tool.name: _indexed(offer, tool) for entry in offer.entries for tool in entry.tools}
        hooks = tuple(dict.fromkeys(hook for entry in offer.entries for hook in entry.hooks))
        each = offer.distribution
        return cls(each.name, each.version, tools, offer.aliases, hooks, offer.is_isolated)

    def __str__(self) -> str:
        return f"{quote_untrusted(self.name)} {quote_untrusted(self.version)}"

    @property
    def key(self) -> str:
        """The name, normalised as in PEP 503."""
        return normalize_name(self.name)


def _indexed(offer: DistributionOffer, tool: IndexedTool) -> PinnedTool:
    """Return a tool as described by an index."""
    try:
        found = PinnedTool.of(Definition(spec_from_data(tool.spec), ToolPolicy(**tool.policy)))
    except (SpecError, TypeError):
        found = None
    if found is None or (found.data["spec"]["fullname"], found.fingerprint) != (tool.name, tool.fingerprint):
        name = quote_untrusted(tool.name)
        reason = f"its index has no valid definition of {name}; rebuild the index with neuroscript index"
        raise PluginError(str(offer.distribution), reason, code="plugin.index")
    return found


@attrs.frozen
class Difference:
    """One difference between two versions of a distribution.

    Attributes:
        tool: The locked name of the tool, or ``""`` for the distribution itself.
        change: The change.
    """

    tool: str
    change: Change

    def __str__(self) -> str:
        return f"{self.tool}: {self.change}" if self.tool else str(self.change)


def compare(old: Pinned, new: Pinned) -> tuple[Difference, ...]:
    """Return the differences between two versions of a distribution; none if they are the same.

    A tool that was renamed, with its old name as an alias, is compared with the tool that the alias refers to.

    Raises:
        SpecError: If a definition is invalid. Definitions read by `Lock` are always valid.
    """
    return (*_of_itself(old, new), *_of_tools(old, new))


def _of_itself(old: Pinned, new: Pinned) -> Iterator[Difference]:
    if old.version != new.version:
        yield Difference(
            "", compatible("version", f"changed from {quote_untrusted(old.version)} to {quote_untrusted(new.version)}")
        )
    if old.is_isolated and not new.is_isolated:
        yield Difference("", breaking_change("isolated", "the policy no longer isolates its code"))
    for hook in sorted({*new.hooks} - {*old.hooks}):
        yield Difference(
            "", breaking_change(f"hooks.{hook}", "now has this hook, which is notified of calls or decides about them")
        )
    for hook in sorted({*old.hooks} - {*new.hooks}):
        yield Difference("", breaking_change(f"hooks.{hook}", "no longer has this hook, which may have refused calls"))
    for name, target in sorted(old.aliases.items()):
        meant = new.aliases.get(name)
        if meant is None:
            yield Difference("", breaking_change(f"aliases.{name}", "is no longer an alias of a tool"))
        elif meant != new.aliases.get(target, target):
            yield Difference("", breaking_change(f"aliases.{name}", "refers to another tool"))
    for name in sorted({*new.aliases} - {*old.aliases} - {*old.tools}):
        yield Difference("", compatible(f"aliases.{name}", "is now an alias of a tool"))


def _of_tools(old: Pinned, new: Pinned) -> Iterator[Difference]:
    for name, tool in sorted(old.tools.items()):
        now = new.tools.get(new.aliases.get(name, name))
        if now is None:
            yield Difference(name, breaking_change("", "the tool was removed"))
        elif now.fingerprint != tool.fingerprint:
            yield from (Difference(name, each) for each in changes(tool.definition, now.definition))
    renamed = {new.aliases[name] for name in old.tools if name in new.aliases}
    for name in sorted({*new.tools} - {*old.tools} - renamed):
        yield Difference(name, compatible("", "a new tool"))


def summarise(differences: Iterable[Difference]) -> str:
    """Return the number of changes of each kind and the first changes, breaking ones first."""
    found = sorted(differences, key=lambda each: each.change.kind)
    first = "; ".join(map(str, found[:MAX_LISTED_CHANGES]))
    more = f"; and {len(found) - MAX_LISTED_CHANGES} more" if len(found) > MAX_LISTED_CHANGES else ""
    return f"{counts_of(found)} ({first}{more})"


def counts_of(differences: Collection[Difference]) -> str:
    """Return the number of changes of each kind in words."""
    counts = " and ".join(f"{number} {kind}" for kind, number in count_changes(differences).items() if number)
    return f"{counts} change{'s' * (len(differences) != 1)}"


def count_changes(differences: Iterable[Difference]) -> dict[str, int]:
    """Return the number of changes of each kind, breaking ones first."""
    kinds = [each.change.kind for each in differences]
    return {"breaking": kinds.count("breaking"), "compatible": kinds.count("compatible")}
