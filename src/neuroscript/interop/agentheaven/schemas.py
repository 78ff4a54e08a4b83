"""The argument schema of a handle: as AgentHeaven documents it, and for OpenAI's strict mode.

See the OpenAI API reference, "Structured Outputs", supported schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from neuroscript.llm.wire.tools import input_schema
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec

SHOWN: Final = ("type", "properties", "required")
"""The keywords in AgentHeaven's documentation; schemas from other sources are not reduced to them."""

NOTES: Final = frozenset({"$comment", "$schema", "default", "deprecated", "examples", "readOnly", "title", "writeOnly"})
"""Keywords that strict mode rejects, and that do not restrict values."""

STRICT_KEYWORDS: Final = frozenset(
    {"type", "description", "enum", "properties", "required", "additionalProperties", "items"}
    | {"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"minItems", "maxItems"}
)
"""Keywords that strict mode supports; it cannot express other restrictions."""


def arguments_schema(spec: ToolSpec) -> dict[str, Any]:
    """Return the argument schema of a tool as AgentHeaven documents it.

    Null is not shown if it only means that an argument is omitted.
    """
    schema: dict[str, Any] = dict(deepcopy(input_schema(spec)))
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


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an object schema in strict form: every property is required, and no others are allowed.

    Optional properties become nullable, because the engine treats None as an omitted argument. Return None if there is
    no strict form: the schema allows arbitrary maps or values, or has a restriction that strict mode cannot express.

    >>> strict_schema({"type": "object", "properties": {"n": {"type": "integer", "default": 1}}})["properties"]
    {'n': {'type': ['integer', 'null']}}
    """
    properties = schema.get("properties", {})
    parts = {name: _part(each, name in schema.get("required", ())) for name, each in properties.items()}
    kept = _strict_keywords(schema)
    if kept is None or None in parts.values():
        return None
    return {**kept, "properties": parts, "required": list(parts), "additionalProperties": False}


def _strict_keywords(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the keywords for strict mode, or None if they would not express the same restrictions."""
    keywords = {word: each for word, each in schema.items() if word not in NOTES}
    return keywords if keywords.keys() <= STRICT_KEYWORDS else None


def _part(schema: Any, required: bool) -> dict[str, Any] | None:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind is None:
        return None
    kinds = [kind] if isinstance(kind, str) else list(kind)
    made = _strict_keywords(schema)
    if "object" in kinds:
        made = (
            strict_schema(schema) if schema.get("properties") and schema.get("additionalProperties") is False else None
        )
    elif "array" in kinds and made is not None:
        items = _part(schema.get("items"), True)
        made = None if items is None else {**made, "items": items}
    return made if made is None or required else _nullable(made, kinds)


def _nullable(schema: dict[str, Any], kinds: list[str]) -> dict[str, Any]:
    if "null" in kinds:
        return schema
    choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [*kinds, "null"], **choices}
