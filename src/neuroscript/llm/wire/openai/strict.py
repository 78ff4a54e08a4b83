"""The schema of a tool as OpenAI's strict mode takes it, where it can be said so.

Strict mode has every object closed and every property required; one that may be left out may be null instead, which
says the same to us. Keywords that it refuses, or that it refuses of some models, are told in the description: the line
asks them of each call anyway.

Source: OpenAI's guide "Structured Outputs", supported schemas, with the limits of its first version, which all models
and servers keep; contract section 3, None and absence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from neuroscript.coercion.plain_data import sealed
from neuroscript.llm.wire.tools import schema_of
from neuroscript.spec.tool_spec import ToolSpec

MOST_PROPERTIES: Final = 100
"""How many properties all objects may have together."""

DEEPEST: Final = 5
"""How many objects and lists may stand in each other."""

MOST_CHOICES: Final = 500
"""How many values all enumerations may have together."""

MOST_TEXT: Final = 15_000
"""How many characters the names of properties and the texts of enumerations may have together."""

MANY_CHOICES: Final = 250
MOST_TEXT_OF_MANY: Final = 7_500
"""How many characters the texts of one enumeration may have together that has more than so many values."""

LONGEST_DEFAULT: Final = 200
"""How many characters of JSON a default may have to be told."""

SAID: Final[Mapping[str, str]] = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} keys",
    "maxProperties": "at most {} keys",
    "pattern": "matching {}",
}
"""What is told of each keyword that is left out."""

DROPPED: Final = frozenset({*SAID, "default", "writeOnly", "contentEncoding", "description", "deprecated"})
CONTAINERS: Final = frozenset({"object", "array"})
PARTS: Final = frozenset({"type", "enum", "properties", "required", "additionalProperties", "items"})


class NotStrict(Exception):
    """A schema that strict mode would refuse, or could only take with another meaning."""


def strict_schema(spec: ToolSpec) -> dict[str, Any] | None:
    """Return what a tool takes as a schema for strict mode, or None where there is none that means the same.

    There is none for free maps, for `any`, for schemas of others, and for what is larger than the API takes.

    Returns:
        A schema made once for each spec; it is shared and can not be changed.

    >>> from neuroscript import ArgSpec, ArgType
    >>> spec = ToolSpec("ping", "net", (ArgSpec("host", ArgType.STRING, default="localhost"),))
    >>> strict_schema(spec)["properties"]
    {'host': {'type': ['string', 'null'], 'description': 'By default "localhost".'}}
    """
    key = "openai, strict schema"
    if key not in spec.exports:
        spec.exports[key] = sealed(_strict(spec))
    schema: dict[str, Any] | None = spec.exports[key]
    return schema


def _strict(spec: ToolSpec) -> dict[str, Any] | None:
    if spec.schema:
        return None
    try:
        schema = _rule(schema_of(spec), Room(), 1)
    except NotStrict:
        return None
    schema.pop("description", None)  # the tool itself has it
    return schema


class Room:
    """What is left of the limits of one schema; NotStrict where nothing is left."""

    def __init__(self) -> None:
        self.properties = MOST_PROPERTIES
        self.choices = MOST_CHOICES
        self.text = MOST_TEXT

    def take_properties(self, names: Iterable[str]) -> None:
        """Count the properties of one object."""
        lengths = [len(name) for name in names]
        self.properties -= len(lengths)
        self._take_text(sum(lengths))

    def take_choices(self, choices: Sequence[Any]) -> None:
        """Count the values of one enumeration."""
        length = sum(len(choice) for choice in choices if type(choice) is str)
        if len(choices) > MANY_CHOICES and length > MOST_TEXT_OF_MANY:
            raise NotStrict
        self.choices -= len(choices)
        self._take_text(length)

    def _take_text(self, length: int) -> None:
        self.text -= length
        if min(self.properties, self.choices, self.text) < 0:
            raise NotStrict


def _rule(schema: Mapping[str, Any], room: Room, depth: int) -> dict[str, Any]:
    """Return one schema, at whatever depth, as strict mode takes it."""
    if depth > DEEPEST or "type" not in schema or not (PARTS | DROPPED).issuperset(schema):
        raise NotStrict
    words = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if len(words) > 1 and not CONTAINERS.isdisjoint(words):
        made: dict[str, Any] = {"anyOf": [_form(schema, word, room, depth) for word in words]}
    else:
        made = _form(schema, schema["type"], room, depth)
    description = _description(schema)
    return {**made, "description": description} if description else made


def _form(schema: Mapping[str, Any], word: Any, room: Room, depth: int) -> dict[str, Any]:
    if word == "object":
        return _closed(schema, room, depth)
    if word == "array":
        return {"type": "array", "items": _rule(schema.get("items", {}), room, depth + 1)}
    if "enum" not in schema:
        return {"type": word}
    room.take_choices(schema["enum"])
    return {"type": word, "enum": schema["enum"]}


def _closed(schema: Mapping[str, Any], room: Room, depth: int) -> dict[str, Any]:
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
    """Return the description, and after it what is not told by keywords."""
    told = ", ".join(_told(schema))
    parts = (schema.get("description", ""), f"{told[0].upper()}{told[1:]}." if told else "")
    return " ".join(part for part in parts if part)


def _told(schema: Mapping[str, Any]) -> Iterator[str]:
    for word, text in SAID.items():
        if word in schema:
            yield text.format(schema[word])
    default = schema.get("default")
    if default is not None:
        text = json.dumps(default, ensure_ascii=False)
        if len(text) <= LONGEST_DEFAULT:
            yield f"by default {text}"
