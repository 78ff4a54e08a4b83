"""The schema of a handle's arguments: as the document shows it, and as OpenAI's strict mode takes it.

Source: seed-systems.md rows AH-26, AH-35, AH-36; OpenAI API reference, "Structured Outputs", supported schemas;
contract section 3, None and absence.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from neuroscript.llm.wire.tools import schema_of
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec

SHOWN: Final = ("type", "properties", "required")
"""The keywords that the document shows; a schema that others wrote is what it was."""

NOTES: Final = frozenset({"$comment", "$schema", "default", "deprecated", "examples", "readOnly", "title", "writeOnly"})
"""Keywords that strict mode refuses, and that ask nothing of a value."""

KEPT: Final = frozenset(
    {"type", "description", "enum", "properties", "required", "additionalProperties", "items"}
    | {"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"minItems", "maxItems"}
)
"""Keywords that it takes; what else is asked can not be said there."""


def arguments_schema(spec: ToolSpec) -> dict[str, Any]:
    """Return what a tool takes as the document shows it.

    Null is not spoken of where it only means that nothing is given.
    """
    schema: dict[str, Any] = dict(deepcopy(schema_of(spec)))
    if spec.schema:
        return schema
    for arg in spec.args:
        _say_plainly(arg, schema["properties"][arg.name])
    return {word: schema[word] for word in SHOWN if word in schema}


def _say_plainly(arg: ArgSpec, schema: dict[str, Any]) -> None:
    if arg.required or arg.nullable:
        return
    kinds = [kind for kind in schema["type"] if kind != "null"]
    schema["type"] = kinds[0] if len(kinds) == 1 else kinds
    if "enum" in schema:
        schema["enum"] = [each for each in schema["enum"] if each is not None]


def strictly(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the form of the schema of an object in which each part of it is required, and nothing else is let in.

    What may be left out may be null there: the line takes None for what was not given. There is no such form, and the
    answer is None, where any map or any value is let in, or where something is asked that can not be said.

    >>> strictly({"type": "object", "properties": {"n": {"type": "integer", "default": 1}}})["properties"]
    {'n': {'type': ['integer', 'null']}}
    """
    properties = schema.get("properties", {})
    parts = {name: _part(each, name in schema.get("required", ())) for name, each in properties.items()}
    kept = _kept(schema)
    if kept is None or None in parts.values():
        return None
    return {**kept, "properties": parts, "required": list(parts), "additionalProperties": False}


def _kept(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what strict mode takes of a schema, or None where it would not ask the same."""
    kept = {word: each for word, each in schema.items() if word not in NOTES}
    return kept if kept.keys() <= KEPT else None


def _part(schema: Any, required: bool) -> dict[str, Any] | None:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind is None:
        return None
    kinds = [kind] if isinstance(kind, str) else list(kind)
    made = _kept(schema)
    if "object" in kinds:
        made = strictly(schema) if schema.get("properties") and schema.get("additionalProperties") is False else None
    elif "array" in kinds and made is not None:
        items = _part(schema.get("items"), True)
        made = None if items is None else {**made, "items": items}
    return made if made is None or required else _nullable(made, kinds)


def _nullable(schema: dict[str, Any], kinds: list[str]) -> dict[str, Any]:
    if "null" in kinds:
        return schema
    choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [*kinds, "null"], **choices}
