"""The request body: its media type, its arguments and its serialization.

The properties of an object become separate arguments. There is one argument ``body`` instead if the object allows other
properties, if a name collides, or if an optional property may be null, because only a map distinguishes null from a
missing key.

See the OpenAPI Specification 3.1.1, "Request Body Object", "Media Type Object" and "Encoding Object".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.interop.openapi.document import Document, InvalidPart, at
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
from neuroscript.interop.openapi.schemas import MAX_DESCRIPTION_CHARS, Schemas
from neuroscript.io.text import one_line, quote_untrusted

Kind = Literal["json", "form", "text"]

MEDIA: Final = re.compile(r"[a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,64}")
JSON: Final = re.compile(r"application/(?:[a-z0-9!#$&^_.-]+\+)?json")
FORM: Final = "application/x-www-form-urlencoded"
TEXT: Final = "text/plain"

KINDS: Final[tuple[Kind, ...]] = ("json", "form", "text")
WORDS: Final[Mapping[str, Kind]] = {FORM: "form", TEXT: "text"}

PLAIN: Final = frozenset({"type", "properties", "required", "additionalProperties", "description", "deprecated"})
"""The keywords allowed in the schema of an object whose properties become arguments."""


@attrs.frozen(eq=False)
class RequestBody:
    """The body of a request.

    Attributes:
        media_type: The value of the header ``RequestBody-Type``.
        kind: How it is serialized.
        required: Whether a body is always sent.
        arg: The argument that is the whole body; ``""`` if the properties are arguments.
        schemas: The schema of each argument.
        needed: The required arguments.
        styles: The styles of the form properties that have one.
    """

    media_type: str
    kind: Kind
    required: bool
    arg: str
    schemas: Mapping[str, Any]
    needed: tuple[str, ...]
    styles: Mapping[str, Style]

    def written(self, arguments: Mapping[str, Any], always: Collection[str]) -> bytes | None:
        """Return the body as bytes, or None for a request without a body.

        Args:
            arguments: The value of each argument, None for an omitted one.
            always: The arguments that are always passed, so that None is one of their values.

        Raises:
            ToolFailed: ``openapi.value``.
        """
        if self.arg:
            value = arguments[self.arg]
            return None if value is None and self.arg not in always else self._bytes(value)
        properties = {name: arguments[name] for name in self.schemas if arguments[name] is not None or name in always}
        return self._bytes(properties) if properties or self.required else None

    def _bytes(self, value: Any) -> bytes:
        match self.kind:
            case "json":
                return json_text(value).encode()
            case "text":
                return scalar(value, self.arg).encode()
            case "form":
                return self._form(value).encode("ascii")

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
    media_type, kind = _preferred_media_type(body.get("content"), at(path, "content"))
    word = _bare_media_type(media_type)
    place = at(path, "content", media_type)
    media = document.followed(body["content"][media_type], place)
    declared = media.get("schema", {})
    schema = schemas.taken(declared, at(place, "schema"))
    required = body.get("required") is True
    spread = _spread(schema, required, used_names) if kind != "text" else None
    styles = _styles(document, media.get("encoding", {}), at(place, "encoding")) if kind == "form" else {}
    if spread is not None:
        needed = tuple(name for name in schema.get("required", ()) if name in spread)
        return RequestBody(word, kind, required, "", spread, needed, styles)
    name = next((name for name in ("body", "request_body") if name not in used_names), "")
    if not name:
        raise InvalidPart(path, "cannot name the body argument: parameters already use both body and request_body")
    whole = _body_schema(schema, kind, one_line(body.get("description"), MAX_DESCRIPTION_CHARS))
    return RequestBody(word, kind, required, name, {name: whole}, (name,) if required else (), styles)


def _body_schema(schema: Any, kind: Kind, text: str) -> Any:
    if isinstance(schema, bool):
        schema = {} if schema else {"not": {}}
    if not isinstance(schema, dict):
        return schema
    if kind == "text" and "type" not in schema and not schema.keys() - {"description"}:
        schema = {**schema, "type": "string"}
    if kind == "form" and "type" not in schema and not schema.keys() & {"allOf", "anyOf", "oneOf", "$ref"}:
        schema = {**schema, "type": "object"}
    return {"description": text, **schema} if text else schema


def _preferred_media_type(content: Any, path: str) -> tuple[str, Kind]:
    """Return the preferred media type as the document spells it, and its kind."""
    if not isinstance(content, dict) or not content:
        raise InvalidPart(path, "expected an object with media types as keys")
    known: dict[Kind, str] = {}
    for spelling in content:
        word = _bare_media_type(spelling)
        kind: Kind | None = "json" if JSON.fullmatch(word) else WORDS.get(word)
        if kind is not None:
            known.setdefault(kind, spelling)
    for best in KINDS:
        if best in known:
            return known[best], best
    listed = ", ".join(map(quote_untrusted, [*content][:3]))
    raise InvalidPart(path, f"expected JSON, {FORM} or {TEXT}, got {listed}")


def _bare_media_type(spelling: str) -> str:
    """Return a media type without its parameters."""
    return spelling.partition(";")[0].strip().lower()


def _spread(schema: Any, required: bool, used_names: Collection[str]) -> dict[str, Any] | None:
    """Return the properties that become arguments, or None if the body is one argument."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or schema.keys() - PLAIN:
        return None
    properties, needed = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, dict) or not properties or schema.get("additionalProperties", False) is not False:
        return None
    if not isinstance(needed, list) or (needed and not required):
        return None
    if not all(isinstance(each, str) and each in properties for each in needed):
        return None
    must = {*needed}
    for name, each in properties.items():
        if name in used_names or argument_name(name) != name or (name not in must and _may_be_null(each)):
            return None
    return properties


def _may_be_null(schema: Any) -> bool:
    if not isinstance(schema, dict) or "type" not in schema:
        return True
    words = schema["type"]
    return words == "null" or (isinstance(words, list) and "null" in words)


def _styles(document: Document, encoding: Any, path: str) -> dict[str, Style]:
    """Return the styles of the form fields that have one."""
    found = {}
    for name, each in (encoding if isinstance(encoding, dict) else {}).items():
        said = document.followed(each, at(path, name))
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
