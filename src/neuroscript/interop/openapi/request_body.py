"""The request body: its media type, its arguments and its serialization.

The properties of an object become separate arguments. There is one argument ``body`` instead if the object allows other
properties, if a name collides, or if an optional property may be null, because only a map distinguishes null from a
missing key.

A file is an argument of type ``blob``.

See the OpenAPI Specification 3.1.1, "Request Body Object", "Media Type Object" and "Encoding Object".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Literal
from urllib.parse import unquote

import attrs

from neuroscript.coercion.schema_inspection import MARK
from neuroscript.interop.media import media_type
from neuroscript.interop.openapi.document import Document, InvalidPart, at
from neuroscript.interop.openapi.multipart import Part, join_parts
from neuroscript.interop.openapi.names import argument_name
from neuroscript.interop.openapi.parameter_styles import (
    Style,
    join_pairs,
    json_text,
    percent_encode,
    scalar,
    serialize_query,
    value_error,
)
from neuroscript.interop.openapi.schemas import BLOB, MAX_DESCRIPTION_CHARS, Schemas, is_binary
from neuroscript.io.text import one_line, quote_untrusted

Kind = Literal["json", "form", "multipart", "text", "bytes"]

MEDIA: Final = re.compile(r"[a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,64}")
JSON: Final = re.compile(r"application/(?:[a-z0-9!#$&^_.-]+\+)?json")
FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
TEXT: Final = re.compile(r"text/(?!.*\*)(?!xml$)[^/]+")
BINARY: Final = re.compile(r"(?:image|audio|video|font)/.*|application/(?:octet-stream|pdf|zip|gzip)")
WILDCARD: Final = re.compile(r"\*/\*|[a-z]+/\*")
OCTETS: Final = "application/octet-stream"

KINDS: Final[tuple[Kind, ...]] = ("json", "form", "multipart", "text", "bytes")

PLAIN: Final = frozenset({"type", "properties", "required", "additionalProperties", "description", "deprecated", MARK})
"""The keywords allowed in the schema of an object whose properties become arguments."""


@attrs.frozen(eq=False)
class RequestBody:
    """The body of a request.

    Attributes:
        media_type: Its media type; one with ``*`` stands for that of the bytes that are sent.
        kind: How it is serialized.
        required: Whether a body is always sent.
        arg: The argument that is the whole body; ``""`` if the properties are arguments.
        schemas: The schema of each argument.
        needed: The required arguments.
        styles: The styles of the form properties that have one.
        types: The media types of the parts of a multipart form that have one.
        nulls: The optional arguments for which null is sent.
        is_variadic: Whether the last argument is a list of the further values of a tool.
    """

    media_type: str
    kind: Kind
    required: bool
    arg: str
    schemas: Mapping[str, Any]
    needed: tuple[str, ...]
    styles: Mapping[str, Style]
    types: Mapping[str, str] = attrs.field(factory=dict)
    nulls: frozenset[str] = frozenset()
    is_variadic: bool = False

    def written(self, arguments: Mapping[str, Any], always: Collection[str]) -> tuple[bytes, str] | None:
        """Return the body as bytes and its media type, or None for a request without a body.

        Args:
            arguments: The value of each argument, None for an omitted one.
            always: The arguments that are always passed, so that None is one of their values.

        Raises:
            ToolFailed: ``openapi.value``.
        """
        if self.arg:
            value = arguments[self.arg]
            return None if value is None and self.arg not in always else self._bytes(value)
        sent = {*always, *self.nulls}
        properties = {name: arguments[name] for name in self.schemas if arguments[name] is not None or name in sent}
        return self._bytes(properties) if properties or self.required else None

    def _bytes(self, value: Any) -> tuple[bytes, str]:
        match self.kind:
            case "json":
                return json_text(value).encode(), self.media_type
            case "text":
                return scalar(value, self.arg).encode(), self.media_type
            case "form":
                return self._form(value).encode("ascii"), self.media_type
            case "multipart":
                return join_parts(self._parts(value))
            case "bytes":
                return value, _media_type_of(self.media_type, value)

    def _parts(self, value: Any) -> Iterator[Part]:
        if not isinstance(value, dict):
            raise value_error(self.arg, "expected a map")
        for name, each in value.items():
            if name in self.styles:
                for key, text in serialize_query(self.styles[name], each):
                    yield Part(key, unquote(text).encode())
            elif each is not None:
                for item in each if isinstance(each, list) else [each]:
                    yield self._part(name, item)

    def _part(self, name: str, value: Any) -> Part:
        kind = self.types.get(name, "")
        if isinstance(value, bytes):
            return Part(name, value, _media_type_of(kind or "*/*", value), is_file=True)
        if isinstance(value, (dict, list)) or value is None:
            return Part(name, json_text(value).encode(), kind or "application/json")
        return Part(name, scalar(value, name).encode(), kind)

    def _form(self, value: Any) -> str:
        if not isinstance(value, dict):
            raise value_error(self.arg, "expected a map")
        return join_pairs((name, self._field(name, each)) for name, each in value.items() if each is not None)

    def _field(self, name: str, value: Any) -> list[tuple[str, str]]:
        if name in self.styles:
            return serialize_query(self.styles[name], value)
        if isinstance(value, list):
            return [(name, percent_encode(_field_text(name, each))) for each in value]
        return [(name, percent_encode(_field_text(name, value)))]


def _media_type_of(declared: str, value: bytes) -> str:
    """Return a declared media type, or that of the bytes if it contains ``*``."""
    return (media_type(value) or OCTETS) if "*" in declared else declared


def _field_text(name: str, value: Any) -> str:
    """Return a form field as a string; lists and maps are written as JSON."""
    return json_text(value) if isinstance(value, (dict, list)) else scalar(value, name)


def content_of(
    document: Document, data: Any, path: str, schemas: Schemas, used_names: Collection[str]
) -> RequestBody | None:
    """Return the request body of an operation, or None if it has none.

    Args:
        data: The ``requestBody`` of the operation.
        used_names: The argument names already in use.

    Raises:
        Unfit: None of its media types is supported.
    """
    if data is None:
        return None
    body = document.followed(data, path)
    spelling, kind = _preferred_media_type(document, body.get("content"), at(path, "content"))
    word = _bare_media_type(spelling)
    place = at(path, "content", spelling)
    media = document.followed(body["content"][spelling], place)
    declared = media.get("schema", {})
    schema = BLOB if kind == "bytes" else schemas.arguments(declared, at(place, "schema"))
    if kind == "multipart":
        schema = _with_files(document, declared, schema, at(place, "schema"))
    required = body.get("required") is True
    spread = _spread(schema, required, used_names) if kind not in ("text", "bytes") else None
    encoding = _encoding(document, media, at(place, "encoding")) if kind in ("form", "multipart") else {}
    styles = _styles(encoding, at(place, "encoding"))
    types = {name: each["contentType"] for name, each in encoding.items() if _is_one_type(each.get("contentType"))}
    if spread is not None:
        needed = tuple(name for name in schema.get("required", ()) if name in spread)
        facts = schema.get(MARK, {})
        nulls = frozenset(name for name, each in spread.items() if name not in needed and _is_other_than_missing(each))
        is_variadic = facts.get("variadic") is True
        return RequestBody(word, kind, required, "", spread, needed, styles, types, nulls, is_variadic)
    name = next((name for name in ("body", "request_body") if name not in used_names), "")
    if not name:
        raise InvalidPart(path, "cannot name the body argument: parameters already use both body and request_body")
    whole = _body_schema(schema, kind, one_line(body.get("description"), MAX_DESCRIPTION_CHARS))
    return RequestBody(word, kind, required, name, {name: whole}, (name,) if required else (), styles, types)


def _body_schema(schema: Any, kind: Kind, text: str) -> Any:
    if isinstance(schema, bool):
        schema = {} if schema else {"not": {}}
    if not isinstance(schema, dict):
        return schema
    if kind == "text" and "type" not in schema and not schema.keys() - {"description"}:
        schema = {**schema, "type": "string"}
    if (
        kind in ("form", "multipart")
        and "type" not in schema
        and not schema.keys() & {"allOf", "anyOf", "oneOf", "$ref"}
    ):
        schema = {**schema, "type": "object"}
    return {"description": text, **schema} if text else schema


def _with_files(document: Document, declared: Any, schema: Any, path: str) -> Any:
    """Return the schema of a multipart form with blobs for its files."""
    head = document.followed(declared, path) if isinstance(declared, dict) else {}
    properties = head.get("properties")
    if not isinstance(properties, dict) or not isinstance(schema, dict):
        return schema
    converted = {**schema, "properties": {**schema.get("properties", {})}}
    for name, each in properties.items():
        if name not in converted["properties"]:  # only the server sends it
            continue
        note = {word: text for word, text in _said(converted["properties"][name]) if word == "description"}
        inner = document.followed(each, at(path, name)) if isinstance(each, dict) else {}
        if is_binary(document, each, path):
            converted["properties"][name] = {**BLOB, **note}
        elif inner.get("type") == "array" and is_binary(document, inner.get("items"), path):
            converted["properties"][name] = {**converted["properties"][name], "items": BLOB}
    return converted


def _said(schema: Any) -> Iterable[tuple[str, Any]]:
    return schema.items() if isinstance(schema, dict) else ()


def _has_files(document: Document, media: Any, path: str) -> bool:
    schema = media.get("schema") if isinstance(media, dict) else None
    head = document.followed(schema, path) if isinstance(schema, dict) else {}
    properties = head.get("properties")
    return isinstance(properties, dict) and any(is_binary(document, each, path) for each in properties.values())


def _preferred_media_type(document: Document, content: Any, path: str) -> tuple[str, Kind]:
    """Return the preferred media type as the document spells it, and its kind."""
    if not isinstance(content, dict) or not content:
        raise InvalidPart(path, "expected an object with media types as keys")
    known: dict[Kind, str] = {}
    for spelling in content:
        kind = _kind(document, _bare_media_type(spelling), content[spelling], path)
        if kind is not None:
            known.setdefault(kind, spelling)
    if "multipart" in known and _has_files(document, content[known["multipart"]], path):
        return known["multipart"], "multipart"
    for best in KINDS:
        if best in known:
            return known[best], best
    listed = ", ".join(map(quote_untrusted, [*content][:3]))
    raise InvalidPart(path, f"expected JSON, {FORM}, {MULTIPART}, text or bytes, got {listed}")


def _kind(document: Document, word: str, media: Any, path: str) -> Kind | None:
    """Return how a body of a media type is serialized, or None if the type is not supported."""
    schema = media.get("schema") if isinstance(media, dict) else None
    if JSON.fullmatch(word):
        return "json"
    if word in (FORM, MULTIPART):
        return "form" if word == FORM else "multipart"
    if BINARY.fullmatch(word) or WILDCARD.fullmatch(word) or is_binary(document, schema, path):
        return "bytes"
    return "text" if TEXT.fullmatch(word) else None


def _is_one_type(word: Any) -> bool:
    return isinstance(word, str) and MEDIA.fullmatch(word) is not None and "*" not in word


def _bare_media_type(spelling: str) -> str:
    """Return a media type without its parameters."""
    return spelling.partition(";")[0].strip().lower()


def _spread(schema: Any, required: bool, used_names: Collection[str]) -> dict[str, Any] | None:
    """Return the properties that become arguments, or None if the body is one argument."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or schema.keys() - PLAIN:
        return None
    is_exact = schema.get(MARK, {}).get("arguments") is True
    properties, needed = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, dict) or not properties or schema.get("additionalProperties", False) is not False:
        return None
    if not isinstance(needed, list) or (needed and not required):
        return None
    if not all(isinstance(each, str) and each in properties for each in needed):
        return None
    must = {*needed}
    for name, each in properties.items():
        if (
            name in used_names
            or argument_name(name) != name
            or (name not in must and not is_exact and _may_be_null(each))
        ):
            return None
    return properties


def _may_be_null(schema: Any) -> bool:
    if not isinstance(schema, dict) or "type" not in schema:
        return True
    words = schema["type"]
    return words == "null" or (isinstance(words, list) and "null" in words)


def _is_other_than_missing(schema: Any) -> bool:
    """Return whether null differs from a missing argument, which then has its default."""
    if not isinstance(schema, dict) or schema.get("default") is None:
        return False
    return schema.get(MARK, {}).get("nullable") is not False


def _encoding(document: Document, media: dict[str, Any], path: str) -> dict[str, dict[str, Any]]:
    encoding = media.get("encoding")
    pairs = encoding.items() if isinstance(encoding, dict) else ()
    return {name: document.followed(each, at(path, name)) for name, each in pairs}


def _styles(encoding: Mapping[str, dict[str, Any]], path: str) -> dict[str, Style]:
    """Return the styles of the form fields that have one."""
    found = {}
    for name, said in encoding.items():
        if not said.keys() & {"style", "explode"}:
            continue
        style = said.get("style", "form")
        if style not in ("form", "spaceDelimited", "pipeDelimited", "deepObject"):
            raise InvalidPart(at(path, name, "style"), "expected a query style")
        explode = said.get("explode", style in ("form", "deepObject"))
        if type(explode) is not bool:
            raise InvalidPart(at(path, name, "explode"), "expected true or false")
        found[name] = Style(name, name, style, explode)
    return found
