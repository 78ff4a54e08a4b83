"""Wire names: names of tools and arguments that model APIs accept, and their mapping back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, Protocol, cast

import attrs

from neuroscript.coercion.parameters import one_of
from neuroscript.errors import RegistryError
from neuroscript.io.text import quote_untrusted
from neuroscript.names import MAX_SPELLING_CHARS, from_wire, wire_name

if TYPE_CHECKING:
    from neuroscript.spec.tool_spec import ToolSpec


class HasSpec(Protocol):
    """A tool that has a spec, as a `ToolImplementation` or a `ToolInfo`."""

    @property
    def spec(self) -> ToolSpec:
        """The spec."""


MAX_WIRE_NAME_CHARS: Final = 64
"""Maximum number of characters in a tool name for the APIs of OpenAI, Anthropic and Google."""

DIGEST_DIGITS: Final = 8
"""Number of digest digits at the end of a truncated name."""

BARE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names of a server's tools that all APIs accept."""

NameStyle = Literal["grouped", "bare"]
"""How tools are named: ``math__add``, or ``add`` where no other tool has this name."""

NAMES: Final = one_of("grouped", "bare")

ARGUMENT_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Argument names that Anthropic accepts; any other name makes it reject the whole request."""

NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9_.-]")


@attrs.frozen
class WireNames:
    """The mapping between canonical names of tools and the names that a model uses.

    A name of more than 64 characters is truncated and ends in a digest of the whole name. Names that are not in the
    table are converted by the rule ``group__name``, so that tool names invented by a model are reported as it wrote
    them, as far as the APIs permit.

    Attributes:
        wires: Wire names of tools, by canonical name.
        tools: Canonical names, by wire name.
        keys: Replacements of argument names that Anthropic rejects, see `argument_replacements`, by canonical tool
            name.
    """

    wires: Mapping[str, str] = attrs.field(factory=dict)
    tools: Mapping[str, str] = attrs.field(factory=dict)
    keys: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls, tools: Iterable[HasSpec | ToolSpec], style: NameStyle = "grouped", reserved: Collection[str] = ()
    ) -> WireNames:
        """Return the names of *tools*, each a `ToolImplementation`, a `ToolInfo` or a `ToolSpec`.

        Args:
            style: With ``bare``, a name is ``add`` instead of ``math__add``, and a tool of an MCP server has the name
                that it has there. Tools whose bare names are equal have their groups.
            reserved: Names without ``__`` that no tool may have; a tool with such a bare name has its group.

        Raises:
            RegistryError: If two of them would have the same name. The error names both.

        >>> from neuroscript import ToolSpec
        >>> WireNames.of([ToolSpec("add", "math")]).wires
        {'math.add': 'math__add'}
        >>> WireNames.of([ToolSpec("add", "math"), ToolSpec("len", "str"), ToolSpec("len", "list")], "bare").wires
        {'math.add': 'add', 'str.len': 'str__len', 'list.len': 'list__len'}
        """
        specs = [spec_of(tool) for tool in tools]
        keys = {spec.full_name: odd for spec in specs if (odd := argument_replacements(spec))}
        wires = {spec.full_name: truncate(wire_name(spec.full_name)) for spec in specs}
        return cls.under(wires if style == "grouped" else _without_groups(specs, wires, reserved), keys)

    @classmethod
    def under(cls, wires: Mapping[str, str], keys: Mapping[str, Mapping[str, str]] | None = None) -> WireNames:
        """Return a mapping from explicit wire names by canonical name; *keys* is the attribute of that name.

        Raises:
            RegistryError: If two wire names are equal. The error names both tools.
        """
        known: dict[str, str] = {}
        for name, wire in wires.items():
            if known.setdefault(wire, name) != name:
                raise RegistryError(
                    f"{quote_untrusted(known[wire])} and {quote_untrusted(name)} "
                    f"would both be named {quote_untrusted(wire)}"
                )
        return cls(wires, known, keys or {})

    def wire(self, name: str) -> str:
        """Return the wire name of a tool; a name invented by a model is made acceptable to the APIs.

        >>> WireNames().wire("math.add"), WireNames().wire("look up!")
        ('math__add', 'look_up_')
        """
        return self.wires.get(name) or truncate(NOT_ALLOWED.sub("_", wire_name(name[:MAX_SPELLING_CHARS])))

    def tool(self, wire: str) -> str:
        """Return the canonical name for a wire name, also if it is not in the table.

        >>> WireNames().tool("math__add")
        'math.add'
        """
        return self.tools.get(wire) or from_wire(wire)


def _without_groups(specs: Sequence[ToolSpec], wires: Mapping[str, str], reserved: Collection[str]) -> dict[str, str]:
    """Return the bare name of each tool, or its name in *wires* if another tool has the bare one, or it is reserved."""
    bare = {spec.full_name: _bare_name(spec) for spec in specs}
    taken = Counter([*bare.values(), *reserved, *(wire for name, wire in wires.items() if wire != bare[name])])
    return {name: each if taken[each] == 1 else wires[name] for name, each in bare.items()}


def _bare_name(spec: ToolSpec) -> str:
    name = spec.exports.get("definition", {}).get("name", "")
    return name if BARE_NAME.fullmatch(name) else truncate(spec.name)


def truncate(wire: str) -> str:
    """Return a name with at most `MAX_WIRE_NAME_CHARS` characters; names with the same beginning stay different."""
    if len(wire) <= MAX_WIRE_NAME_CHARS:
        return wire
    return f"{wire[: MAX_WIRE_NAME_CHARS - DIGEST_DIGITS - 1]}_{sha256(wire.encode()).hexdigest()[:DIGEST_DIGITS]}"


def argument_replacements(spec: ToolSpec) -> Mapping[str, str]:
    """Return replacements for the argument names of a tool that do not match `ARGUMENT_NAME`; usually none.

    >>> from neuroscript import ArgSpec, ToolSpec
    >>> argument_replacements(ToolSpec("find", "mail", (ArgSpec("$top", "int"), ArgSpec("user-id", "string"))))
    {'$top': '_top'}
    """
    kept: Mapping[str, str] | None = spec.exports.get("odd keys")
    if kept is None:
        names = [arg.name for arg in spec.args]
        kept = spec.exports["odd keys"] = _renamed(
            [name for name in names if not ARGUMENT_NAME.fullmatch(name)], {*names}
        )
    return kept


def _renamed(names: Iterable[str], taken: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        wire = NOT_ALLOWED.sub("_", name)
        if len(wire) > MAX_WIRE_NAME_CHARS or wire in taken:
            wire = (
                f"{wire[: MAX_WIRE_NAME_CHARS - DIGEST_DIGITS - 1]}_{sha256(name.encode()).hexdigest()[:DIGEST_DIGITS]}"
            )
        found[name] = wire
        taken.add(wire)
    return found


def spec_of(tool: HasSpec | ToolSpec) -> ToolSpec:
    """Return the `ToolSpec` of a tool, or the spec itself."""
    spec: ToolSpec = getattr(tool, "spec", cast("ToolSpec", tool))
    return spec
