"""Checks for third-party JSON Schemas: whether a schema is supported, and whether it has constraints beyond a spec.

References to other documents are rejected and never fetched. A schema that is too large, nests too deeply, or
refers to itself without reaching another value is rejected with all of its faults.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

import attrs

from neuroscript.io.text import quote_untrusted

MARK: Final = "x-neuroscript"
"""Our one extension keyword. It holds the facts of a spec that JSON Schema cannot express."""

FORMATS_FACT: Final = "formats"
"""The fact at the root of an imported schema that the formats of strings are checked."""

VALIDATE_FACT: Final = "validate"
"""The fact at the root of an imported schema that its spec had to leave out constraints that a spec can express."""

DEPTH: Final = 64
NODES: Final = 50_000
TEXT: Final = 2**20
"""The maximum nesting depth, number of values, and number of characters of a schema."""

MAX_DIGITS: Final = 1_000
"""The maximum number of digits of an integer. Python converts much longer ones to a string slowly, or not at all."""

LONG_NUMBER: Final = f"#: contains a number with more than {MAX_DIGITS} digits"

NOT_JSON: Final = "#: contains a value that JSON cannot represent"
"""The fault of a value that is not JSON."""

MAX_EXPANDED_SCHEMAS: Final = 20_000
"""The maximum number of schemas after each reference is replaced by its target."""

MAX_SCHEMAS_OF_ONE_VALUE: Final = 2_000
"""The maximum number of schemas for one value of a recursive schema. Validation takes the square of this."""

MAX_CHAIN_SCHEMAS: Final = 64
"""The maximum length of a chain of schemas for one value, by ``$ref``, ``anyOf`` and similar keywords."""

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
HOLDING: Final = frozenset({*ONE, *MANY, *NAMED})
DEFINITION_KEYWORDS: Final = frozenset({"$defs", "definitions"})
"""Keywords that hold one schema, a list of schemas, or schemas by name; all of these; and the targets of references."""

SAME_VALUE: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
"""Keywords whose schemas apply to the same value."""

TYPES: Final = ("null", "boolean", "object", "array", "number", "integer", "string")
"""The values of ``type``."""

REFUSED: Final = {
    "$dynamicRef": "write $ref",
    "$recursiveRef": "write $ref",
}


@attrs.frozen
class SchemaFindings:
    """The findings about a schema.

    Attributes:
        faults: Why the schema is not supported, one sentence with a path each; empty if it is supported.
        is_recursive: Whether a schema in it refers to itself.
        asks_more: Whether it has constraints beyond those of the spec derived from it.
        is_object: Whether it describes an object, as the schema of a tool's arguments must.
    """

    faults: tuple[str, ...] = ()
    is_recursive: bool = False
    asks_more: bool = False
    is_object: bool = True

    @property
    def tool_faults(self) -> tuple[str, ...]:
        """Why it cannot describe the arguments of a tool, one sentence each."""
        return self.faults or (() if self.is_object else (NO_OBJECT,))


NO_OBJECT: Final = "#: the arguments of a tool are an object; write type: object"


@functools.lru_cache(maxsize=1024)
def check_schema(text: str) -> SchemaFindings:
    """Return the findings about a schema that is stored as JSON text."""
    try:
        return inspect_schema(json.loads(text))
    except (ValueError, RecursionError):
        return SchemaFindings(("the schema is not valid JSON",))


def inspect_schema(schema: object) -> SchemaFindings:
    """Return the findings about a schema that is plain data."""
    faults = tuple(size_faults(schema))
    if faults:
        return SchemaFindings(faults)
    if not isinstance(schema, dict):
        return SchemaFindings((NO_OBJECT,))
    faults = tuple(_faults(schema))
    if faults:
        return SchemaFindings(faults)
    whole = _Traversal(schema)
    whole.visit(schema)
    faults = tuple(_unfolding_faults(schema, whole, whole.of_same_values() if whole.is_cyclic else whole))
    from neuroscript.coercion.schema_coverage import is_covered

    return SchemaFindings(faults, whole.is_cyclic, not is_covered(schema), _is_object(schema))


def _unfolding_faults(root: dict[str, Any], whole: _Traversal, same: _Traversal) -> Iterator[str]:
    if same.is_cyclic:
        yield "#: a $ref leads back to itself without reaching another value"
    elif max(same.heights.values()) > MAX_CHAIN_SCHEMAS:
        yield f"#: more than {MAX_CHAIN_SCHEMAS} schemas in one chain of $ref, anyOf and similar keywords"
    elif whole.is_cyclic and max(same.sizes.values()) > MAX_SCHEMAS_OF_ONE_VALUE:
        yield f"#: more than {MAX_SCHEMAS_OF_ONE_VALUE} schemas for one value in a schema that refers to itself"
    elif not whole.is_cyclic and whole.sizes[id(root)] > MAX_EXPANDED_SCHEMAS:
        yield f"#: more than {MAX_EXPANDED_SCHEMAS} schemas after its references are expanded"


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type", "object") == "object" or (type(schema["type"]) is list and "object" in schema["type"])


def size_faults(schema: object) -> Iterator[str]:
    """Yield why a value is not JSON or is too large. The traversal stops at the limits."""
    rest: list[tuple[Any, int]] = [(schema, 1)]
    nodes = text = 0
    strange = has_long_number = False
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
                if depth < DEPTH and {*map(type, each)} == {str}:  # a fast path for long enums
                    nodes += len(each)
                    text += sum(map(len, each))
                else:
                    rest.extend((inner, depth + 1) for inner in each)
            case str():
                text += len(each)
            case float():
                strange = strange or not math.isfinite(each)
            case int() if each.bit_length() > MAX_DIGITS * 10 // 3:
                has_long_number = True
            case _:
                strange = strange or not (each is None or isinstance(each, int))
        if nodes + len(rest) > NODES or text > TEXT:
            yield f"#: more than {NODES} values or {TEXT} characters"
            return
    if has_long_number:
        yield LONG_NUMBER
    if strange:
        yield NOT_JSON


def iter_subschemas(schema: Any) -> Iterator[tuple[str, str | int | None, Any]]:
    """Yield each direct subschema: the keyword that holds it, its name or index there, and the subschema."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword not in HOLDING:
            continue
        if keyword in ONE and isinstance(value, (dict, bool)):
            yield keyword, None, value
        elif keyword in MANY and isinstance(value, list):
            yield from ((keyword, index, each) for index, each in enumerate(value))
        elif keyword in NAMED and isinstance(value, dict):
            for name, each in value.items():
                if not (keyword == "dependencies" and isinstance(each, list)):
                    yield keyword, name, each


def checks_formats(schema: Mapping[str, Any]) -> bool:
    """Return whether the formats of the strings of an imported schema are checked."""
    facts = schema.get(MARK)
    return isinstance(facts, dict) and facts.get(FORMATS_FACT) is True


def _step(keyword: str, name: str | int | None) -> str:
    return keyword if name is None else f"{keyword}/{quote_untrusted(str(name))}"


def _faults(root: dict[str, Any]) -> Iterator[str]:
    draft = root.get("$schema", "")
    if draft != "" and (not isinstance(draft, str) or draft.removesuffix("#") not in DRAFTS):
        yield "#/$schema: only JSON Schema 2020-12, 2019-09 and draft 7 are supported"
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
        rest.extend((f"{path}/{_step(keyword, name)}", each) for keyword, name, each in iter_subschemas(schema))
        yield from (f"{path}/{fault}" for fault in _keyword_faults(root, schema, path))
        if isinstance(schema.get("$ref"), str):
            rest.append((quote_untrusted(schema["$ref"]), resolve_pointer(root, schema["$ref"]) or True))


def _keyword_faults(root: dict[str, Any], schema: dict[str, Any], path: str) -> Iterator[str]:
    for keyword, instead in REFUSED.items():
        if keyword in schema:
            yield f"{keyword}: not supported; {instead}"
    if path != "#" and "$id" in schema:
        yield "$id: a nested schema cannot have its own base URI"
    reference = schema.get("$ref", "#")
    if not isinstance(reference, str) or (reference != "#" and not reference.startswith("#/")):
        yield "$ref: only references within the schema are supported, such as #/$defs/name"
    elif not isinstance(resolve_pointer(root, reference), (dict, bool)):
        yield "$ref: no such schema in this document"
    for keyword in ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"):
        if not isinstance(schema.get(keyword, {}), dict):
            yield f"{keyword}: expected schemas by name"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(each, str) for each in required):
        yield "required: expected a list of names"
    words = schema.get("type", "object")
    if isinstance(words, list) and len(words) > len(TYPES):
        yield f"type: expected at most {len(TYPES)} words"
    elif not all(isinstance(each, str) for each in (words if isinstance(words, list) else [words])):
        yield "type: expected a type name or a list of type names"
    if not isinstance(schema.get("enum", []), list):
        yield "enum: expected a list"


def resolve_pointer(root: Any, reference: str) -> Any:
    """Return the target of a reference such as ``#/$defs/name``, or None if it does not exist."""
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


NOTES: Final = frozenset(
    {
        *("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment"),
        "discriminator",
    }
)
"""Keywords that do not constrain a value."""

ALONE: Final = frozenset({"type", "properties", "required", "additionalProperties", "$schema", *DEFINITION_KEYWORDS})
"""Root keywords that never constrain several arguments together."""


def without_properties(text: str, names: Collection[str]) -> str | None:
    """Return the schema without some properties, as JSON text; None if it constrains several properties together."""
    schema = json.loads(text)
    if [word for word in schema if word not in ALONE | NOTES and not word.startswith("x-")]:
        return None
    properties = schema.get("properties", {})
    schema["properties"] = {name: each for name, each in properties.items() if name not in names}
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if name not in names]
    return json.dumps(schema)


class _Traversal:
    """A depth-first traversal of schemas. It is iterative because a hostile schema can be deeper than Python's stack.

    Args:
        root: The schema that references point into.
        only_same: Whether to follow only schemas for the same value.

    Attributes:
        sizes: How many schemas each schema expands to, including itself, by identity; at most `MAX_EXPANDED_SCHEMAS`
            + 1. A schema that occurs within itself counts once.
        heights: The length of the longest chain of schemas for the same value that starts at each schema, by identity.
        is_cyclic: Whether a schema occurs within itself.
    """

    def __init__(self, root: dict[str, Any], *, only_same: bool = False) -> None:
        self._root = root
        self._only_same = only_same
        self._schemas: list[dict[str, Any]] = []
        self.sizes: dict[int, int] = {}
        self.heights: dict[int, int] = {}
        self.is_cyclic = False

    def visit(self, start: dict[str, Any]) -> None:
        """Measure a schema and every schema that is reachable from it."""
        path: dict[int, tuple[list[Any], list[Any], Iterator[Any]]] = {}
        rest = [start] if id(start) not in self.sizes else []
        while rest:
            schema = rest[-1]
            if id(schema) not in path:
                same, every = self._following(schema)
                path[id(schema)] = same, every, iter(every)
            same, every, left = path[id(schema)]
            for each in left:
                self.is_cyclic = self.is_cyclic or id(each) in path
                if isinstance(each, dict) and id(each) not in path and id(each) not in self.sizes:
                    rest.append(each)
                    break
            else:
                del path[id(rest.pop())]
                self._schemas.append(schema)
                self.sizes[id(schema)] = min(
                    MAX_EXPANDED_SCHEMAS + 1, 1 + sum(self.sizes.get(id(each), 1) for each in every)
                )
                self.heights[id(schema)] = 1 + max((self.heights.get(id(each), 1) for each in same), default=0)

    def _following(self, schema: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        """Return the schemas that apply to the same value, and those schemas together with the schemas of its parts."""
        same: list[Any] = [resolve_pointer(self._root, schema["$ref"])] if "$ref" in schema else []
        of_parts: list[Any] = []
        for keyword, _, each in iter_subschemas(schema):
            if keyword in SAME_VALUE:
                same.append(each)
            elif keyword not in DEFINITION_KEYWORDS and not self._only_same:
                of_parts.append(each)
        return same, [*same, *of_parts]

    def of_same_values(self) -> _Traversal:
        """Return a traversal of all visited schemas that follows only schemas for the same value."""
        found = _Traversal(self._root, only_same=True)
        for each in self._schemas:
            found.visit(each)
        return found
