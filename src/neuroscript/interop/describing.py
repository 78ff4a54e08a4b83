"""What a model API is told of a tool, made once for each spec.

Source: issue "Models", what exporting costs; design.md, rule 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from neuroscript.sealed import sealed
from neuroscript.spec import ToolSpec
from neuroscript.wirenames import WireNames, spec_of


def description(spec: ToolSpec) -> str:
    """Return what a model is told of a tool: that it is deprecated, what it does, and when it is the right one.

    >>> description(ToolSpec("ping", "net", description="Ask who is there.", deprecated="use net.find"))
    'Deprecated: use net.find. Ask who is there.'
    """
    deprecated = f"Deprecated: {spec.deprecated.rstrip('.')}." if spec.deprecated else ""
    return " ".join(part for part in (deprecated, spec.description, spec.when_to_use) if part.strip())


def made(
    tools: Iterable[Any], names: WireNames | None, key: str, make: Callable[[ToolSpec, str], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return what *make* makes of each tool and its name, kept with its spec under *key* and the name.

    Raises:
        RegistryError: Two of them would have one name, where no *names* are given.
    """
    specs = [spec_of(tool) for tool in tools]
    names = names or WireNames.of(specs)
    wires = names.wires
    found: list[dict[str, Any]] = []
    for spec in specs:
        name = wires.get(spec.full_name) or names.wire(spec.full_name)
        kept = spec.exports.get(key)
        if kept is None or kept[0] != name:
            kept = spec.exports[key] = (name, sealed(make(spec, name)))
        found.append(kept[1])
    return found
