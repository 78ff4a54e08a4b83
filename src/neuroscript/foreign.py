"""A JSON Schema that others wrote: whether it can be taken, and whether it asks more than a spec can say.

Only what is at hand is looked at: a reference to another document is refused and never fetched. A schema that is too
large, too deep, or that refers to itself without coming to another value, is refused with all that is wrong with it.

Source: issue "Authoring", schemas; JSON Schema 2020-12 and draft 7.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

import attrs

from neuroscript.display import shown

MARK: Final = "x-neuroscript"
"""The one keyword of ours: what a spec says and JSON Schema has no word for."""

DEPTH: Final = 64
NODES: Final = 50_000
TEXT: Final = 2**20
"""How deep a schema may nest, how many values it may have, and how many characters of text."""

STRANGE: Final = "#: holds something that JSON has no word for"
"""What is said of what is no JSON at all."""

UNFOLDED: Final = 20_000
"""How many schemas there may be when each reference is replaced by what it names."""

DRAFTS: Final = frozenset(
    {
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    }
)

ONE: Final = (
    *("additionalProperties", "additionalItems", "items", "contains", "propertyNames", "contentSchema"),
    *("unevaluatedItems", "unevaluatedProperties", "not", "if", "then", "else"),
)
MANY: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
NAMED: Final = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
SHELVES: Final = frozenset({"$defs", "definitions"})
"""Keywords that hold one schema, a list of them, schemas by name; and those that only keep them for references."""

IN_PLACE: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
"""Keywords whose schemas speak of the same value."""

REFUSED: Final = {
    "$dynamicRef": "write $ref",
    "$recursiveRef": "write $ref",
}


@attrs.frozen
class Found:
    """What a look at a schema has found.

    Attributes:
        faults: Why it can not be taken, one sentence with a path each; none where it can.
        is_recursive: Whether a schema in it refers to itself.
        asks_more: Whether it asks more than the spec that is read off it.
    """

    faults: tuple[str, ...] = ()
    is_recursive: bool = False
    asks_more: bool = False


@functools.lru_cache(maxsize=1024)
def looked_at(text: str) -> Found:
    """Return what is found in a schema that is kept as JSON text."""
    try:
        return found_in(json.loads(text))
    except (ValueError, RecursionError):
        return Found(("the schema is no JSON",))


def found_in(schema: object) -> Found:
    """Return what is found in a schema as plain data."""
    faults = tuple(size_faults(schema))
    if faults:
        return Found(faults)
    if not isinstance(schema, dict) or not _is_object(schema):
        return Found(("#: a tool takes an object; write type: object",))
    faults = tuple(_faults(schema))
    if faults:
        return Found(faults)
    unfolding = _Unfolding(schema)
    unfolding.count(schema, ())
    if unfolding.is_recursive:
        faults = tuple(unfolding.endless())
    elif unfolding.counted[id(schema)] > UNFOLDED:
        faults = (f"#: more than {UNFOLDED} schemas when its references are replaced by what they name",)
    return Found(faults, unfolding.is_recursive, not _is_plain_root(schema))


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type", "object") == "object" or (type(schema["type"]) is list and "object" in schema["type"])


def size_faults(schema: object) -> Iterator[str]:
    """Yield why a thing is no JSON, or too much of it; it is not followed beyond the limits."""
    rest: list[tuple[Any, int]] = [(schema, 1)]
    nodes = text = 0
    strange = False
    while rest:
        each, depth = rest.pop()
        nodes += 1
        if depth > DEPTH:
            yield f"#: nests deeper than {DEPTH} levels"
            return
        match each:
            case dict():
                text += sum(len(key) if type(key) is str else 0 for key in each)
                strange = strange or any(type(key) is not str for key in each)
                rest.extend((inner, depth + 1) for inner in each.values())
            case list() | tuple():
                strange = strange or isinstance(each, tuple)
                rest.extend((inner, depth + 1) for inner in each)
            case str():
                text += len(each)
            case float():
                strange = strange or not math.isfinite(each)
            case _:
                strange = strange or not (each is None or isinstance(each, int))
        if nodes + len(rest) > NODES or text > TEXT:
            yield f"#: more than {NODES} values or {TEXT} characters"
            return
    if strange:
        yield STRANGE


def parts(schema: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield each schema in a schema, with the keyword it stands under and its path from there."""
    if not isinstance(schema, dict):
        return
    for keyword in ONE:
        if isinstance(schema.get(keyword), (dict, bool)):
            yield keyword, keyword, schema[keyword]
    for keyword in MANY:
        if isinstance(schema.get(keyword), list):
            yield from ((keyword, f"{keyword}/{index}", each) for index, each in enumerate(schema[keyword]))
    for keyword in NAMED:
        if isinstance(schema.get(keyword), dict):
            for name, each in schema[keyword].items():
                if not (keyword == "dependencies" and isinstance(each, list)):
                    yield keyword, f"{keyword}/{shown(name)}", each


def _faults(root: dict[str, Any]) -> Iterator[str]:
    draft = root.get("$schema", "")
    if draft != "" and (not isinstance(draft, str) or draft.removesuffix("#") not in DRAFTS):
        yield "#/$schema: only JSON Schema 2020-12, 2019-09 and draft 7 are understood"
    rest: list[tuple[str, Any]] = [("#", root)]
    seen: set[int] = set()
    while rest:
        path, schema = rest.pop()
        if isinstance(schema, bool) or id(schema) in seen:
            continue
        if not isinstance(schema, dict):
            yield f"{path}: expected a schema, got {type(schema).__name__}"
            continue
        seen.add(id(schema))
        rest.extend((f"{path}/{step}", each) for _, step, each in parts(schema))
        yield from (f"{path}/{fault}" for fault in _keyword_faults(root, schema, path))
        if isinstance(schema.get("$ref"), str):
            rest.append((shown(schema["$ref"]), pointed(root, schema["$ref"]) or True))


def _keyword_faults(root: dict[str, Any], schema: dict[str, Any], path: str) -> Iterator[str]:
    for keyword, instead in REFUSED.items():
        if keyword in schema:
            yield f"{keyword}: is not understood; {instead}"
    if path != "#" and "$id" in schema:
        yield "$id: a schema within another may have no base of its own"
    reference = schema.get("$ref", "#")
    if not isinstance(reference, str) or (reference != "#" and not reference.startswith("#/")):
        yield "$ref: only references into the schema itself are followed, as in #/$defs/name"
    elif not isinstance(pointed(root, reference), (dict, bool)):
        yield "$ref: names no schema in here"
    for keyword in ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"):
        if not isinstance(schema.get(keyword, {}), dict):
            yield f"{keyword}: expected schemas by name"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(each, str) for each in required):
        yield "required: expected a list of names"
    words = schema.get("type", "object")
    if not all(isinstance(each, str) for each in (words if isinstance(words, list) else [words])):
        yield "type: expected a word, or a list of words"
    if not isinstance(schema.get("enum", []), list):
        yield "enum: expected a list"


def pointed(root: Any, reference: str) -> Any:
    """Return what a reference such as ``#/$defs/name`` names, or None where it names nothing."""
    found = root
    for step in reference.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name.isdecimal() and name.isascii() and len(name) < 6:
            found = found[int(name)] if int(name) < len(found) else None
        else:
            return None
    return found


ALONE: Final = frozenset({"type", "properties", "required", "additionalProperties", "$schema", *SHELVES})
"""Keywords at the root that ask nothing of several arguments together."""


def without(text: str, names: Collection[str]) -> str | None:
    """Return a schema of fewer properties, as JSON text; None where it asks something of several together."""
    schema = json.loads(text)
    if [word for word in schema if word not in ALONE | NOTES and not word.startswith("x-")]:
        return None
    properties = schema.get("properties", {})
    schema["properties"] = {name: each for name, each in properties.items() if name not in names}
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if name not in names]
    return json.dumps(schema)


class _Unfolding:
    """How large a schema is with its references replaced, and where that has no end."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.counted: dict[int, int] = {}
        self.is_recursive = False

    def inner(self, schema: Any) -> Iterator[tuple[bool, Any]]:
        """Yield each schema that speaks of the value or of a part of it, and whether it is of the very same value."""
        for keyword, _, each in parts(schema):
            if keyword not in SHELVES:
                yield keyword in IN_PLACE, each
        if isinstance(schema, dict) and "$ref" in schema:
            yield True, pointed(self.root, schema["$ref"])

    def count(self, schema: Any, above: tuple[int, ...]) -> int:
        """Return how many schemas there are, and remember it; a schema that is met within itself counts once."""
        if not isinstance(schema, dict):
            return 1
        if id(schema) in above or len(above) > 4 * DEPTH:
            self.is_recursive = True
            return 1
        if id(schema) not in self.counted:
            around = (*above, id(schema))
            self.counted[id(schema)] = min(
                UNFOLDED + 1, 1 + sum(self.count(each, around) for _, each in self.inner(schema))
            )
        return self.counted[id(schema)]

    def endless(self) -> Iterator[str]:
        """Yield a fault where a schema comes back to itself without coming to another value."""
        done: set[int] = set()
        rest: list[Any] = [self.root]
        while rest:
            if self._comes_back(rest.pop(), frozenset(), done, rest):
                yield "#: a $ref comes back to itself without coming to another value, or only after very many others"
                return

    def _comes_back(self, schema: Any, above: frozenset[int], done: set[int], rest: list[Any]) -> bool:
        if not isinstance(schema, dict) or id(schema) in done:
            return False
        if id(schema) in above or len(above) > 4 * DEPTH:
            return True
        for in_place, each in self.inner(schema):
            if not in_place:
                rest.append(each)
            elif self._comes_back(each, above | {id(schema)}, done, rest):
                return True
        done.add(id(schema))
        return False


NOTES: Final = frozenset(
    {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment"}
)
"""Keywords that ask nothing of a value."""

PLAIN: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"minLength", "maxLength", "enum"}),
    "integer": frozenset({"minimum", "maximum", "enum"}),
    "number": frozenset({"minimum", "maximum", "enum"}),
    "boolean": frozenset({"enum"}),
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
}
"""For each type the keywords that a spec says as well as a schema does."""

SCALARS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def _is_plain_root(schema: dict[str, Any]) -> bool:
    """Tell whether a spec says all that a schema asks of the arguments of a tool."""
    properties = schema.get("properties", {})
    known = {"type", "properties", "required", "additionalProperties", "$schema"} | NOTES
    return (
        not [word for word in schema if word not in known and not word.startswith("x-")]
        and schema.get("type") == "object"
        and type(schema.get("additionalProperties", False)) is bool
        and set(schema.get("required", ())) <= properties.keys()
        and all(map(_is_plain, properties.values()))
    )


def _is_plain(schema: Any, *, is_part: bool = False) -> bool:
    """Tell whether a spec says all that a schema asks; None is let in for what may be left out."""
    if not isinstance(schema, dict):
        return False
    words = schema.get("type")
    kinds = [each for each in words if each != "null"] if type(words) is list else [words]
    if len(kinds) != 1 or type(kinds[0]) is not str or kinds[0] not in PLAIN or MARK in schema:
        return False
    kind, has_null = kinds[0], type(words) is list and "null" in words
    asked = {word for word in schema if word not in NOTES and word != "type" and not word.startswith("x-")}
    if not asked <= PLAIN[kind] or (is_part and (asked or has_null)):
        return False
    if kind == "object":
        return _is_plain_map(schema)
    if kind == "array" and "items" in schema and not _is_plain_item(schema["items"]):
        return False
    return _has_plain_bounds(schema, kind) and _has_plain_choices(schema, kind, has_null)


def _is_plain_item(schema: Any) -> bool:
    """Tell whether a spec says all that is asked of each item; it has no word for lists of lists."""
    return _is_plain_scalar(schema) or (
        isinstance(schema, dict) and schema.get("type") == "object" and _is_plain(schema)
    )


def _is_plain_scalar(schema: Any) -> bool:
    return _is_plain(schema, is_part=True) and type(schema["type"]) is str and schema["type"] in SCALARS


def _is_plain_map(schema: dict[str, Any]) -> bool:
    properties, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
    if not set(schema.get("required", ())) <= properties.keys():
        return False
    if properties:
        return type(rest) is bool and all(map(_is_plain, properties.values()))
    return rest is True or _is_plain_scalar(rest)


def _has_plain_bounds(schema: dict[str, Any], kind: str) -> bool:
    for low, high in (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")):
        bounds = [schema[word] for word in (low, high) if word in schema]
        numbers = (int, float) if low == "minimum" else (int,)
        if any(type(each) not in numbers or abs(each) > 2**53 for each in bounds) or bounds != sorted(bounds):
            return False
    return True


def _has_plain_choices(schema: dict[str, Any], kind: str, has_null: bool) -> bool:
    choices = schema.get("enum")
    if choices is None:
        return "enum" not in schema
    exact = [each for each in choices if type(each) in SCALARS.get(kind, ())]
    return bool(exact) and len(exact) + (None in choices) == len(choices) and (None in choices) <= has_null
