"""The schemas of one operation, converted to JSON Schema 2020-12.

Only known keywords are retained, so a description cannot use the internal ones. References are replaced by their
targets; references of a recursive schema are moved to ``$defs``. Properties that only the other side
sends (``readOnly`` in requests, ``writeOnly`` in responses) are left out, and the format ``password`` marks a secret.

See the OpenAPI Specification 3.1.1 and 3.0.4, "Schema Object".
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from neuroscript.coercion.schema_inspection import DEFINITION_KEYWORDS, MANY, MARK, NAMED, ONE
from neuroscript.coercion.types import TYPES, ArgType
from neuroscript.interop.openapi.document import Document, InvalidPart
from neuroscript.io.text import one_line, quote_untrusted

COPIED_KEYWORDS: Final = frozenset(
    {
        *("type", "enum", "const", "default", "pattern", "multipleOf", "required", "dependentRequired", "uniqueItems"),
        *("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "maxItems"),
        *("minItems", "maxContains", "minContains", "maxProperties", "minProperties", "deprecated"),
        *("contentEncoding", "contentMediaType", "$id", "$dynamicRef", "$recursiveRef"),
    }
)
"""Keywords that are copied unchanged; the last three are copied so that a later check rejects them."""

FORMATS: Final = frozenset(
    {
        *("date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6"),
        *("uri", "uri-reference", "iri", "iri-reference", "uuid", "uri-template", "json-pointer", "regex"),
    }
)
"""The formats of JSON Schema; other formats do not restrict a value."""

RULE_FACTS: Final = frozenset(
    {
        *("type", "nullable", "default", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minLength", "maxLength", "propertyNames", "order", "arguments", "variadic"),
    }
)
"""What a description may say under ``x-neuroscript``, as `to_openapi` does: the exact type of a value, and no more."""

BLOB: Final = {**TYPES[ArgType.BLOB].schema, MARK: {"type": "blob"}}
"""The schema of an argument that contains bytes."""

MAX_DESCRIPTION_CHARS: Final = 500
"""Maximum length of a description, in characters."""

MAX_NESTED_REFERENCES: Final = 24
MAX_INLINED_DEPTH: Final = 48
MAX_INLINED_REFERENCES: Final = 2_000
"""Limits for replacing references: nested references, nested schemas, and replacements in one operation.

Beyond a limit, references remain references.
"""

MAX_SCHEMAS: Final = 50_000
"""Maximum number of schemas in one operation."""

NOTES: Final = frozenset({"$ref", "description", "title", "deprecated", "default", "summary", "readOnly", "writeOnly"})
"""Keywords next to a reference that add no restriction."""


@attrs.frozen(eq=False)
class InlinedSchema:
    """A schema that was read through a reference and contains none; operations share it and must not change it.

    Attributes:
        count: Number of schemas in it.
        inlined: Number of references replaced in it.
        levels: Number of references around the place where it was read.
        depth: Number of schemas around that place. At a place that is nested no deeper, the result is the same.
    """

    schema: Any
    count: int
    inlined: int
    levels: int
    depth: int


@attrs.define(eq=False)
class Schemas:
    """The schemas of one operation.

    Attributes:
        document: The description they come from.
        is_response: Whether the server sends the values. Then properties that only a client sends are left out.
        is_exact: Whether to read the `RULE_FACTS`.
        definitions: The schemas that remain references, by name.
    """

    document: Document
    is_response: bool = False
    is_exact: bool = False
    definitions: dict[str, Any] = attrs.field(factory=dict)
    _names: dict[str, str] = attrs.field(factory=dict)
    _waiting: list[tuple[str, str, Any]] = attrs.field(factory=list)
    _inlined: int = 0
    _count: int = 0
    _left: int = 0

    def arguments(self, schema: Any, path: str) -> Any:
        """Return what `taken` returns, with the exact types of arguments that `to_openapi` described."""
        facts = schema.get(MARK) if isinstance(schema, dict) else None
        self.is_exact = isinstance(facts, dict) and facts.get("arguments") is True
        try:
            return self.taken(schema, path)
        finally:
            self.is_exact = False

    def taken(self, schema: Any, path: str) -> Any:
        """Return the converted schema; the schemas it refers to are added to `definitions`.

        Raises:
            Unfit: A reference leads out of the document, or to nothing.
        """
        found = self._convert(schema, path, (), 0)
        while self._waiting:  # no recursion, because the description determines the length of a chain of references
            name, reference, target = self._waiting.pop()
            self.definitions[name] = self._convert(target, path, (reference,), 0)
        return found

    def _convert(self, schema: Any, path: str, above: tuple[str, ...], depth: int) -> Any:
        if not isinstance(schema, dict):
            return schema
        self._count += 1
        if self._count > MAX_SCHEMAS:
            raise InvalidPart(path, f"more than {MAX_SCHEMAS} schemas")
        if "$ref" in schema:
            return self._referred(schema, path, above, depth)
        converted: dict[str, Any] = {}
        for word, value in schema.items():
            if word in COPIED_KEYWORDS:
                converted[word] = value
            elif word in ONE and isinstance(value, (dict, bool)):
                converted[word] = self._convert(value, path, above, depth + 1)
            elif word in MANY and isinstance(value, list):
                converted[word] = [self._convert(each, path, above, depth + 1) for each in value]
            elif word in NAMED and word not in DEFINITION_KEYWORDS and isinstance(value, dict):
                converted[word] = {name: self._convert(each, path, above, depth + 1) for name, each in value.items()}
        self._say(schema, converted)
        if self.is_exact and schema.get("writeOnly") is True:
            converted["writeOnly"] = True
        if self.is_exact and isinstance(schema.get(MARK), dict):
            facts = {word: each for word, each in schema[MARK].items() if word in RULE_FACTS}
            converted[MARK] = {word: each for word, each in facts.items() if (word, each) != ("type", "handle")}
        self._remove_others(schema, converted, path)
        if self.is_response:
            converted.pop("required", None)  # servers often omit a key, or send null, that they describe as required
        if self.document.is_old:
            _say_as_now(schema, converted)
        return converted

    def _say(self, schema: dict[str, Any], converted: dict[str, Any]) -> None:
        text = one_line(schema.get("description") or schema.get("title"), MAX_DESCRIPTION_CHARS)
        if text:
            converted["description"] = text
        match schema.get("format"):
            case "password":
                converted["writeOnly"] = True
            case str() as word if word in FORMATS:
                converted["format"] = word

    def _remove_others(self, schema: dict[str, Any], converted: dict[str, Any], path: str) -> None:
        """Remove the properties that only the other side sends."""
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            return
        removed = {name for name, each in properties.items() if self._is_sent_by_other(each, path)}
        if removed:
            converted["properties"] = {
                name: each for name, each in converted["properties"].items() if name not in removed
            }
            if isinstance(converted.get("required"), list):
                converted["required"] = [
                    name for name in converted["required"] if not (isinstance(name, str) and name in removed)
                ]

    def _is_sent_by_other(self, schema: Any, path: str) -> bool:
        if not isinstance(schema, dict):
            return False
        word = "writeOnly" if self.is_response else "readOnly"
        return schema.get(word) is True or self.document.followed(schema, path).get(word) is True

    def _referred(self, schema: dict[str, Any], path: str, above: tuple[str, ...], depth: int) -> Any:
        reference = schema["$ref"]
        rest = {} if self.document.is_old else {word: each for word, each in schema.items() if word != "$ref"}
        target = self._target(reference, path)
        self._inlined += 1
        is_deep = (
            len(above) > MAX_NESTED_REFERENCES or depth > MAX_INLINED_DEPTH or self._inlined > MAX_INLINED_REFERENCES
        )
        if is_deep or reference in self._names or reference in above:
            self._left += 1
            found: Any = {"$ref": f"#/$defs/{self._defined(reference, target)}"}
        else:
            found = self._shared(reference, target, path, above, depth)
        beside = self._convert(rest, path, above, depth + 1) if rest else {}
        if not beside:
            return found
        if isinstance(found, dict) and rest.keys() <= NOTES:
            return {**found, **beside}
        return {"allOf": [found, beside]}

    def _shared(self, reference: str, target: Any, path: str, above: tuple[str, ...], depth: int) -> Any:
        """Return the target of a reference; reuse the schema another operation read if it would be the same."""
        if self.is_exact:
            return self._convert(target, path, (*above, reference), depth + 1)
        known: InlinedSchema | None = self.document.read.get((reference, self.is_response))
        if known is not None and self._fits(known, above, depth):
            self._count += known.count
            self._inlined += known.inlined
            return known.schema
        count, inlined, left = self._count, self._inlined, self._left
        found = self._convert(target, path, (*above, reference), depth + 1)
        if self._left == left:
            made = InlinedSchema(found, self._count - count, self._inlined - inlined, len(above), depth)
            self.document.read[reference, self.is_response] = made
        return found

    def _fits(self, known: InlinedSchema, above: tuple[str, ...], depth: int) -> bool:
        has_room = self._count + known.count <= MAX_SCHEMAS and self._inlined + known.inlined <= MAX_INLINED_REFERENCES
        return has_room and len(above) <= known.levels and depth <= known.depth and not self._names

    def _target(self, reference: Any, path: str) -> Any:
        target = self.document.named(reference, path)
        if not isinstance(target, (dict, bool)):
            raise InvalidPart(path, f"$ref: {quote_untrusted(reference)} is not a schema in the document")
        return target

    def _defined(self, reference: str, target: Any) -> str:
        """Return the name of a definition; `taken` converts a new one."""
        if reference not in self._names:
            name = self._names[reference] = f"s{len(self._names) + 1}"
            self._waiting.append((name, reference, target))
        return self._names[reference]


def _say_as_now(schema: dict[str, Any], converted: dict[str, Any]) -> None:
    """Convert the keywords that are specific to 3.0 to those of JSON Schema."""
    for bound, word in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if type(converted.get(word)) is bool and converted.pop(word) and bound in converted:
            converted[word] = converted.pop(bound)
    if schema.get("nullable") is not True:
        return
    if isinstance(converted.get("type"), str):
        converted["type"] = [converted["type"], "null"]
        if isinstance(converted.get("enum"), list) and None not in converted["enum"]:
            converted["enum"] = [*converted["enum"], None]
    elif converted.keys() & {"allOf", "anyOf", "oneOf", "enum"}:
        inner = {word: each for word, each in converted.items() if word != "description"}
        text = {"description": converted["description"]} if "description" in converted else {}
        converted.clear()
        converted.update({**text, "anyOf": [inner, {"type": "null"}]})


def kinds_of(document: Document, schema: Any, path: str) -> tuple[set[str], bool]:
    """Return the types that a schema declares, without null, and whether it declares null.

    Raises:
        Unfit: A reference leads out of the document, or to nothing.
    """
    head = document.followed(schema, path) if isinstance(schema, dict) else {}
    words = head.get("type")
    kinds = {word for word in (words if isinstance(words, list) else [words]) if isinstance(word, str)}
    return kinds - {"null"}, "null" in kinds or (document.is_old and head.get("nullable") is True)


def is_binary(document: Document, schema: Any, path: str) -> bool:
    """Return whether a schema describes bytes: ``format: binary``, or in 3.1 a media type without an encoding."""
    head = document.followed(schema, path) if isinstance(schema, dict) else {}
    kinds = kinds_of(document, schema, path)[0]
    if kinds - {"string"} or (not kinds and "type" in head):
        return False
    is_encoded = "contentEncoding" in head
    return head.get("format") == "binary" or ("contentMediaType" in head and not is_encoded and not document.is_old)
