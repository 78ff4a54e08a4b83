"""Names of tools as the APIs of models take them, and the way back.

Source: seed-systems.md part 3, wire names; issue "Models", names mapped both ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

import attrs

from neuroscript.display import shown
from neuroscript.errors import RegistryError
from neuroscript.names import from_wire, wire_name

LONGEST: Final = 64
"""How many characters the APIs of OpenAI, Anthropic and Google take in the name of a tool."""

DIGITS: Final = 8
"""How many digits of a digest end a name that had to be cut."""


@attrs.frozen
class WireNames:
    """The tools that a model is told of, by the names that it is told.

    A name of more than 64 characters is cut, and ends in a digest of all of it. What stands in no table is spelt by the
    rule alone, ``group__name``, so that names of tools that a model made up are told as it wrote them.

    Attributes:
        wires: What a model calls a tool, by canonical name.
        tools: The canonical names, by what a model calls them.
    """

    wires: Mapping[str, str] = attrs.field(factory=dict)
    tools: Mapping[str, str] = attrs.field(factory=dict)

    @classmethod
    def of(cls, tools: Iterable[Any]) -> WireNames:
        """Return the names of *tools*, each a `ToolImplementation`, a `ToolInfo` or a `ToolSpec`.

        Raises:
            RegistryError: Two of them would have one name; both are named.

        >>> from neuroscript import ToolSpec
        >>> WireNames.of([ToolSpec("add", "math")]).wires
        {'math.add': 'math__add'}
        """
        wires: dict[str, str] = {}
        known: dict[str, str] = {}
        for tool in tools:
            name = spec_of(tool).full_name
            wire = cut(wire_name(name))
            if known.setdefault(wire, name) != name:
                raise RegistryError(f"{shown(known[wire])} and {shown(name)} would both be called {shown(wire)}")
            wires[name] = wire
        return cls(wires, known)

    def wire(self, name: str) -> str:
        """Return what a model calls the tool of a canonical name."""
        return self.wires.get(name) or cut(wire_name(name))

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


def spec_of(tool: Any) -> Any:
    """Return the `ToolSpec` of a tool, or of what is one."""
    return getattr(tool, "spec", tool)
