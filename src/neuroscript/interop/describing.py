"""What a model API is told of a tool, made once for each spec.

Source: issue "Models", what exporting costs; design.md, rule 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from neuroscript.foreign import NAMED
from neuroscript.schema import spec_to_schema
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


def schema_of(spec: ToolSpec) -> Mapping[str, Any]:
    """Return what a tool takes as standard JSON Schema, without the defaults of its secrets, which no model needs.

    >>> from neuroscript import ArgSpec
    >>> spec = ToolSpec("ping", "net", (ArgSpec("key", "string", secret=True, default="sesame"),))
    >>> schema_of(spec)["properties"]
    {'key': {'type': ['string', 'null'], 'writeOnly': True}}
    """
    schema = spec_to_schema(spec, exact=False)
    found: Mapping[str, Any] = _discreet(schema) if any(arg.holds_secret for arg in spec.args) else schema
    return found


def _discreet(node: Any, *, is_rule: bool = True) -> Any:
    """Return a part of a schema in which no rule has a default that holds a secret.

    Args:
        is_rule: Whether it is a rule, rather than rules by name.
    """
    if isinstance(node, list):
        return [_discreet(each) for each in node]
    if not isinstance(node, dict):
        return node
    words = node.keys() - {"default"} if is_rule and _hides(node) else node.keys()
    return {
        word: _discreet(each, is_rule=word not in NAMED or not is_rule) for word, each in node.items() if word in words
    }


def _hides(node: Any) -> bool:
    """Tell whether there is a secret in what a part of a schema asks."""
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return (isinstance(node, dict) and node.get("writeOnly") is True) or any(map(_hides, parts))


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
