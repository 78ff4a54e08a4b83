"""Tool definitions and call arguments as model APIs need them.

A definition is made once for each spec. APIs accept only a map as arguments, so `arguments_as_map` wraps any other
value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from neuroscript.coercion.plain_data import freeze, to_plain
from neuroscript.coercion.schema_inspection import NAMED
from neuroscript.formats.json_schema import spec_to_schema
from neuroscript.io.text import NotJSON, parse_json
from neuroscript.runtime.wire_names import WireNames, spec_of
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec


def tool_description(spec: ToolSpec) -> str:
    """Return the description that a model reads: a deprecation notice, what the tool does, and when to use it.

    >>> tool_description(ToolSpec("ping", "net", description="Ask who is there.", deprecated="use net.find"))
    'Deprecated: use net.find. Ask who is there.'
    """
    deprecated = f"Deprecated: {spec.deprecated.rstrip('.')}." if spec.deprecated else ""
    return " ".join(part for part in (deprecated, spec.description, spec.when_to_use) if part.strip())


def input_schema(spec: ToolSpec) -> Mapping[str, Any]:
    """Return the arguments of a tool as standard JSON Schema, without defaults of secrets.

    ``discriminator`` is left out, because it is a keyword of OpenAPI and not of JSON Schema.

    >>> from neuroscript import ArgSpec
    >>> spec = ToolSpec("ping", "net", (ArgSpec("key", "string", secret=True, default="sesame"),))
    >>> input_schema(spec)["properties"]
    {'key': {'type': ['string', 'null'], 'writeOnly': True}}
    """
    schema = spec_to_schema(spec, exact=False)
    found: Mapping[str, Any] = _discreet(schema) if any(arg.holds_secret for arg in spec.args) else schema
    return _without_discriminators(found) if any(map(_has_discriminator, spec.args)) else found


def _has_discriminator(arg: ArgSpec) -> bool:
    return bool(arg.discriminator) or any(map(_has_discriminator, arg.nested))


def _without_discriminators(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_discriminators(each) for each in node]
    if not isinstance(node, dict):
        return node
    is_union = "anyOf" in node
    return {
        word: _without_discriminators(each) for word, each in node.items() if not (is_union and word == "discriminator")
    }


def _discreet(node: Any, *, is_rule: bool = True) -> Any:
    """Return a part of a schema, without the defaults of rules that hold a secret.

    Args:
        is_rule: Whether the part is a rule, rather than a map of rules by name.
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
    """Return whether a part of a schema contains a secret."""
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return (isinstance(node, dict) and node.get("writeOnly") is True) or any(map(_hides, parts))


def make_definitions(
    tools: Iterable[Any], names: WireNames | None, key: str, make: Callable[[ToolSpec, str], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the result of *make* for each tool and its name, cached on the spec under *key* and the name.

    Raises:
        RegistryError: If *names* is None and two tools would have the same name.
    """
    specs = [spec_of(tool) for tool in tools]
    names = names or WireNames.of(specs)
    wires = names.wires
    found: list[dict[str, Any]] = []
    for spec in specs:
        name = wires.get(spec.full_name) or names.wire(spec.full_name)
        cached = spec.exports.get(key)
        if cached is None or cached[0] != name:
            cached = spec.exports[key] = (name, freeze(make(spec, name)))
        found.append(cached[1])
    return found


MALFORMED: Final = "INVALID_JSON"
"""The key for arguments that are not valid JSON, so that a model sees what it wrote."""


IN_ORDER: Final = "arguments"
"""The key for positional arguments."""


def arguments_as_map(arguments: Any) -> dict[str, Any]:
    """Return the arguments of a `ToolCall` as a JSON-compatible map.

    >>> arguments_as_map('{"a": 1}'), arguments_as_map('{"a": '), arguments_as_map([1, 2])
    ({'a': 1}, {'INVALID_JSON': '{"a": '}, {'arguments': [1, 2]})
    """
    decoded = decode_arguments(arguments)
    if isinstance(decoded, Mapping):
        return {str(key): to_plain(each) for key, each in decoded.items()}
    if isinstance(decoded, str):
        return {MALFORMED: decoded}
    return {IN_ORDER: to_plain(decoded)} if decoded else {}


def rename_arguments(arguments: Any, keys: Mapping[str, str]) -> Any:
    """Return arguments with some keys renamed if they are a map; return any other value unchanged.

    >>> rename_arguments({"$top": 1, "b": 2}, {"$top": "_top"})
    {'_top': 1, 'b': 2}
    """
    if not keys or not isinstance(arguments, Mapping):
        return arguments
    return {keys.get(name, name): each for name, each in arguments.items()}


def decode_arguments(arguments: Any) -> Any:
    """Return arguments decoded from JSON if they are a map or a list; return any other value unchanged."""
    if not isinstance(arguments, str):
        return arguments
    if not arguments.strip():
        return {}
    try:
        decoded = parse_json(arguments)
    except NotJSON:
        return arguments
    return decoded if isinstance(decoded, (dict, list)) else arguments
