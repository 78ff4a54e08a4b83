"""Names of tools and of arguments as the APIs of models take them, and the way back.

Source: seed-systems.md part 3, wire names; issue "Models", names mapped both ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Protocol, cast

import attrs

from neuroscript.errors import RegistryError
from neuroscript.io.text import shown
from neuroscript.names import MAX_SPELLING_CHARS, from_wire, wire_name

if TYPE_CHECKING:
    from neuroscript.spec.tool_spec import ToolSpec


class Specified(Protocol):
    """A tool that has a spec, as a `ToolImplementation` or a `ToolInfo`."""

    @property
    def spec(self) -> ToolSpec:
        """The spec."""


LONGEST: Final = 64
"""How many characters the APIs of OpenAI, Anthropic and Google take in the name of a tool."""

DIGITS: Final = 8
"""How many digits of a digest end a name that had to be cut."""

KEY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""What Anthropic takes as the name of an argument; one that is none has it refuse the whole request."""

OTHERS: Final = re.compile(r"[^A-Za-z0-9_.-]")


@attrs.frozen
class WireNames:
    """The tools that a model is told of, by the names that it is told.

    A name of more than 64 characters is cut, and ends in a digest of all of it. What stands in no table is spelt by the
    rule alone, ``group__name``, so that names of tools that a model made up are told as it wrote them, as far as the
    APIs take them.

    Attributes:
        wires: What a model calls a tool, by canonical name.
        tools: The canonical names, by what a model calls them.
        keys: What arguments are called by whose names Anthropic takes no tool, as `odd_keys` says, by canonical name.
    """

    wires: Mapping[str, str] = attrs.field(factory=dict)
    tools: Mapping[str, str] = attrs.field(factory=dict)
    keys: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, tools: Iterable[Specified | ToolSpec]) -> WireNames:
        """Return the names of *tools*, each a `ToolImplementation`, a `ToolInfo` or a `ToolSpec`.

        Raises:
            RegistryError: Two of them would have one name; both are named.

        >>> from neuroscript import ToolSpec
        >>> WireNames.of([ToolSpec("add", "math")]).wires
        {'math.add': 'math__add'}
        """
        specs = [spec_of(tool) for tool in tools]
        keys = {spec.full_name: odd for spec in specs if (odd := odd_keys(spec))}
        return cls.under({spec.full_name: cut(wire_name(spec.full_name)) for spec in specs}, keys)

    @classmethod
    def under(cls, wires: Mapping[str, str], keys: Mapping[str, Mapping[str, str]] | None = None) -> WireNames:
        """Return the names that *wires* says, by canonical name; *keys* is that of the attributes.

        Raises:
            RegistryError: Two of them are one; both tools are named.
        """
        known: dict[str, str] = {}
        for name, wire in wires.items():
            if known.setdefault(wire, name) != name:
                raise RegistryError(f"{shown(known[wire])} and {shown(name)} would both be named {shown(wire)}")
        return cls(wires, known, keys or {})

    def wire(self, name: str) -> str:
        """Return what a model calls the tool of a canonical name, and how an API takes one that a model made up.

        >>> WireNames().wire("math.add"), WireNames().wire("look up!")
        ('math__add', 'look_up_')
        """
        return self.wires.get(name) or cut(OTHERS.sub("_", wire_name(name[:MAX_SPELLING_CHARS])))

    def tool(self, wire: str) -> str:
        """Return the canonical name of what a model calls *wire*; of a tool that it was not told of, the one it means.

        >>> WireNames().tool("math__add")
        'math.add'
        """
        return self.tools.get(wire) or from_wire(wire)


def cut(wire: str) -> str:
    """Return a name in at most `LONGEST` characters; names that begin alike stay different."""
    if len(wire) <= LONGEST:
        return wire
    return f"{wire[: LONGEST - DIGITS - 1]}_{sha256(wire.encode()).hexdigest()[:DIGITS]}"


def odd_keys(spec: ToolSpec) -> Mapping[str, str]:
    """Return what the arguments of a tool are called whose own names are no `KEY`, by their names; mostly none are.

    >>> from neuroscript import ArgSpec, ToolSpec
    >>> odd_keys(ToolSpec("find", "mail", (ArgSpec("$top", "int"), ArgSpec("user-id", "string"))))
    {'$top': '_top'}
    """
    kept: Mapping[str, str] | None = spec.exports.get("odd keys")
    if kept is None:
        names = [arg.name for arg in spec.args]
        kept = spec.exports["odd keys"] = _renamed([name for name in names if not KEY.fullmatch(name)], {*names})
    return kept


def _renamed(names: Iterable[str], taken: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        wire = OTHERS.sub("_", name)
        if len(wire) > LONGEST or wire in taken:
            wire = f"{wire[: LONGEST - DIGITS - 1]}_{sha256(name.encode()).hexdigest()[:DIGITS]}"
        found[name] = wire
        taken.add(wire)
    return found


def spec_of(tool: Specified | ToolSpec) -> ToolSpec:
    """Return the `ToolSpec` of a tool, or of what is one."""
    spec: ToolSpec = getattr(tool, "spec", cast("ToolSpec", tool))
    return spec
