"""Whether a spec can express all constraints of a JSON Schema, so that calls need no schema validator.

What counts as expressed is what `formats.json_schema_reader` reads completely. Null is allowed where a value may be
missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, Final

from neuroscript.coercion.constraints import nearest_float, stricter_bounds
from neuroscript.coercion.schema_inspection import (
    DEFINITION_KEYWORDS,
    DEPTH,
    MARK,
    NOTES,
    VALIDATE_FACT,
    checks_formats,
    resolve_pointer,
)

KEYWORDS: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"minLength", "maxLength", "enum", "const"}),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const"}),
    "boolean": frozenset({"enum", "const"}),
    "object": frozenset(
        {"properties", "required", "additionalProperties", "propertyNames", "minProperties", "maxProperties"}
    ),
    "array": frozenset({"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"}),
    "null": frozenset(),
}
"""The keywords of each type that a spec can express as well as a schema can."""

SCALARS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}

ANYTHING: Final = frozenset({"string", "number", "boolean", "object", "array"})
"""The types that a union names if it accepts every JSON value except null."""

BOUNDS: Final = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)

ROOT: Final = frozenset({"type", "properties", "required", "additionalProperties", "$schema", *DEFINITION_KEYWORDS})


def is_covered(root: dict[str, Any]) -> bool:
    """Return whether a spec can express all constraints of the schema of a tool's arguments."""
    facts = root.get(MARK)
    if isinstance(facts, dict) and facts.get(VALIDATE_FACT) is True:
        return False
    properties = root.get("properties", {})
    coverage = _Coverage(root)
    return (
        not [word for word in root if word not in ROOT | NOTES and not word.startswith("x-")]
        and root.get("type") == "object"
        and type(root.get("additionalProperties", False)) is bool
        and set(root.get("required", ())) <= properties.keys()
        and all(coverage.covers(each) for each in properties.values())
    )


def fixed_items(schema: Mapping[str, Any]) -> list[Any] | None:
    """Return the schemas of the items of a list whose length they determine, or None."""
    for word, rest in (("prefixItems", "items"), ("items", "additionalItems")):
        items = schema.get(word)
        if not isinstance(items, list) or not items or schema.get("minItems") != len(items):
            continue
        most = schema.get("maxItems")
        if (schema.get(rest) is False and most is None) or most == len(items):
            return items
    return None


class _Coverage:
    """The search for a constraint that no spec can express. It ends at the first one.

    Attributes:
        root: The schema that references point into.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self._notes = NOTES if checks_formats(root) else NOTES | {"format"}
        self._covered: set[tuple[int, bool]] = set()

    def covers(
        self, schema: Any, depth: int = 0, *, is_part: bool = False, above: frozenset[int] = frozenset()
    ) -> bool:
        """Return whether a spec can express all constraints of a schema.

        Args:
            is_part: Whether it is the schema of an item, a value or an alternative, which is never missing.
            above: The identities of the targets of references that led here. A recursive schema is not covered.
        """
        if not isinstance(schema, dict):
            return schema is True
        if (id(schema), is_part) in self._covered:
            return True
        if depth > DEPTH or MARK in schema or not self._covers(schema, depth, is_part, above):
            return False
        self._covered.add((id(schema), is_part))
        return True

    def _covers(self, schema: dict[str, Any], depth: int, is_part: bool, above: frozenset[int]) -> bool:
        words = {word for word in schema if word not in self._notes and not word.startswith("x-")}
        match [*words]:
            case []:
                return True
            case ["$ref"]:
                target = resolve_pointer(self.root, schema["$ref"])
                inside = above | {id(target)}
                return id(target) not in above and self.covers(target, depth + 1, is_part=is_part, above=inside)
            case ["allOf"]:
                ways = schema["allOf"]
                is_one = isinstance(ways, list) and len(ways) == 1
                return is_one and self.covers(ways[0], depth + 1, is_part=is_part, above=above)
            case ["anyOf" | "oneOf" as word]:
                ways = schema[word]
                return isinstance(ways, list) and self._covers_union(ways, word == "oneOf", depth + 1, above)
            case ["enum"] | ["const"]:
                return _has_scalar_choices(schema)
        kinds = _types(schema)
        if len(kinds) != 1:
            return words == {"type"} and bool(kinds) and kinds <= KEYWORDS.keys() and not kinds >= ANYTHING
        [kind] = kinds
        if kind not in KEYWORDS or not words - {"type"} <= KEYWORDS[kind]:
            return False
        if kind == "object":
            return _has_plain_bounds(schema) and self._covers_map(schema, depth + 1, above)
        if kind == "array":
            return _has_plain_bounds(schema) and self._covers_list(schema, depth + 1, above)
        return _has_plain_bounds(schema) and _has_plain_choices(schema, kind)

    def _covers_union(self, ways: list[Any], is_exclusive: bool, depth: int, above: frozenset[int]) -> bool:
        left = [way for way in ways if not (isinstance(way, dict) and way.get("type") == "null")]
        if not left or not all(self.covers(way, depth, is_part=True, above=above) for way in left):
            return False
        heads = [self._head(way) for way in left]
        kinds = [_types(head) for head in heads]
        if len(left) > 1 and (not all(kinds) or frozenset().union(*kinds) >= ANYTHING):
            return False
        nulls = len(ways) - len(left) + sum(map(_allows_null, heads))
        return not is_exclusive or (all(kinds) and nulls <= 1 and _are_exclusive(heads, kinds))

    def _covers_list(self, schema: dict[str, Any], depth: int, above: frozenset[int]) -> bool:
        items = schema.get("items", True)
        is_unique = schema.get("uniqueItems", False)
        if "prefixItems" in schema or isinstance(items, list):
            fixed = fixed_items(schema)
            known = fixed is not None and not is_unique and not ("prefixItems" in schema and isinstance(items, list))
            return known and all(self.covers(each, depth, is_part=True, above=above) for each in fixed or ())
        if "additionalItems" in schema or not self.covers(items, depth, is_part=True, above=above):
            return False
        kinds = _types(self._head(items))
        return is_unique is False or (is_unique is True and len(kinds) == 1 and kinds <= SCALARS.keys())

    def _covers_map(self, schema: dict[str, Any], depth: int, above: frozenset[int]) -> bool:
        properties, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
        if not set(schema.get("required", ())) <= properties.keys():
            return False
        if not all(self.covers(each, depth, above=above) for each in properties.values()):
            return False
        names = schema.get("propertyNames", True)
        if names is not True and (properties or not self._covers_name(names, depth, above)):
            return False
        return (rest is False and bool(properties)) or self.covers(rest, depth, is_part=True, above=above)

    def _covers_name(self, names: Any, depth: int, above: frozenset[int]) -> bool:
        if not isinstance(names, dict) or names.get("type", "string") != "string" or "$ref" in names:
            return False
        return self.covers({**names, "type": "string"}, depth, is_part=True, above=above)

    def _head(self, schema: Any) -> dict[str, Any]:
        """Return the schema behind a chain of references; the chain is known to end."""
        while isinstance(schema, dict):
            if "$ref" in schema:
                schema = resolve_pointer(self.root, schema["$ref"])
            elif isinstance(schema.get("allOf"), list) and "type" not in schema:
                schema = schema["allOf"][0]
            else:
                return schema
        return {}


def _types(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the types that a schema names, without null if there are others; none if it does not say."""
    words = schema.get("type")
    if words is None:
        listed = [schema["const"]] if "const" in schema else schema.get("enum")
        if not isinstance(listed, list):
            return frozenset()
        return frozenset(word for word, kinds in SCALARS.items() if any(type(each) in kinds for each in listed))
    named = frozenset(words if isinstance(words, list) else [words])
    return (named - {"null"}) or named


def _allows_null(schema: Mapping[str, Any]) -> bool:
    listed = [schema["const"]] if "const" in schema else schema.get("enum", [None])
    words = schema.get("type", "null")
    return None in listed and "null" in (words if isinstance(words, list) else [words])


def _are_exclusive(heads: list[dict[str, Any]], kinds: list[frozenset[str]]) -> bool:
    """Return whether no value fits two of several alternatives: by its type, or by a required key with choices."""
    seen: set[str] = set()
    for each in kinds:
        broad = {"number" if kind == "integer" else kind for kind in each} - {"object"}
        if broad & seen:
            return False
        seen |= broad
    maps = [head for head, each in zip(heads, kinds, strict=True) if "object" in each]
    return len(maps) < 2 or any(_tells_apart(name, maps) for name in maps[0].get("properties", {}))


def _tells_apart(name: str, maps: list[dict[str, Any]]) -> bool:
    tags: list[str] = []
    for each in maps:
        rule = each.get("properties", {}).get(name)
        if not isinstance(rule, dict) or name not in each.get("required", ()):
            return False
        listed = [rule["const"]] if "const" in rule else rule.get("enum")
        if not isinstance(listed, list) or not all(type(value) is str for value in listed):
            return False
        tags += set(listed)
    return len(set(tags)) == len(tags)


def _has_plain_bounds(schema: dict[str, Any]) -> bool:
    for low, high in BOUNDS:
        bounds = [schema[word] for word in (low, high) if word in schema]
        numbers = (int, float) if low == "minimum" else (int,)
        if any(type(each) not in numbers or abs(each) > 2**53 for each in bounds) or bounds != sorted(bounds):
            return False
    exclusive = [schema[word] for word in _EXCLUSIVE if word in schema]
    if not exclusive:
        return True
    return all(type(each) in (int, float) and abs(each) <= 2**53 for each in exclusive) and _has_values(schema)


_EXCLUSIVE: Final = ("exclusiveMinimum", "exclusiveMaximum")


def _has_values(schema: dict[str, Any]) -> bool:
    """Return whether a number is within inclusive and exclusive bounds."""
    limits: list[float] = []
    for word, is_lower in (("minimum", True), ("maximum", False)):
        pair = schema.get(word), schema.get(f"exclusive{word.title()}")
        nearest, exclusive = stricter_bounds(*pair, is_lower=is_lower, is_integer="integer" in _types(schema))
        if exclusive is not None:
            nearest = nearest_float(exclusive, is_lower=is_lower)
        limits.append((-inf if is_lower else inf) if nearest is None else nearest)
    return limits[0] <= limits[1]


def _has_plain_choices(schema: dict[str, Any], kind: str) -> bool:
    """Return whether the choices of a scalar, if any, are of its type; null only if the type allows it."""
    words = schema["type"]
    if "const" in schema:
        return "enum" not in schema and type(schema["const"]) in SCALARS.get(kind, ())
    choices = schema.get("enum")
    if choices is None:
        return "enum" not in schema
    nulls = choices.count(None)
    is_exact = {*map(type, choices)} <= {*SCALARS.get(kind, ()), type(None)}
    return is_exact and nulls < len(choices) and nulls <= 1 and (nulls == 0 or "null" in words)


def _has_scalar_choices(schema: dict[str, Any]) -> bool:
    """Return whether choices without a type are scalars, and at most once null."""
    listed = [schema["const"]] if "const" in schema else schema["enum"]
    kinds = [*map(type, listed)] if isinstance(listed, list) else []
    nulls = kinds.count(type(None))
    return nulls <= 1 and nulls < len(kinds) and {*kinds} <= {str, int, float, bool, type(None)}
