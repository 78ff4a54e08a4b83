"""Tool definitions for Anthropic's Messages API, with input examples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from neuroscript.coercion.context import CoercionSettings
from neuroscript.coercion.plain_data import to_plain
from neuroscript.errors import ArgumentError
from neuroscript.llm.wire.tools import input_schema, make_definitions, rename_arguments, tool_description
from neuroscript.runtime.wire_names import WireNames, argument_replacements
from neuroscript.spec.binding import bind_arguments, by_name
from neuroscript.spec.tool_spec import Example, ToolSpec

UNSUPPORTED_ROOT_KEYWORDS: Final = ("oneOf", "allOf", "anyOf")
"""Keywords that the API rejects at the root of a schema. The call pipeline still enforces them."""

BY_NAME: Final = ("dependentRequired", "dependentSchemas", "dependencies")
"""Keywords that refer to arguments by name.

They are left out if the arguments have other names on the wire; the call pipeline still enforces them.
"""


def to_tools(tools: Iterable[Any], *, names: WireNames | None = None) -> list[Any]:
    """Return the value of ``tools`` in a request.

    Args:
        tools: Each a `ToolImplementation`, a `ToolInfo` or a `ToolSpec`.
        names: The names that the model uses; by default `WireNames.of` the tools.

    Returns:
        A new list. Its dicts are read-only and made once for each spec.

    Raises:
        RegistryError: If two tools would have the same name.

    >>> to_tools([ToolSpec("now", "time", description="Tell the time.")])[0]["name"]
    'time__now'
    """
    return make_definitions(tools, names, "anthropic", _tool_data)


def tools(tools: Iterable[Any], names: WireNames) -> list[dict[str, Any]]:
    """Return the same as `to_tools`, with the signature that `Wire` needs."""
    return to_tools(tools, names=names)


def _tool_data(spec: ToolSpec, name: str) -> dict[str, Any]:
    schema = _renamed(input_schema(spec), argument_replacements(spec))
    told: dict[str, Any] = {"name": name}
    text = tool_description(spec)
    if text:
        told["description"] = text
    told["input_schema"] = {key: each for key, each in schema.items() if key not in UNSUPPORTED_ROOT_KEYWORDS}
    examples = [rename_arguments(each, argument_replacements(spec)) for each in _examples(spec)]
    return {**told, "input_examples": examples} if examples else told


def _renamed(schema: Mapping[str, Any], keys: Mapping[str, str]) -> Mapping[str, Any]:
    """Return a schema with argument names that the API accepts; descriptions state the original names."""
    if not keys:
        return schema
    said = {
        name: {**each, "description": " ".join(filter(None, (f"Its name is {name}.", each.get("description"))))}
        for name, each in schema["properties"].items()
        if name in keys and isinstance(each, Mapping)
    }
    properties = rename_arguments({**schema["properties"], **said}, keys)
    required = [keys.get(name, name) for name in schema.get("required", ())]
    kept = {word: each for word, each in schema.items() if word not in BY_NAME}
    return {**kept, "properties": properties, **({"required": required} if required else {})}


def _examples(spec: ToolSpec) -> Iterator[dict[str, Any]]:
    """Yield the arguments of each example that matches the schema; the API rejects a tool with any other example."""
    hidden = {arg.name for arg in spec.args if arg.holds_secret}
    for example in spec.examples:
        given = _by_name(spec, example)
        if given is not None and hidden.isdisjoint(given) and _fits(spec, given):
            yield given


def _by_name(spec: ToolSpec, example: Example) -> dict[str, Any] | None:
    args = example.args
    found = dict(args) if isinstance(args, Mapping) else by_name(spec, args)
    return None if example.error or found is None else {str(name): to_plain(each) for name, each in found.items()}


def _fits(spec: ToolSpec, given: dict[str, Any]) -> bool:
    try:
        said = json.loads(json.dumps(given, allow_nan=False))
        bind_arguments(spec, CoercionSettings("strict"), said, by_name=True)
    except (ArgumentError, TypeError, ValueError):
        return False
    return True
