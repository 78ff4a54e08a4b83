"""What a JSON Schema asks beyond a spec, held against the exact values of a call; the door to the validator.

The validator is jsonschema-rs, of the ``schema`` extra. It fetches nothing, its patterns are matched in linear time or
with a bounded count of steps, and of what it finds no value gets into a text.

Source: issue "Authoring", schemas; ecosystem.md part 7; contract section 6.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from neuroscript._imports import mending
from neuroscript.coercion.context import Where, place, type_name
from neuroscript.coercion.json_schema import looked_at, parts
from neuroscript.errors import LISTED, Problem
from neuroscript.io.text import shown

BACKTRACKS: Final = 100_000
"""How many steps a pattern with look-around or back-references may go back; what takes more does not fit."""

PATTERN_BYTES: Final = 2**20
"""How large a pattern may be when it is compiled."""

ALL_PATTERN_BYTES: Final = 2**28
"""How large all patterns of a schema may be together; each gets the same share."""

NUMBERED: Final = 1000
"""How many problems are counted."""

DRAFT2020: Final = "https://json-schema.org/draft/2020-12/schema"
DRAFT7: Final = "http://json-schema.org/draft-07/schema#"
MISSING: Final = f"the schema asks more than a spec can say; {mending('schema')} brings what holds values to it"


@attrs.frozen(eq=False, repr=False)
class Checker:
    """A schema that is ready to be asked.

    Attributes:
        validator: That of the library.
        is_recursive: Whether it refers to itself; then only whether values fit is asked, for a list of all that is
            wrong may take time without bounds.
    """

    validator: Any
    is_recursive: bool

    def problems(self, values: Mapping[str, Any]) -> list[Problem]:
        """Return what is wrong with arguments as JSON holds them, at most `NUMBERED` things.

        Args:
            values: By name, without those that were not given.
        """
        if self.validator.is_valid(values):
            return []
        if self.is_recursive:
            return [Problem("", "schema.invalid", "what the schema asks", type_name(values))]
        found: list[Problem] = []
        for error in self.validator.iter_errors(values):
            found.append(_problem(error))
            if len(found) == NUMBERED:
                break
        return found or [Problem("", "schema.invalid", "what the schema asks", type_name(values))]


def _problem(error: Any) -> Problem:
    keyword = next((each for each in reversed(error.schema_path) if isinstance(each, str)), "")
    if keyword not in ASKED:
        keyword = error.kind.name
    where: Where = None
    for step in error.instance_path:
        where = (where, step)
    return Problem(place(where), f"schema.{keyword}", _expected(keyword, error.kind), _got(error.instance))


def _expected(keyword: str, kind: Any) -> str:
    """Return what a keyword asks, with the schema's own word for it where that is short."""
    asked = getattr(kind, "value", None)
    if keyword == kind.name and keyword in TOLD and isinstance(asked, (str, int, float, list)):
        return f"{TOLD[keyword]} {shown(asked if isinstance(asked, str) else json.dumps(asked))}"
    return TOLD_ALONE.get(keyword, f"what {keyword} of the schema asks")


def _got(instance: object) -> str:
    match instance:
        case str() | list() | dict():
            return f"{type_name(instance)} of length {len(instance)}"
        case _:
            return type_name(instance)


TOLD: Final[Mapping[str, str]] = {
    "pattern": "a text that matches",
    "format": "a text in the format",
    "multipleOf": "a multiple of",
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "minLength": "a length of at least",
    "maxLength": "a length of at most",
    "minItems": "a length of at least",
    "maxItems": "a length of at most",
    "minProperties": "a length of at least",
    "maxProperties": "a length of at most",
    "required": "the key",
    "type": "type",
}
"""What the keywords ask whose own word is the author's and short."""

TOLD_ALONE: Final[Mapping[str, str]] = {
    "uniqueItems": "each item once",
    "enum": "one of the values that the schema lists",
    "const": "the one value that the schema names",
    "additionalProperties": "no further keys",
    "anyOf": "one of several things that the schema describes",
    "oneOf": "exactly one of several things that the schema describes",
    "not": "something else than the schema excludes",
    "dependentRequired": "the keys that go with those that were given",
}

ASKED: Final = frozenset({*TOLD, *TOLD_ALONE}) | {
    *("additionalItems", "allOf", "contains", "dependencies", "dependentSchemas", "else", "if", "maxContains"),
    *("minContains", "prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    *("contentEncoding", "contentMediaType", "items", "patternProperties"),
}
"""The keywords that a code may name."""


def schema_faults(text: str, names: set[str]) -> Iterator[str]:
    """Yield why a schema, as JSON text, can not belong to a tool with arguments of these names."""
    found = looked_at(text)
    yield from found.tool_faults
    if found.tool_faults:
        return
    properties = json.loads(text).get("properties", {}).keys()
    if set(properties) != names:
        yield "the schema has other properties than the tool has arguments"
    elif found.asks_more:
        yield from compiled(text)[1]


def checker_of(text: str) -> Checker | None:
    """Return what holds values to a schema; None where it asks no more than the spec that was read off it."""
    return compiled(text)[0] if looked_at(text).asks_more else None


@functools.lru_cache(maxsize=1024)
def compiled(text: str) -> tuple[Checker | None, tuple[str, ...]]:
    """Return what holds values to all of a schema, as JSON text, or None and why there is none."""
    try:
        import jsonschema_rs
    except ImportError:
        return None, (MISSING,)
    schema, patterns = _understood(json.loads(text))
    share = min(PATTERN_BYTES, ALL_PATTERN_BYTES // max(1, patterns))
    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS, size_limit=share)
    try:
        faults = tuple(map(_fault, _meta_errors(jsonschema_rs, schema)))
        if faults:
            return None, faults[:LISTED]
        validator = jsonschema_rs.validator_for(
            schema, validate_formats=True, pattern_options=options, offline=True, mask="value"
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        return None, (_fault(error),)
    return Checker(validator, looked_at(text).is_recursive), ()


def _meta_errors(library: Any, schema: dict[str, Any]) -> Iterator[Any]:
    """Yield what the schema of schemas says of a schema; the library has those of all drafts."""
    draft = schema.get("$schema", DRAFT2020)
    yield from library.validator_for({"$schema": draft, "$ref": draft}, offline=True).iter_errors(schema)


def _fault(error: Any) -> str:
    path = "/".join(shown(str(step)) for step in getattr(error, "instance_path", ()))
    return f"#{'/' if path else ''}{path}: is not what JSON Schema allows there"


def _understood(schema: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Return a schema as the validator understands it, and how many patterns it has.

    Without a draft named it is draft 7 where that draft's own words are used.
    """
    rest: list[Any] = [schema]
    is_old = False
    patterns = 0
    while rest:
        each = rest.pop()
        if isinstance(each, dict):
            rest.extend(inner for _, _, inner in parts(each))
            is_old = is_old or isinstance(each.get("items"), list) or "dependencies" in each
            patterns += ("pattern" in each) + len(each.get("patternProperties", ()))
            _say_null(each)
    if is_old:
        schema.setdefault("$schema", DRAFT7)
    return schema, patterns


def _say_null(schema: dict[str, Any]) -> None:
    """Say OpenAPI's ``nullable: true`` in the words of JSON Schema."""
    if schema.get("nullable") is not True:
        return
    if isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
    elif "type" not in schema:
        asked = dict(schema)
        schema.clear()
        schema["anyOf"] = [asked, {"type": "null"}]
