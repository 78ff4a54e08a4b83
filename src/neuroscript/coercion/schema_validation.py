"""Validation of arguments against JSON Schema constraints that a spec cannot express.

The validator is jsonschema-rs from the ``schema`` extra. It fetches nothing, and it matches patterns in linear time or
with a bounded number of steps. Its findings are converted so that no error contains a value.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from neuroscript._imports import install_hint
from neuroscript.coercion.context import Where, place, type_name
from neuroscript.coercion.schema_inspection import check_schema, checks_formats, iter_subschemas
from neuroscript.errors import MAX_LISTED_PROBLEMS, Problem
from neuroscript.io.text import quote_untrusted

BACKTRACKS: Final = 100_000
"""Maximum backtracking steps of a pattern with look-around or back-references; beyond that, it does not match."""

PATTERN_BYTES: Final = 2**20
"""The maximum size of a compiled pattern."""

ALL_PATTERN_BYTES: Final = 2**28
"""The maximum size of all patterns of a schema together; each pattern gets the same share."""

MAX_COUNTED_PROBLEMS: Final = 1000
"""The maximum number of problems that are counted."""

MAX_EXPLAINED_VALUES: Final = 1000
"""The maximum number of values of which all problems are collected. The library collects all of them before it returns
the first, with copies of the values, and that takes seconds for large values."""

DRAFT2020: Final = "https://json-schema.org/draft/2020-12/schema"
DRAFT7: Final = "http://json-schema.org/draft-07/schema#"
MISSING: Final = "the schema has constraints that a spec cannot express; install the validator with: "


@attrs.frozen(eq=False, repr=False)
class SchemaValidator:
    """A compiled schema.

    Attributes:
        validator: The validator of the library.
        is_recursive: Whether the schema refers to itself. If so, the check only reports whether the values are valid,
            because collecting all errors of a recursive schema can take unbounded time.
    """

    validator: Any
    is_recursive: bool

    def problems(self, values: Mapping[str, Any]) -> list[Problem]:
        """Return the problems of arguments that are JSON data, at most `MAX_COUNTED_PROBLEMS`.

        Of more than `MAX_EXPLAINED_VALUES` values, only the first problem is returned.

        Args:
            values: The arguments by name, without missing ones.
        """
        if self.validator.is_valid(values):
            return []
        if self.is_recursive:
            return [Problem("", "schema.invalid", "a value that matches the schema", type_name(values))]
        if has_more_values(values, MAX_EXPLAINED_VALUES):
            return [self._first_problem(values)]
        found: list[Problem] = []
        for error in self.validator.iter_errors(values):
            found.append(_problem(error))
            if len(found) == MAX_COUNTED_PROBLEMS:
                break
        return found or [Problem("", "schema.invalid", "a value that matches the schema", type_name(values))]

    def _first_problem(self, values: Mapping[str, Any]) -> Problem:
        from jsonschema_rs import ValidationError

        try:
            self.validator.validate(values)
        except ValidationError as error:
            return _problem(error)
        return Problem("", "schema.invalid", "a value that matches the schema", type_name(values))


def has_more_values(values: Mapping[str, Any], most: int) -> bool:
    """Return whether JSON data contains more than *most* values; the time depends on *most* alone."""
    rest: list[Any] = [values]
    count = 1
    while rest:
        each = rest.pop()
        if isinstance(each, (Mapping, list)):
            count += len(each)
            if count > most:
                return True
            rest.extend(each.values() if isinstance(each, Mapping) else each)
    return False


def _problem(error: Any) -> Problem:
    keyword = next((each for each in reversed(error.schema_path) if isinstance(each, str)), "")
    if keyword not in KNOWN_KEYWORDS:
        keyword = error.kind.name
    where: Where = None
    for step in error.instance_path:
        where = (where, step)
    return Problem(place(where), f"schema.{keyword}", _expected(keyword, error.kind), _got(error.instance))


def _expected(keyword: str, kind: Any) -> str:
    """Return the constraint of a keyword, including the keyword's value if that is short."""
    asked = getattr(kind, "value", None)
    if keyword == kind.name and keyword in KEYWORD_RULES and isinstance(asked, (str, int, float, list)):
        return f"{KEYWORD_RULES[keyword]} {quote_untrusted(asked if isinstance(asked, str) else json.dumps(asked))}"
    return FIXED_RULES.get(keyword, f"a value that satisfies {keyword} of the schema")


def _got(instance: object) -> str:
    match instance:
        case str() | list() | dict():
            return f"{type_name(instance)} of length {len(instance)}"
        case _:
            return type_name(instance)


KEYWORD_RULES: Final[Mapping[str, str]] = {
    "pattern": "a string that matches",
    "format": "a string in the format",
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
"""Phrases for keywords whose value is short and comes from the schema's author."""

FIXED_RULES: Final[Mapping[str, str]] = {
    "uniqueItems": "unique items",
    "enum": "one of the values that the schema lists",
    "const": "the constant in the schema",
    "additionalProperties": "no additional keys",
    "anyOf": "a value that matches one of the schemas in anyOf",
    "oneOf": "a value that matches exactly one of the schemas in oneOf",
    "not": "a value that the schema does not exclude",
    "dependentRequired": "the keys that other keys require",
}

KNOWN_KEYWORDS: Final = frozenset({*KEYWORD_RULES, *FIXED_RULES}) | {
    *("additionalItems", "allOf", "contains", "dependencies", "dependentSchemas", "else", "if", "maxContains"),
    *("minContains", "prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    *("contentEncoding", "contentMediaType", "items", "patternProperties"),
}
"""The keywords that may appear in an error code."""


def schema_faults(text: str, names: set[str]) -> Iterator[str]:
    """Yield why a schema, as JSON text, does not match a tool with these argument names."""
    found = check_schema(text)
    yield from found.tool_faults
    if found.tool_faults:
        return
    properties = json.loads(text).get("properties", {}).keys()
    if set(properties) != names:
        yield "the properties of the schema differ from the arguments of the tool"
    elif found.asks_more:
        yield from compile_schema(text)[1]


def validator_for(text: str) -> SchemaValidator | None:
    """Return the validator for a schema, or None if its spec already expresses all of its constraints."""
    return compile_schema(text)[0] if check_schema(text).asks_more else None


@functools.lru_cache(maxsize=1024)
def compile_schema(text: str) -> tuple[SchemaValidator | None, tuple[str, ...]]:
    """Return the validator for a schema in JSON text, or None and the reasons why it cannot be compiled."""
    try:
        import jsonschema_rs
    except ImportError:
        return None, (f"{MISSING}{install_hint('schema')}",)
    schema, patterns = _understood(json.loads(text))
    share = min(PATTERN_BYTES, ALL_PATTERN_BYTES // max(1, patterns))
    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS, size_limit=share)
    try:
        faults = tuple(map(_fault, _meta_errors(jsonschema_rs, schema)))
        if faults:
            return None, faults[:MAX_LISTED_PROBLEMS]
        validator = jsonschema_rs.validator_for(
            schema, validate_formats=checks_formats(schema), pattern_options=options, offline=True, mask="value"
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        return None, (_fault(error),)
    return SchemaValidator(validator, check_schema(text).is_recursive), ()


def _meta_errors(library: Any, schema: dict[str, Any]) -> Iterator[Any]:
    """Yield the errors of a schema against its meta-schema; the library contains those of all drafts."""
    draft = schema.get("$schema", DRAFT2020)
    yield from library.validator_for({"$schema": draft, "$ref": draft}, offline=True).iter_errors(schema)


def _fault(error: Any) -> str:
    path = "/".join(quote_untrusted(str(step)) for step in getattr(error, "instance_path", ()))
    return f"#{'/' if path else ''}{path}: not valid JSON Schema"


def _understood(schema: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Return a schema in the form that the validator expects, and how many patterns it contains.

    A schema without ``$schema`` is treated as draft 7 if it uses keywords of that draft.
    """
    rest: list[Any] = [schema]
    is_old = False
    patterns = 0
    while rest:
        each = rest.pop()
        if isinstance(each, dict):
            rest.extend(inner for _, _, inner in iter_subschemas(each))
            is_old = is_old or isinstance(each.get("items"), list) or "dependencies" in each
            patterns += ("pattern" in each) + len(each.get("patternProperties", ()))
            _say_null(each)
    if is_old:
        schema.setdefault("$schema", DRAFT7)
    return schema, patterns


def _say_null(schema: dict[str, Any]) -> None:
    """Convert OpenAPI's ``nullable: true`` to JSON Schema."""
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
