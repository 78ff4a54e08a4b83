"""A distribution as a host has looked at it, or as it is installed, and what is different between the two.

Source: issue "Plugins", lock file; reliability.md part 4.3; peers.md part 2, row 2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from neuroscript.config.spec_diff import Change, breaking, compatible
from neuroscript.config.tool_diff import Definition, changes
from neuroscript.discovery.catalog import Offer
from neuroscript.discovery.installed import normalised
from neuroscript.discovery.package_index import IndexedTool
from neuroscript.errors import PluginError, SpecError
from neuroscript.io.text import shown
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.tools.fingerprints import digest_of
from neuroscript.tools.serialization import spec_from_data

TOLD: Final = 3
"""How many changes a sentence names; of the others, how many there are."""


@attrs.frozen
class PinnedTool:
    """A tool as it was, or is.

    Attributes:
        fingerprint: Of its whole definition, as `neuroscript.tools.fingerprints.fingerprint` gives it.
        data: Its definition as plain data, under ``spec`` and ``policy``.
    """

    fingerprint: str
    data: Mapping[str, Any] = attrs.field(repr=False)

    @classmethod
    def of(cls, definition: Definition) -> PinnedTool:
        """Return the tool that a definition describes."""
        data = definition.data
        return cls(digest_of(data), data)

    @property
    def definition(self) -> Definition:
        """Its spec and its policy, or a `SpecError` where the data are none."""
        return Definition.of_data(self.data)


@attrs.frozen
class Pinned:
    """A distribution as it was, or is.

    Attributes:
        name: Its name as it is written.
        version: Its version.
        tools: Its tools by canonical name.
        aliases: Old names of its tools, with the names that they have.
        hooks: The names of its hooks, each once, in order.
    """

    name: str
    version: str
    tools: Mapping[str, PinnedTool] = attrs.field(factory=dict, repr=False)
    aliases: Mapping[str, str] = attrs.field(factory=dict)
    hooks: tuple[str, ...] = ()

    @classmethod
    def of(cls, offer: Offer) -> Pinned:
        """Return a distribution as its index tells of it; what the index says of fingerprints is not taken on trust.

        Raises:
            PluginError: The index holds no such definitions.
        """
        tools = {tool.name: _indexed(offer, tool) for entry in offer.entries for tool in entry.tools}
        hooks = tuple(dict.fromkeys(hook for entry in offer.entries for hook in entry.hooks))
        return cls(offer.distribution.name, offer.distribution.version, tools, offer.aliases, hooks)

    def __str__(self) -> str:
        return f"{shown(self.name)} {shown(self.version)}"

    @property
    def key(self) -> str:
        """Its name as PEP 503 compares it."""
        return normalised(self.name)


def _indexed(offer: Offer, tool: IndexedTool) -> PinnedTool:
    """Return a tool as an index tells of it."""
    try:
        found = PinnedTool.of(Definition(spec_from_data(tool.spec), ToolPolicy(**tool.policy)))
    except (SpecError, TypeError):
        found = None
    if found is None or (found.data["spec"]["fullname"], found.fingerprint) != (tool.name, tool.fingerprint):
        reason = f"its index does not say what {shown(tool.name)} is; make that anew with neuroscript index"
        raise PluginError(str(offer.distribution), reason, code="plugin.index")
    return found


@attrs.frozen
class Difference:
    """One thing of a distribution that is not what it was.

    Attributes:
        tool: The tool that it is about, by the name that was locked, or ``""``.
        change: What happened.
    """

    tool: str
    change: Change

    def __str__(self) -> str:
        return f"{self.tool}: {self.change}" if self.tool else str(self.change)


def compared(old: Pinned, new: Pinned) -> tuple[Difference, ...]:
    """Return what is not as it was in a distribution; none where it is the same.

    A tool that went and left its name as an alias is compared with the tool that the alias means now.

    Raises:
        SpecError: A definition is none; one that a `Lock` has read always is.
    """
    return (*_of_itself(old, new), *_of_tools(old, new))


def _of_itself(old: Pinned, new: Pinned) -> Iterator[Difference]:
    if old.version != new.version:
        yield Difference("", compatible("version", f"is {shown(new.version)}, and was {shown(old.version)}"))
    for hook in sorted({*new.hooks} - {*old.hooks}):
        yield Difference("", breaking(f"hooks.{hook}", "is asked or told of calls by this hook now"))
    for hook in sorted({*old.hooks} - {*new.hooks}):
        yield Difference("", breaking(f"hooks.{hook}", "has this hook no more, which may have refused calls"))
    for name, target in sorted(old.aliases.items()):
        meant = new.aliases.get(name)
        if meant is None:
            yield Difference("", breaking(f"aliases.{name}", "is no old name of a tool any more"))
        elif meant != new.aliases.get(target, target):
            yield Difference("", breaking(f"aliases.{name}", "means another tool"))
    for name in sorted({*new.aliases} - {*old.aliases} - {*old.tools}):
        yield Difference("", compatible(f"aliases.{name}", "is an old name of a tool now"))


def _of_tools(old: Pinned, new: Pinned) -> Iterator[Difference]:
    for name, tool in sorted(old.tools.items()):
        now = new.tools.get(new.aliases.get(name, name))
        if now is None:
            yield Difference(name, breaking("", "the tool is gone"))
        elif now.fingerprint != tool.fingerprint:
            yield from (Difference(name, each) for each in changes(tool.definition, now.definition))
    renamed = {new.aliases[name] for name in old.tools if name in new.aliases}
    for name in sorted({*new.tools} - {*old.tools} - renamed):
        yield Difference(name, compatible("", "a new tool"))


def summed(differences: Iterable[Difference]) -> str:
    """Return how many changes of each kind there are, and what the first ones are, the breaking ones before others."""
    found = sorted(differences, key=lambda each: each.change.kind)
    first = "; ".join(map(str, found[:TOLD]))
    more = f"; and {len(found) - TOLD} more" if len(found) > TOLD else ""
    return f"{counts_of(found)} ({first}{more})"


def counts_of(differences: Collection[Difference]) -> str:
    """Return in words how many changes of each kind there are."""
    counts = " and ".join(f"{number} {kind}" for kind, number in counted(differences).items() if number)
    return f"{counts} change{'s' * (len(differences) != 1)}"


def counted(differences: Iterable[Difference]) -> dict[str, int]:
    """Return how many changes there are of each kind, the breaking ones first."""
    kinds = [each.change.kind for each in differences]
    return {"breaking": kinds.count("breaking"), "compatible": kinds.count("compatible")}
