"""Schemas with their references and ``allOf`` replaced by what they stand for, and with null taken out.

Only the keywords that a spec can express are copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.schema_inspection import MARK, resolve_pointer

WORDS: Final = (
    *("type", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "allOf"),
    *("$ref", "default", "description", "writeOnly", "nullable", "minimum", "maximum", "minLength", "maxLength"),
    *("exclusiveMinimum", "exclusiveMaximum"),
    *("minItems", "maxItems", "minProperties", "maxProperties", "prefixItems", "additionalItems", "uniqueItems"),
    *("propertyNames", MARK),
)
"""The keywords that are read. Other keywords are never copied."""


@attrs.frozen(eq=False)
class BareSchema:
    """A schema without references and null.

    Attributes:
        schema: The schema; its alternatives still have references.
        has_null: Whether the original allows null.
        targets: The identities of the targets of the references that were followed.
        source: The original, which must not be freed while its identity is in use.
    """

    schema: dict[str, Any]
    has_null: bool
    targets: frozenset[int] = frozenset()
    source: Any = None


_CUT: Final[dict[str, Any]] = {}


class SchemaResolver:
    """The schemas inside one root, each resolved once, however many other schemas refer to it.

    Args:
        root: The schema that references point into.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._bare: dict[int, BareSchema] = {}
        self._resolved: dict[int, tuple[Any, dict[str, Any], frozenset[int]]] = {}
        self._nulls: dict[int, tuple[Any, bool]] = {}
        self._required: dict[int, frozenset[str]] = {}

    def without_null(self, schema: Any) -> BareSchema:
        """Return a schema without null, in whatever form null is written.

        Each schema is read once, however many other schemas refer to it.
        """
        if not isinstance(schema, dict):
            return BareSchema(_CUT, schema is not False)
        if id(schema) not in self._bare:
            resolved, targets = self._resolve_once(schema)
            self._bare[id(schema)] = attrs.evolve(self._without_null(resolved, targets), source=schema)
        return self._bare[id(schema)]

    def _without_null(self, bare: dict[str, Any], targets: frozenset[int]) -> BareSchema:
        for word in ("anyOf", "oneOf"):
            ways = bare.get(word)
            if isinstance(ways, list) and "type" not in bare:
                return self._one_way(bare, word, ways, targets)
        words = bare.get("type")
        if words is None:
            asked = "enum" in bare or "const" in bare or "allOf" in bare
            return BareSchema(bare, self.lists_null(bare) if asked else True, targets)
        if isinstance(words, list) and "null" in words and len(words) > 1:
            left = [word for word in words if word != "null"]
            bare = {**read_keywords(bare), "type": left[0] if len(left) == 1 else left}
            return BareSchema(bare, "enum" not in bare or self.lists_null(bare), targets)
        return BareSchema(bare, bare.get("nullable") is True or words == "null", targets)

    def _one_way(self, bare: dict[str, Any], word: str, ways: list[Any], targets: frozenset[int]) -> BareSchema:
        """Return the only alternative other than null, or the schema with the alternatives other than null."""
        found = [(way, self.without_null(way)) for way in ways]
        left = [(way, each) for way, each in found if each.schema.get("type") != "null"]
        has_null = any(each.has_null for _, each in found)
        rest = read_keywords(bare, but=word)
        if found and not left:
            return BareSchema({**rest, "type": "null"}, True, targets)
        if len(left) == 1:
            [(_, only)] = left
            return BareSchema({**read_keywords(only.schema), **rest}, has_null, targets | only.targets)
        return BareSchema({**rest, word: [way for way, _ in left]}, has_null, targets)

    def lists_null(self, schema: dict[str, Any]) -> bool:
        """Return whether null is one of the choices of a schema. Each list is read once."""
        if "const" in schema:
            return schema["const"] is None
        listed = schema.get("enum")
        if not isinstance(listed, list):
            return False
        if id(listed) not in self._nulls:
            self._nulls[id(listed)] = (listed, any(each is None for each in listed))
        return self._nulls[id(listed)][1]

    def required(self, schema: Mapping[str, Any]) -> frozenset[str]:
        """Return the names that a schema requires. Each list is read once, however many schemas share it."""
        names = schema.get("required", ())
        if id(names) not in self._required:
            self._required[id(names)] = frozenset(names)
        return self._required[id(names)]

    def _resolve_once(self, schema: dict[str, Any]) -> tuple[dict[str, Any], frozenset[int]]:
        """Return a schema with its reference replaced by the target and its ``allOf`` merged, and the targets."""
        if id(schema) not in self._resolved:
            self._resolved[id(schema)] = (schema, *self._resolve(schema))
        _, found, targets = self._resolved[id(schema)]
        return found, targets

    def _resolve(self, schema: dict[str, Any]) -> tuple[dict[str, Any], frozenset[int]]:
        if "$ref" in schema:
            target = resolve_pointer(self._root, schema["$ref"])
            if not isinstance(target, dict):
                return {}, frozenset()
            found, targets = self._resolve_once(target)
            rest = read_keywords(schema, but="$ref")
            return ({**read_keywords(found), **rest} if rest else found), targets | {id(target)}
        ways = schema.get("allOf")
        if not isinstance(ways, list) or not ways or (len(ways) == 1 and "type" in schema):
            return schema, frozenset()
        parts = [self._resolve_once(each) for each in ways if isinstance(each, dict)]
        targets = frozenset().union(*(each for _, each in parts))
        rest = read_keywords(schema, but="allOf")
        merged = read_keywords(parts[0][0]) if parts else {}
        for each, _ in parts[1:]:
            merged = _merged(merged, read_keywords(each))
        return (_merged(merged, rest) if "type" in rest or "properties" in rest else {**merged, **rest}), targets


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that accepts what both accept, and perhaps more; without a type if their types differ."""
    if "type" in one and "type" in other and one["type"] != other["type"]:
        return {word: each for word, each in {**one, **other}.items() if word in ("description", "default")}
    merged = {**one, **other}
    both = [each["properties"] for each in (one, other) if isinstance(each.get("properties"), dict)]
    if len(both) == 2:
        first, second = both
        merged["properties"] = {
            **first,
            **{name: {"allOf": [first[name], each]} if name in first else each for name, each in second.items()},
        }
    names = [name for each in (one, other) for name in each.get("required", ())]
    if names:
        merged["required"] = [*dict.fromkeys(names)]
    if False in (one.get("additionalProperties"), other.get("additionalProperties")):
        merged["additionalProperties"] = False
    if "nullable" in merged and not (one.get("nullable") is True and other.get("nullable") is True):
        del merged["nullable"]
    return merged


def read_keywords(schema: dict[str, Any], but: str = "") -> dict[str, Any]:
    """Return the keywords of a schema that are read, except one."""
    return {word: schema[word] for word in WORDS if word in schema and word != but}
