"""Derivation of a tool's arguments from a JSON Schema, as far as a spec can express them.

Keywords that a spec cannot express are skipped here; the check in `coercion.schema_inspection` finds them, and the
validator enforces them at each call.
"""

from __future__ import annotations

import datetime
import json
from array import array
from binascii import Error, a2b_base64
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.scalars import INT_MAX, INT_MIN, Handle
from neuroscript.coercion.schema_inspection import MARK, inspect_schema, resolve_pointer, size_faults
from neuroscript.coercion.types import ELEMENTS, VALUES, ArgType
from neuroscript.errors import UNSET, SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.spec.tool_spec import ArgSpec, Example, ToolSpec
from neuroscript.tools.serialization import spec_from_data

SCALAR_WORDS: Final[Mapping[ArgType, str]] = {
    ArgType.STRING: "string",
    ArgType.INT: "integer",
    ArgType.FLOAT: "number",
    ArgType.BOOL: "boolean",
}
CHOICES_OF: Final[Mapping[ArgType, frozenset[type]]] = {
    ArgType.STRING: frozenset({str}),
    ArgType.INT: frozenset({int}),
    ArgType.FLOAT: frozenset({int, float}),
    ArgType.BOOL: frozenset({bool}),
}
"""The types that the choices of an argument may have."""

SCALARS: Final = {word: kind for kind, word in SCALAR_WORDS.items()}
LISTS: Final = {element: kind for kind, element in ELEMENTS.items()} | {ArgType.ANY: ArgType.SLICE_ANY}
MAPS: Final = {element: kind for kind, element in VALUES.items()} | {ArgType.ANY: ArgType.MAP}

OUTER: Final = {**SCALARS, "array": ArgType.SLICE_ANY, "object": ArgType.MAP, "null": ArgType.NIL}
"""The ArgType for each type name of a schema, regardless of its content."""

PLAINLY: Final = frozenset({*SCALAR_WORDS, *LISTS.values(), *MAPS.values(), ArgType.ANY, ArgType.NIL})
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
"""How many arguments a schema may describe. A map whose keys would exceed this number of rules is read without keys."""

MAX_CHOICES: Final = 50_000
"""Maximum number of choices of all arguments together. An enum that would exceed this is left to the schema.

Only a schema with many references to one long enum has so many, because the values of a schema are limited too.
"""

MAX_MAPS: Final = 16
"""Maximum depth of nested maps that are read; the keys of deeper ones are left to the schema."""

WORDS: Final = (
    *("type", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "allOf"),
    *("$ref", "default", "description", "writeOnly", "nullable", "minimum", "maximum", "minLength", "maxLength"),
    *("minItems", "maxItems", "minProperties", "maxProperties", MARK),
)
"""The keywords that are read. Other keywords are never copied."""


@attrs.frozen
class _Choices:
    """The values of an enum or const.

    Attributes:
        values: The values other than null.
        has_null: Whether null is one of them.
        kind: The common type of the values, or ``any``.
        fits: The types that accept every value.
    """

    values: tuple[Any, ...] = ()
    has_null: bool = False
    kind: ArgType = ArgType.ANY
    fits: frozenset[ArgType] = frozenset()


@attrs.frozen
class ParsedSchema:
    """The content of a schema.

    Attributes:
        args: The arguments, in the order of the properties.
        fields: Other fields of a `ToolSpec`, by name.
    """

    args: tuple[ArgSpec, ...]
    fields: Mapping[str, Any]


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
        return ParsedSchema(kept.args, _fields_of(kept))
    if len(schema.get("properties", ())) > MAX_PROPERTIES:
        raise SpecError(quote_untrusted(name), [f"#/properties: more than {MAX_PROPERTIES} properties"])
    reader = _Reader(schema)
    try:
        args = tuple(reader.arguments(facts.get("variadic") is True))
        fields = {FIELDS[word]: each for word, each in facts.items() if word in FIELDS}
        examples = tuple(map(_example, facts.get("examples", ())))
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        problems = error.problems if isinstance(error, SpecError) else [f"#/{MARK}: is invalid"]
        raise SpecError(quote_untrusted(name), problems) from None
    if reader.faults:
        raise SpecError(quote_untrusted(name), reader.faults)
    text = schema.get("description", "")
    return ParsedSchema(args, {**fields, "examples": examples, "description": text if isinstance(text, str) else ""})


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


class _Reader:
    """One pass over a schema.

    The type of an argument depends on the schemas of its own value and of that value's parts, and on nothing deeper. So
    a recursive schema needs no cycle detection there; only `keys` descends further, and it stops at a map that contains
    itself.

    Attributes:
        root: The schema that references point into.
        faults: Problems that make the schema unusable.
        count: How many rules were read.
        choices: How many choices were read.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.count = 0
        self.choices = 0
        self.faults: list[str] = []
        self._bare: dict[int, tuple[Any, dict[str, Any], bool]] = {}
        self._listed: dict[int, _Choices] = {}
        self._required: dict[int, frozenset[str]] = {}

    def arguments(self, variadic: bool) -> Iterator[ArgSpec]:
        """Yield the arguments in order."""
        properties = _ordered(self.root.get("properties", {}), facts_of(self.root))
        required = self.required(self.root)
        for index, (name, schema) in enumerate(properties.items()):
            is_last = variadic and index == len(properties) - 1
            inner = schema.get("items", True) if is_last and isinstance(schema, dict) else schema
            arg = self.rule(name, inner, name in required, f"#/properties/{quote_untrusted(name)}", ())
            if arg is not None:
                yield arg

    def rule(self, name: str, schema: Any, required: bool, path: str, above: tuple[int, ...]) -> ArgSpec | None:
        """Return an argument or key, or None if its name is not valid.

        Args:
            above: The identity of the properties of each enclosing map.
        """
        self.count += 1
        bare, has_null = self.without_null(schema)
        facts = facts_of(schema) or facts_of(bare)
        fields = self.fields(bare, facts, path, above)
        fields["nullable"] = facts.get("nullable", has_null)
        default = schema.get("default", UNSET) if isinstance(schema, dict) else UNSET
        if not required and default is not UNSET:
            fields["default"] = untag(facts["default"]) if "default" in facts else default
        text = schema.get("description", bare.get("description", "")) if isinstance(schema, dict) else ""
        fields["description"] = text if isinstance(text, str) else ""
        fields["secret"] = isinstance(schema, dict) and schema.get("writeOnly") is True
        return self.made(name, fields, required, path)

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
        few = {key: fields[key] for key in ("type", "nullable", "description", "secret")}
        try:
            return ArgSpec(name, required=required, **few)
        except SpecError as error:
            self.faults.extend(f"{path}: {problem}" for problem in error.problems)
            return None

    def fields(
        self, schema: dict[str, Any], facts: dict[str, Any], path: str, above: tuple[int, ...]
    ) -> dict[str, Any]:
        """Return the type and constraints as the fields of an `ArgSpec`."""
        kind = ArgType(facts["type"]) if "type" in facts else self.kind(schema)
        fields: dict[str, Any] = {"type": kind}
        inner = schema
        if kind in ELEMENTS:
            items = schema.get("items")
            inner = self.resolved(items) if isinstance(items, dict) else {}
        if (kind in ELEMENTS and ELEMENTS[kind] is ArgType.MAP) or kind in (ArgType.MAP, ArgType.MAP_STRING_ANY):
            fields |= self.keys(inner, path, above)
        if ELEMENTS.get(kind, kind) in SCALAR_WORDS:
            fields |= self.asked(inner, ELEMENTS.get(kind, kind))
        for field, word in (("min_length", "min"), ("max_length", "max")):
            ours = facts.get(f"{word}Length")
            length = ours if ours is not None else schema.get(f"{word}{_LENGTH.get(kind, 'Items')}")
            if type(length) is int and kind in _LONG:
                fields[field] = length
        return fields

    def keys(self, schema: dict[str, Any], path: str, above: tuple[int, ...]) -> dict[str, Any]:
        """Return the keys of a map. The keys of a map that contains itself are left to the schema."""
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not properties or id(properties) in above:
            return {}
        if self.count + len(properties) > MAX_PROPERTIES or len(above) == MAX_MAPS:
            return {}
        around = (*above, id(properties))
        properties = _ordered(properties, facts_of(schema))
        required = self.required(schema)
        before = len(self.faults)
        keys = [
            self.rule(name, each, name in required, f"{path}/properties/{quote_untrusted(name)}", around)
            for name, each in properties.items()
        ]
        if len(self.faults) > before:
            del self.faults[before:]
            return {}
        return {"keys": tuple(filter(None, keys)), "extra_keys": schema.get("additionalProperties", True) is not False}

    def kind(self, schema: dict[str, Any]) -> ArgType:
        """Return the type of a schema without null; `any` if it allows several."""
        kind = self.outer_kind(schema)
        if kind is ArgType.SLICE_ANY:
            return LISTS[self.part(schema.get("items"), maps=True)]
        if kind is ArgType.MAP and not (isinstance(schema.get("properties"), dict) and schema["properties"]):
            return MAPS[self.part(schema.get("additionalProperties"), maps=False)]
        return kind

    def part(self, schema: Any, *, maps: bool) -> ArgType:
        """Return the type of list items or map values; `any` if a specific type would reject some of them."""
        if not isinstance(schema, dict):
            return ArgType.ANY
        bare, has_null = self.without_null(schema)
        if has_null or (facts_of(bare).get("type")):
            return ArgType.ANY
        word = bare.get("type")
        if word == "object":
            return ArgType.MAP if maps else ArgType.ANY
        return SCALARS.get(word, ArgType.ANY) if isinstance(word, str) else ArgType.ANY

    def without_null(self, schema: Any) -> tuple[dict[str, Any], bool]:
        """Return a schema without null, in whatever form null is written, and whether it allows null.

        Each schema is read once, however many other schemas refer to it.
        """
        if not isinstance(schema, dict):
            return {}, schema is not False
        if id(schema) not in self._bare:
            self._bare[id(schema)] = (schema, *self._without_null(self.resolved(schema)))
        _, bare, has_null = self._bare[id(schema)]
        return bare, has_null

    def _without_null(self, bare: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        for word in ("anyOf", "oneOf"):
            ways = bare.get(word)
            if isinstance(ways, list) and "type" not in bare:
                return self.one_way(bare, word, ways)
        words = bare.get("type")
        if words is None:
            asked = "enum" in bare or "const" in bare or "allOf" in bare
            return bare, self.listed(bare).has_null if asked else True
        if isinstance(words, list) and "null" in words and len(words) > 1:
            left = [word for word in words if word != "null"]
            bare = {**_read(bare), "type": left[0] if len(left) == 1 else left}
            return bare, "enum" not in bare or self.listed(bare).has_null
        return bare, bare.get("nullable") is True or words == "null"

    def one_way(self, bare: dict[str, Any], word: str, ways: list[Any]) -> tuple[dict[str, Any], bool]:
        """Return the only alternative other than null, or an empty schema if there are several."""
        found = [self.without_null(way) for way in ways]
        left = [way for way, _ in found if way.get("type") != "null"]
        has_null = any(null for _, null in found)
        rest = _read(bare, but=word)
        if len(left) == 1:
            return {**_read(left[0]), **rest}, has_null
        kinds = {self.outer_kind(way) for way in left}
        if len(kinds) == 1 and kinds <= {*SCALAR_WORDS}:
            return {**rest, "type": SCALAR_WORDS[kinds.pop()]}, has_null
        if kinds == {ArgType.MAP}:
            return {**rest, "type": "object"}, has_null
        return {**rest, "type": ["string", "number", "boolean", "object", "array"]}, has_null

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
        if kind in (ArgType.INT, ArgType.FLOAT):
            for word in ("minimum", "maximum"):
                if type(schema.get(word)) in (int, float):
                    asked[word] = schema[word]
        return asked

    def listed(self, schema: dict[str, Any]) -> _Choices:
        """Return the choices of a schema. Each list is read once, however many schemas share it."""
        if "const" in schema:
            return _choices_of([schema["const"]])
        listed = schema.get("enum")
        if not isinstance(listed, list):
            return _Choices()
        if id(listed) not in self._listed:
            self._listed[id(listed)] = _choices_of(listed)
        return self._listed[id(listed)]

    def required(self, schema: Mapping[str, Any]) -> frozenset[str]:
        """Return the names that a schema requires. Each list is read once, however many schemas share it."""
        names = schema.get("required", ())
        if id(names) not in self._required:
            self._required[id(names)] = frozenset(names)
        return self._required[id(names)]

    def resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema with its reference replaced by the target, and a single ``allOf`` schema merged."""
        while isinstance(schema, dict):
            if "$ref" in schema:
                target = resolve_pointer(self.root, schema["$ref"])
                rest = _read(schema, but="$ref")
                schema = {**_read(target), **rest} if rest and isinstance(target, dict) else target
            elif isinstance(schema.get("allOf"), list) and len(schema["allOf"]) == 1 and "type" not in schema:
                inner, rest = schema["allOf"][0], _read(schema, but="allOf")
                schema = {**_read(inner), **rest} if isinstance(inner, dict) else rest
            else:
                return schema
        return {}


def _read(schema: dict[str, Any], but: str = "") -> dict[str, Any]:
    """Return the keywords of a schema that are read, except one."""
    return {word: schema[word] for word in WORDS if word in schema and word != but}


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
    return _Choices(values, len(values) < len(listed), _kind_of_choices(values), fits)


def _kind_of_choices(values: tuple[Any, ...]) -> ArgType:
    kinds = {type(each) for each in values}
    of = {str: ArgType.STRING, int: ArgType.INT, float: ArgType.FLOAT, bool: ArgType.BOOL}
    if kinds == {int, float}:
        return ArgType.FLOAT
    return of.get(kinds.pop(), ArgType.ANY) if len(kinds) == 1 else ArgType.ANY


_LENGTH: Final = {ArgType.STRING: "Length", **dict.fromkeys(VALUES, "Properties")}
_LONG: Final = frozenset({ArgType.STRING, ArgType.BLOB, ArgType.EMBEDDING, *ELEMENTS, *VALUES})


def untag(value: Any) -> Any:
    """Return the original of a value in our keyword.

    Raises:
        ValueError: The value is not in a known form.
    """
    if type(value) is list:
        return [untag(each) for each in value]
    if type(value) is not dict:
        return value
    if len(value) != 1:
        raise ValueError("a tag must be the only key")
    [(tag, inside)] = value.items()
    match tag:
        case "map":
            return {untag(key): untag(each) for key, each in inside}
        case "tuple":
            return tuple(map(untag, inside))
        case "float":
            return float(inside)
        case "bytes":
            return _bytes(inside)
        case "time":
            text, fold = inside
            return datetime.datetime.fromisoformat(text).replace(fold=fold)
        case "handle":
            return Handle(*inside)
        case "embedding":
            return array("f", inside)
        case _:
            raise ValueError("unknown tag")


def _bytes(text: str) -> bytes:
    try:
        return a2b_base64(text, strict_mode=True)
    except Error:
        raise ValueError("not base64") from None
