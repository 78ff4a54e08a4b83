"""Tool schemas for OpenAI's strict mode, for tools that it can express.

Strict mode requires closed objects in which every property is required. An optional property becomes nullable, which
the call pipeline treats the same. Keywords that strict mode rejects, or rejects for some models, move to the
description; the call pipeline enforces them anyway.

The limits are those of the first version of strict mode, which all models and servers meet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from neuroscript.coercion.plain_data import freeze
from neuroscript.llm.wire.tools import input_schema
from neuroscript.spec.tool_spec import ToolSpec

MAX_PROPERTIES: Final = 100
"""Maximum properties of all objects together."""

MAX_DEPTH: Final = 5
"""Maximum nesting depth of objects and lists."""

MAX_CHOICES: Final = 500
"""Maximum values of all enumerations together."""

MAX_NAME_CHARS: Final = 15_000
"""Maximum characters of property names and enumeration strings together."""

LARGE_ENUM_CHOICES: Final = 250
MAX_LARGE_ENUM_CHARS: Final = 7_500
"""Maximum characters of the strings in an enumeration with more than `LARGE_ENUM_CHOICES` values."""

MAX_DEFAULT_CHARS: Final = 200
"""Maximum JSON characters of a default that the description states."""

KEYWORD_TEXTS: Final[Mapping[str, str]] = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} keys",
    "maxProperties": "at most {} keys",
    "pattern": "matching {}",
    "format": "in the format {}",
}
"""The wording for each keyword that moves to the description."""

UNIQUE_TEXT: Final = "without repeated items"
"""The wording for a list whose items must differ."""

UNSUPPORTED_KEYWORDS: Final = frozenset(
    {*KEYWORD_TEXTS, "default", "writeOnly", "contentEncoding", "description", "deprecated", "uniqueItems"}
)
CONTAINERS: Final = frozenset({"object", "array"})
PARTS: Final = frozenset({"type", "enum", "properties", "required", "additionalProperties", "items"})
CHOICE_PARTS: Final = frozenset({"anyOf"})
"""The keywords of a union."""


class NotStrict(Exception):
    """Raised for a schema that strict mode would reject, or would accept with another meaning."""


def strict_schema(spec: ToolSpec) -> dict[str, Any] | None:
    """Return the schema of a tool for strict mode, or None if no equivalent schema exists.

    Free maps, `any`, custom schemas, and schemas beyond the API's limits have none.

    Returns:
        A read-only schema that is made once for each spec.

    >>> from neuroscript import ArgSpec, ArgType
    >>> spec = ToolSpec("ping", "net", (ArgSpec("host", ArgType.STRING, default="localhost"),))
    >>> strict_schema(spec)["properties"]
    {'host': {'type': ['string', 'null'], 'description': 'By default "localhost".'}}
    """
    key = "openai, strict schema"
    if key not in spec.exports:
        spec.exports[key] = freeze(_strict(spec))
    schema: dict[str, Any] | None = spec.exports[key]
    return schema


def _strict(spec: ToolSpec) -> dict[str, Any] | None:
    if spec.schema:
        return None
    try:
        schema = _rule(input_schema(spec), Budget(), 1)
    except NotStrict:
        return None
    schema.pop("description", None)  # already in the definition of the tool
    return schema


class Budget:
    """The remaining limits of one schema; raises NotStrict when a limit is exceeded."""

    def __init__(self) -> None:
        self.properties = MAX_PROPERTIES
        self.choices = MAX_CHOICES
        self.text = MAX_NAME_CHARS

    def take_properties(self, names: Iterable[str]) -> None:
        """Count the properties of one object."""
        lengths = [len(name) for name in names]
        self.properties -= len(lengths)
        self._take_text(sum(lengths))

    def take_choices(self, choices: Sequence[Any]) -> None:
        """Count the values of one enumeration."""
        length = sum(len(choice) for choice in choices if type(choice) is str)
        if len(choices) > LARGE_ENUM_CHOICES and length > MAX_LARGE_ENUM_CHARS:
            raise NotStrict
        self.choices -= len(choices)
        self._take_text(length)

    def _take_text(self, length: int) -> None:
        self.text -= length
        if min(self.properties, self.choices, self.text) < 0:
            raise NotStrict


def _rule(schema: Mapping[str, Any], room: Budget, depth: int) -> dict[str, Any]:
    """Return a schema at any depth in strict form."""
    if "anyOf" in schema:
        return _union(schema, room, depth)
    if depth > MAX_DEPTH or "type" not in schema or not (PARTS | UNSUPPORTED_KEYWORDS).issuperset(schema):
        raise NotStrict
    words = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if len(words) > 1 and not CONTAINERS.isdisjoint(words):
        made: dict[str, Any] = {"anyOf": [_form(schema, word, room, depth) for word in words]}
    else:
        made = _form(schema, schema["type"], room, depth)
    description = _description(schema)
    return {**made, "description": description} if description else made


def _union(schema: Mapping[str, Any], room: Budget, depth: int) -> dict[str, Any]:
    """Return a union in strict form; alternatives are as deep as the union itself."""
    if depth > MAX_DEPTH or not (CHOICE_PARTS | UNSUPPORTED_KEYWORDS).issuperset(schema):
        raise NotStrict
    made: dict[str, Any] = {"anyOf": [_rule(each, room, depth) for each in schema["anyOf"]]}
    description = _description(schema)
    return {**made, "description": description} if description else made


def _form(schema: Mapping[str, Any], word: Any, room: Budget, depth: int) -> dict[str, Any]:
    if word == "object":
        return _closed(schema, room, depth)
    if word == "array":
        items = schema.get("items", {})
        if not isinstance(items, Mapping):  # a tuple
            raise NotStrict
        return {"type": "array", "items": _rule(items, room, depth + 1)}
    if "enum" not in schema:
        return {"type": word}
    room.take_choices(schema["enum"])
    return {"type": word, "enum": schema["enum"]}


def _closed(schema: Mapping[str, Any], room: Budget, depth: int) -> dict[str, Any]:
    if "properties" not in schema or schema.get("additionalProperties") is not False:
        raise NotStrict
    properties = schema["properties"]
    room.take_properties(properties)
    return {
        "type": "object",
        "properties": {name: _rule(each, room, depth + 1) for name, each in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }


def _description(schema: Mapping[str, Any]) -> str:
    """Return the description, followed by the constraints that keywords cannot express."""
    rules = ", ".join(_keyword_texts(schema))
    parts = (schema.get("description", ""), f"{rules[0].upper()}{rules[1:]}." if rules else "")
    return " ".join(part for part in parts if part)


def _keyword_texts(schema: Mapping[str, Any]) -> Iterator[str]:
    for word, text in KEYWORD_TEXTS.items():
        if word in schema:
            yield text.format(schema[word])
    if schema.get("uniqueItems"):
        yield UNIQUE_TEXT
    default = schema.get("default")
    if default is not None:
        text = json.dumps(default, ensure_ascii=False)
        if len(text) <= MAX_DEFAULT_CHARS:
            yield f"by default {text}"
