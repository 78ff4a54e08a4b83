"""Derivation of a tool's arguments from a JSON Schema, as far as a spec can express them.

Keywords that a spec cannot express are skipped here; the check in `coercion.schema_inspection` finds them, and the
validator enforces them at each call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.coercion.scalars import INT_MAX, INT_MIN
from neuroscript.coercion.schema_coverage import ANYTHING, fixed_items
from neuroscript.coercion.schema_inspection import (
    MARK,
    VALIDATE_FACT,
    checks_formats,
    inspect_schema,
    size_faults,
)
from neuroscript.coercion.types import (
    BUILTINS,
    CHOICE_TYPES,
    ELEMENTS,
    LENGTH_TYPES,
    MAPS,
    TYPES,
    UNTYPED_LISTS,
    VALUES,
    ArgType,
)
from neuroscript.errors import UNSET, SpecError
from neuroscript.formats.schema_resolution import BareSchema, SchemaResolver, read_keywords
from neuroscript.formats.tagged_values import untag
from neuroscript.io.text import quote_untrusted
from neuroscript.spec.tool_spec import ArgSpec, Example, ToolSpec
from neuroscript.tools.serialization import spec_from_data

OUTER: Final = {row.json_word: kind for kind, row in TYPES.items() if row.json_word}
"""The ArgType for each type name of a schema, regardless of its content."""

SCALARS: Final = {word: kind for word, kind in OUTER.items() if kind in CHOICE_TYPES}
CHOICES_OF: Final[Mapping[ArgType, frozenset[type]]] = {
    kind: frozenset({int, float} if kind is ArgType.FLOAT else {BUILTINS[kind]}) for kind in SCALARS.values()
}
"""The types that the choices of an argument may have."""

TYPED_LISTS: Final = frozenset(kind for kind, element in ELEMENTS.items() if element is not ArgType.ANY)
TYPED_MAPS: Final = frozenset(kind for kind, value in VALUES.items() if value is not ArgType.ANY)

PLAINLY: Final = frozenset({*TYPED_LISTS, *TYPED_MAPS, *OUTER.values(), ArgType.ANY})
"""Types that standard keywords identify; all others are named under ``x-neuroscript``."""

FIELDS: Final[Mapping[str, str]] = {
    "whenToUse": "when_to_use",
    "returnHelp": "return_help",
    "category": "category",
    "errorConditions": "error_conditions",
    "deprecated": "deprecated",
    "variadic": "variadic",
    "stream": "stream",
    "returnNullable": "return_nullable",
    "returnType": "return_type",
}


MAX_PROPERTIES: Final = 2_000
"""How many arguments a schema may describe.

A map or union whose keys or alternatives would exceed this number of rules is read without them.
"""

MAX_ALTERNATIVES: Final = 64
"""Maximum number of alternatives of a union; a larger one is left to the schema."""

MAX_CHOICES: Final = 50_000
"""Maximum number of choices of all arguments together. An enum that would exceed this is left to the schema.

Only a schema with many references to one long enum has so many, because the values of a schema are limited too.
"""

MAX_MAPS: Final = 16
"""Maximum depth of nested maps, lists and unions that are read; the parts of deeper ones are left to the schema."""


@attrs.frozen
class _Choices:
    """The values of an enum or const.

    Attributes:
        values: The values other than null.
        kind: The common type of the values, or ``any``.
        fits: The types that accept every value.
        source: The list, which must not be freed while its identity is in use.
    """

    values: tuple[Any, ...] = ()
    kind: ArgType = ArgType.ANY
    fits: frozenset[ArgType] = frozenset()
    source: Any = None


@attrs.frozen
class ParsedSchema:
    """The content of a schema.

    Attributes:
        args: The arguments, in the order of the properties.
        fields: Other fields of a `ToolSpec`, by name.
        is_partial: Whether a limit or a name was the reason to leave out constraints that a spec can express.
        checks_formats: Whether the formats of strings are checked.
    """

    args: tuple[ArgSpec, ...]
    fields: Mapping[str, Any]
    is_partial: bool = False
    checks_formats: bool = False


def data_of(schema: object, name: str) -> Any:
    """Return a schema as a copy in plain data.

    Raises:
        SpecError: The schema is too large or not JSON.
    """
    given = dict(schema) if isinstance(schema, Mapping) else schema
    faults = tuple(size_faults(given))
    if faults:
        raise SpecError(quote_untrusted(name), faults)
    return json.loads(json.dumps(given))


def read(schema: Mapping[str, Any], name: str) -> ParsedSchema:
    """Return the arguments and other fields of a tool from its schema.

    Raises:
        SpecError: With every problem.
    """
    faults = inspect_schema(schema).tool_faults
    if faults:
        raise SpecError(quote_untrusted(name), faults)
    facts = facts_of(schema)
    if isinstance(facts.get("spec"), dict):
        kept = spec_from_data(facts["spec"])
        return ParsedSchema(kept.args, _fields_of(kept), facts.get(VALIDATE_FACT) is True, checks_formats(schema))
    if len(schema.get("properties", ())) > MAX_PROPERTIES:
        raise SpecError(quote_untrusted(name), [f"#/properties: more than {MAX_PROPERTIES} properties"])
    reader = _Reader(schema)
    try:
        args = tuple(reader.arguments(facts.get("variadic") is True))
        fields = {FIELDS[word]: each for word, each in facts.items() if word in FIELDS}
        if "returns" in facts:
            fields["returns"] = reader.part("result", facts["returns"], "#/returns", _TOP)
        examples = tuple(map(_example, facts.get("examples", ())))
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        problems = error.problems if isinstance(error, SpecError) else [f"#/{MARK}: is invalid"]
        raise SpecError(quote_untrusted(name), problems) from None
    if reader.faults:
        raise SpecError(quote_untrusted(name), reader.faults)
    text = schema.get("description", "")
    fields |= {"examples": examples, "description": text if isinstance(text, str) else ""}
    return ParsedSchema(args, fields, reader.is_partial, checks_formats(schema))


def read_result(schema: Any, key: str = "") -> ArgSpec:
    """Return the spec of a result from its schema, or from the schema of one property.

    Raises:
        SpecError: With every problem.
    """
    root = schema if isinstance(schema, dict) else {}
    faults = inspect_schema(root).faults
    if faults:
        raise SpecError("result", faults)
    reader = _Reader(root, is_result=True)
    described = root.get("properties", {}).get(key) if key else root
    return reader.part("result", described, "#", _TOP) or ArgSpec("result", ArgType.ANY)


def facts_of(schema: Any) -> dict[str, Any]:
    """Return the value of our keyword."""
    facts = schema.get(MARK) if isinstance(schema, dict) else None
    return facts if isinstance(facts, dict) else {}


def _fields_of(spec: ToolSpec) -> dict[str, Any]:
    names = {field.name for field in attrs.fields(ToolSpec) if field.init} - {"name", "group", "args", "schema"}
    return {name: getattr(spec, name) for name in names}


def _example(said: dict[str, Any]) -> Example:
    result = untag(said["result"]) if "result" in said else UNSET
    return Example(untag(said["args"]), result, error=said.get("error", ""), note=said.get("note", ""))


@attrs.frozen(eq=False)
class _Place:
    """Where a rule is: how many rules it is nested in, and the targets of the references that led to it."""

    depth: int = 0
    targets: frozenset[int] = frozenset()

    def below(self, bare: BareSchema) -> _Place:
        """Return the place of the parts of a rule."""
        return _Place(self.depth + 1, self.targets | bare.targets)


_TOP: Final = _Place()


class _Reader:
    """One pass over a schema.

    Every cycle of a schema leads through a reference, so the parts of a rule are read unless a reference that led to
    the rule is followed again. Their depth and number are limited too.

    Attributes:
        root: The schema that describes all arguments.
        resolver: The schemas inside the root without references and null.
        faults: Problems that make the schema unusable.
        count: How many rules were read.
        choices: How many choices were read.
        is_partial: Whether constraints were left out that a spec can express.

    Args:
        is_result: Whether the schema describes a result, whose defaults and secrets mean nothing.
    """

    def __init__(self, root: Mapping[str, Any], *, is_result: bool = False) -> None:
        self.root = root
        self.resolver = SchemaResolver(root)
        self.count = 0
        self.choices = 0
        self.faults: list[str] = []
        self.is_partial = False
        self._is_result = is_result
        self._hides = False
        self._listed: dict[int, _Choices] = {}

    def arguments(self, variadic: bool) -> Iterator[ArgSpec]:
        """Yield the arguments in order."""
        properties = _ordered(self.root.get("properties", {}), facts_of(self.root))
        required = self.resolver.required(self.root)
        for index, (name, schema) in enumerate(properties.items()):
            is_last = variadic and index == len(properties) - 1
            inner = schema.get("items", True) if is_last and isinstance(schema, dict) else schema
            arg = self.rule(name, inner, name in required, f"#/properties/{quote_untrusted(name)}", _TOP)
            if arg is not None:
                yield arg

    def rule(self, name: str, schema: Any, required: bool, path: str, place: _Place) -> ArgSpec | None:
        """Return an argument or key, or None if its name is not valid."""
        self.count += 1
        bare = self.resolver.without_null(schema)
        facts = facts_of(schema) or facts_of(bare.schema)
        hides, self._hides = self._hides, False
        fields = self.fields(bare, facts, path, place)
        is_secret = self._hides or (isinstance(schema, dict) and schema.get("writeOnly") is True)
        fields["secret"] = is_secret and not self._is_result
        self._hides = hides
        fields["nullable"] = facts.get("nullable", bare.has_null)
        default = schema.get("default", UNSET) if isinstance(schema, dict) and not self._is_result else UNSET
        if not required and default is not UNSET:
            fields["default"] = untag(facts["default"]) if "default" in facts else default
        fields["description"] = _description(schema, bare.schema)
        return self.made(name, fields, required, path)

    def part(self, role: str, schema: Any, path: str, place: _Place) -> ArgSpec | None:
        """Return an item, a value, a key or an alternative, or None if it is not valid."""
        bare = self.resolver.without_null(schema)
        facts = facts_of(schema) or facts_of(bare.schema)
        fields = self.fields(bare, facts, path, place)
        has_null = bare.has_null and (fields["type"] is not ArgType.ANY or "any_of" in fields)
        fields["nullable"] = facts.get("nullable", has_null)
        fields["description"] = _description(schema, bare.schema)
        fields["secret"] = False
        self._hides = self._hides or (isinstance(schema, dict) and schema.get("writeOnly") is True)
        before = len(self.faults)
        found = self.made(role, fields, True, path)
        self.count += found is None or found.has_parts
        if found is None:
            del self.faults[before:]
            self.is_partial = True
        return found

    def made(self, name: str, fields: dict[str, Any], required: bool, path: str) -> ArgSpec | None:
        """Return a rule with the constraints that are compatible with each other; the rest is left to the schema."""
        try:
            return ArgSpec(name, required=required, **fields)
        except SpecError:
            pass
        fields.pop("default", None)
        try:
            return ArgSpec(name, required=required, **fields)
        except SpecError:
            pass
        self.is_partial = True
        few = {key: fields[key] for key in ("type", "nullable", "description", "secret")}
        try:
            return ArgSpec(name, required=required, **few)
        except SpecError as error:
            self.faults.extend(f"{path}: {problem}" for problem in error.problems)
            return None

    def fields(self, bare: BareSchema, facts: dict[str, Any], path: str, place: _Place) -> dict[str, Any]:
        """Return the type and constraints as the fields of an `ArgSpec`."""
        schema = bare.schema
        kind = ArgType(facts["type"]) if "type" in facts else self.outer_kind(schema)
        fields: dict[str, Any] = {"type": kind}
        if kind in CHOICE_TYPES:
            fields |= self.asked(schema, kind)
        if kind is ArgType.STRING and isinstance(facts.get("format"), str):
            fields["format"] = facts["format"]
            fields |= {field: facts[word] for word, field in BOUND_WORDS.items() if word in facts}
        if kind in UNTYPED_LISTS or kind in _MAPPINGS or kind is ArgType.ANY:
            fields |= self.parts(kind, bare, facts, path, place)
        for field, word in (("min_length", "min"), ("max_length", "max")):
            ours = facts.get(f"{word}Length")
            unit = LENGTH_WORDS.get(TYPES[kind].unit, "Items")
            length = ours if ours is not None else schema.get(f"{word}{unit}")
            if type(length) is int and kind in LENGTH_TYPES and "prefix_items" not in fields:
                fields[field] = length
        return fields

    def parts(self, kind: ArgType, bare: BareSchema, facts: dict[str, Any], path: str, place: _Place) -> dict[str, Any]:
        """Return the specs within a list, a map or a union as fields; those of a recursive schema are left out."""
        if bare.targets & place.targets:
            return {}
        if place.depth >= MAX_MAPS or self.count >= MAX_PROPERTIES:
            self.is_partial = True
            return {}
        below = place.below(bare)
        if kind is ArgType.ANY:
            return self.union(bare.schema, facts, path, below)
        if kind in UNTYPED_LISTS:
            return self.items(bare.schema, path, below)
        return self.entries(kind, bare.schema, facts, path, below)

    def items(self, schema: dict[str, Any], path: str, below: _Place) -> dict[str, Any]:
        """Return the items of a list."""
        fields: dict[str, Any] = {"unique_items": True} if schema.get("uniqueItems") is True else {}
        tuple_of = fixed_items(schema)
        if tuple_of is not None:
            if self.count + len(tuple_of) > MAX_PROPERTIES:
                self.is_partial = True
                return fields
            found = [self.part("item", each, f"{path}/items", below) for each in tuple_of]
            return {**fields, "prefix_items": found} if None not in found else fields
        items = schema.get("items")
        if isinstance(items, dict):
            fields["items"] = self.part("item", items, f"{path}/items", below)
        return fields

    def entries(
        self, kind: ArgType, schema: dict[str, Any], facts: dict[str, Any], path: str, below: _Place
    ) -> dict[str, Any]:
        """Return the keys and values of a map."""
        fields = self.keys(schema, path, below) if kind in MAPS else {}
        rest = schema.get("additionalProperties", True)
        if isinstance(rest, dict) and (fields or not schema.get("properties")):
            value = self.part("value", rest, f"{path}/additionalProperties", below)
            if value is not None and (value.has_parts or value != _ANY_VALUE):
                fields["value_spec"] = value
        if fields.get("keys"):
            fields["extra_keys"] = rest is not False and "value_spec" not in fields
        names = facts.get("propertyNames", schema.get("propertyNames"))
        if isinstance(names, dict):
            inner = names if "type" in names or "$ref" in names else {**read_keywords(names), "type": "string"}
            key = self.part("key", inner, f"{path}/propertyNames", below)
            if key is not None and not key.nullable and (kind not in MAPS or key.type is ArgType.STRING):
                fields["key_spec"] = key
        return fields

    def keys(self, schema: dict[str, Any], path: str, below: _Place) -> dict[str, Any]:
        """Return the keys of a map."""
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not properties:
            return {}
        if self.count + len(properties) > MAX_PROPERTIES:
            self.is_partial = True
            return {}
        properties = _ordered(properties, facts_of(schema))
        required = self.resolver.required(schema)
        before = len(self.faults)
        keys = [
            self.rule(name, each, name in required, f"{path}/properties/{quote_untrusted(name)}", below)
            for name, each in properties.items()
        ]
        if len(self.faults) > before:
            del self.faults[before:]
            self.is_partial = True
            return {}
        return {"keys": tuple(filter(None, keys))}

    def union(self, schema: dict[str, Any], facts: dict[str, Any], path: str, below: _Place) -> dict[str, Any]:
        """Return the alternatives of a schema that allows several types, or the fields of the only one."""
        ways = self.ways(schema)
        if len(ways) < 2:
            return {}
        if len(ways) > MAX_ALTERNATIVES or self.count + len(ways) > MAX_PROPERTIES:
            self.is_partial = True
            return {}
        self.count += len(ways)
        found: list[ArgSpec] = []
        for way in ways:
            each = self.part("alternative", way, f"{path}/anyOf", below)
            if each is None:
                return {}
            if each.type is not ArgType.NIL and each not in found:
                found.append(attrs.evolve(each, nullable=False) if each.nullable else each)
        if facts.get("type") != ArgType.ANY and is_anything(found):
            return {}
        if len(found) == 1:
            return {name: getattr(found[0], name) for name in _FORM_FIELDS}
        return {"any_of": found} if found else {}

    def ways(self, schema: dict[str, Any]) -> list[Any]:
        """Return the schemas of the alternatives: those of anyOf or oneOf, or one for each type."""
        words = schema.get("type")
        for word in ("anyOf", "oneOf"):
            if isinstance(schema.get(word), list) and words is None:
                return list(schema[word])
        listed = self.listed(schema)
        if isinstance(words, list):
            kinds = {word for word in words if word != "null"}
            names = [word for word in words if word in kinds and not (word == "integer" and "number" in kinds)]
            if kinds >= ANYTHING:
                return []
        else:
            names = [word for word, of in _BY_WORD.items() if any(type(each) in of for each in listed.values)]
            if "number" in names and "integer" in names:
                names.remove("integer")
        if not listed.values:
            return [{**read_keywords(schema, but="description"), "type": word} for word in names]
        if self.choices + len(listed.values) > MAX_CHOICES:
            self.is_partial = True
            return []
        if not {*map(type, listed.values)} <= {str, int, float, bool}:
            return []
        return [
            {"type": word, "enum": [each for each in listed.values if type(each) in CHOICES_OF[SCALARS[word]]]}
            for word in names
            if word in SCALARS and any(type(each) in CHOICES_OF[SCALARS[word]] for each in listed.values)
        ]

    def outer_kind(self, schema: dict[str, Any]) -> ArgType:
        """Return the type of a schema without null, regardless of its parts; `any` if it allows several."""
        words = schema.get("type")
        words = words if isinstance(words, list) else [words]
        if words == [None]:
            return self.listed(schema).kind
        if {*words} == {"integer", "number"}:
            return ArgType.FLOAT
        if len(words) != 1:
            return ArgType.ANY
        return OUTER.get(words[0], ArgType.ANY)

    def asked(self, schema: dict[str, Any], kind: ArgType) -> dict[str, Any]:
        """Return the choices and bounds of a scalar that match its type."""
        asked: dict[str, Any] = {}
        listed = self.listed(schema)
        if kind in listed.fits and self.choices + len(listed.values) <= MAX_CHOICES:
            self.choices += len(listed.values)
            asked["choices"] = listed.values
        elif listed.values:
            self.is_partial = True
        if kind in (ArgType.INT, ArgType.FLOAT):
            for word, field in BOUND_WORDS.items():
                if type(schema.get(word)) in (int, float):
                    asked[field] = schema[word]
        return asked

    def listed(self, schema: dict[str, Any]) -> _Choices:
        """Return the choices of a schema. Each list is read once, however many schemas share it."""
        if "const" in schema:
            return _choices_of([schema["const"]])
        listed = schema.get("enum")
        if not isinstance(listed, list):
            return _Choices()
        if id(listed) not in self._listed:
            self._listed[id(listed)] = attrs.evolve(_choices_of(listed), source=listed)
        return self._listed[id(listed)]


def is_anything(alternatives: Sequence[ArgSpec]) -> bool:
    """Return whether alternatives accept every JSON value except null, so that `any` says the same."""
    bare = [
        each.type for each in alternatives if each == ArgSpec("alternative", each.type, description=each.description)
    ]
    return ArgType.ANY in bare or {word for word, kind in OUTER.items() if kind in bare} >= ANYTHING


def _description(schema: Any, bare: dict[str, Any]) -> str:
    text = schema.get("description", bare.get("description", "")) if isinstance(schema, dict) else ""
    return text if isinstance(text, str) else ""


def _ordered(properties: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """Return properties in their original order if it is recorded."""
    order = facts.get("order", [])
    if type(order) is not list or len(order) != len(properties) or {*order} != properties.keys():
        return properties
    return {name: properties[name] for name in order}


def _choices_of(listed: list[Any]) -> _Choices:
    values = tuple([each for each in listed if each is not None])
    kinds = {*map(type, values)}
    fits = frozenset(kind for kind, types in CHOICES_OF.items() if kinds <= types)
    if ArgType.INT in fits and values and not INT_MIN <= min(values) <= max(values) <= INT_MAX:
        fits -= {ArgType.INT}
    return _Choices(values, _kind_of_choices(values), fits)


def _kind_of_choices(values: tuple[Any, ...]) -> ArgType:
    kinds = {type(each) for each in values}
    of = {str: ArgType.STRING, int: ArgType.INT, float: ArgType.FLOAT, bool: ArgType.BOOL}
    if kinds == {int, float}:
        return ArgType.FLOAT
    return of.get(kinds.pop(), ArgType.ANY) if len(kinds) == 1 else ArgType.ANY


_MAPPINGS: Final = frozenset({*MAPS, ArgType.MAP_ANY_ANY})
_ANY_VALUE: Final = ArgSpec("value", ArgType.ANY)

_FORM_FIELDS: Final = (
    *("type", "choices", "keys", "extra_keys", "minimum", "maximum", "min_length", "max_length", "items"),
    *("exclusive_minimum", "exclusive_maximum"),
    *("prefix_items", "unique_items", "value_spec", "key_spec", "any_of", "format"),
)
"""The fields of an `ArgSpec` that say which values it accepts."""

_BY_WORD: Final[Mapping[str, frozenset[type]]] = {
    "boolean": frozenset({bool}),
    "integer": frozenset({int}),
    "number": frozenset({float}),
    "string": frozenset({str}),
}
"""The types of the choices of each type name."""

BOUND_WORDS: Final = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
}
"""The keywords for bounds of numbers, and the fields with the same meaning."""

LENGTH_WORDS: Final = {"character": "Length", "item": "Items", "key": "Properties"}
"""The end of the length keywords for each unit. Bytes have none."""
