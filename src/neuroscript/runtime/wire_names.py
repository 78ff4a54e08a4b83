"""Wire names: names of tools and arguments that model APIs accept, and their mapping back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Protocol, cast

import attrs

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
    def of(cls, tools: Iterable[HasSpec | ToolSpec]) -> WireNames:
        """Return the names of *tools*, each a `ToolImplementation`, a `ToolInfo` or a `ToolSpec`.

        Raises:
            RegistryError: If two of them would have the same name. The error names both.

        >>> from neuroscript import ToolSpec
        >>> WireNames.of([ToolSpec("add", "math")]).wires
        {'math.add': 'math__add'}
        """
        specs = [spec_of(tool) for tool in tools]
        keys = {spec.full_name: odd for spec in specs if (odd := argument_replacements(spec))}
        return cls.under({spec.full_name: truncate(wire_name(spec.full_name)) for spec in specs}, keys)

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
