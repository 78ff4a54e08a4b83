"""Conversion of a Swagger 2.0 description to the form of OpenAPI 3.0, which the other modules read.

The definitions keep their places, so references and the paths in error messages remain valid. See the OpenAPI
Specification 2.0 and "Upgrading from OpenAPI 2.0 to 3.0".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from neuroscript.interop.openapi.document import MOVED, Document, InvalidPart, at

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")

JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
PATCH_LIST: Final = "application/json-patch+json"
ANY_TYPES: Final = ("*/*", "application/*")

PARAMETER_FIELDS: Final = frozenset({"name", "in", "description", "required", "allowEmptyValue", "collectionFormat"})
"""The fields of a parameter that do not describe its value."""

STYLES: Final[Mapping[str, tuple[str, bool]]] = {
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
"""The style and ``explode`` of each collection format in a query or a form. ``tsv`` has no style."""

FLOWS: Final = {"basic": {"type": "http", "scheme": "basic"}, "oauth2": {"type": "oauth2"}}
"""The security schemes that are written differently, by their type."""

FILE: Final = {"type": "string", "format": "binary"}

Parts = dict[str, Any]


def upgrade(root: Parts) -> tuple[Parts, dict[str, list[str]]]:
    """Return a description as OpenAPI 3.0, and the problems of its operations by their paths.

    Invalid parts are copied unchanged, so that the modules that read them report them.
    """
    document = Document(root, is_old=True)
    problems: dict[str, list[str]] = {}
    converted = {**root, "components": {"securitySchemes": _schemes(root.get("securityDefinitions"))}}
    converted["servers"] = list(_servers(root, root.get("schemes")))
    if isinstance(root.get("paths"), dict):
        converted["paths"] = {
            route: _Item(document, at("paths", route), problems).converted(item) if route.startswith("/") else item
            for route, item in root["paths"].items()
        }
    return converted, problems


def _servers(root: Parts, schemes: Any) -> Iterator[Parts]:
    """Yield the servers; HTTPS comes first, and is assumed if no scheme is declared."""
    host, base = root.get("host"), root.get("basePath", "")
    if not isinstance(host, str) or not isinstance(base, str):
        return
    named = schemes if isinstance(schemes, list) and schemes else ["https"]
    for scheme in ("https", "http"):
        if scheme in named:
            yield {"url": f"{scheme}://{host}{base}"}


def _schemes(definitions: Any) -> Parts:
    if not isinstance(definitions, dict):
        return {}
    return {
        name: FLOWS.get(str(each.get("type")), each) if isinstance(each, dict) else each
        for name, each in definitions.items()
    }


class _Item:
    """One path item.

    Args:
        document: The original description.
        path: The path of the item in it.
        problems: Receives the problems of each operation.
    """

    def __init__(self, document: Document, path: str, problems: dict[str, list[str]]) -> None:
        self._document = document
        self._path = path
        self._problems = problems

    def converted(self, item: Any) -> Any:
        try:
            found = self._document.followed(item, self._path)
        except InvalidPart:
            return item
        shared = self._followed(found.get("parameters"))
        converted = {**found, "parameters": _others(found.get("parameters"), shared)}
        for method in METHODS:
            if isinstance(found.get(method), dict):
                converted[method] = self._operation(found[method], shared, at(self._path, method))
        return converted

    def _followed(self, parameters: Any) -> list[Any]:
        return [self._parameter(each) for each in parameters] if isinstance(parameters, list) else []

    def _parameter(self, parameter: Any) -> Any:
        """Return a parameter without a reference, or the invalid value itself."""
        try:
            return self._document.followed(parameter, "")
        except InvalidPart:
            return parameter

    def _operation(self, data: Parts, shared: list[Any], path: str) -> Parts:
        root = self._document.root
        own = self._followed(data.get("parameters"))
        converted = {**data, "parameters": _others(data.get("parameters"), own)}
        sent = list(_sent([*shared, *own]))
        bodies = [each for each in sent if each["in"] == "body"]
        fields = [each for each in sent if each["in"] == "formData"]
        if not all(isinstance(each.get("name"), str) for each in fields):
            self._problems[path] = ["parameters: a form field has no name"]
        elif len(bodies) > 1 or (bodies and fields):
            both = "a body and form fields" if fields else "two bodies"
            self._problems[path] = [f"parameters: describe {both}, but a request has one body"]
        elif bodies:
            converted["requestBody"] = _body(bodies[0], _media_types(data, root, "consumes"))
        elif fields:
            converted["requestBody"] = _form(fields, _media_types(data, root, "consumes"))
        if isinstance(data.get("schemes"), list):
            converted["servers"] = list(_servers(root, data["schemes"]))
        responses = data.get("responses")
        if isinstance(responses, dict):
            types = _media_types(data, root, "produces")
            converted["responses"] = {status: self._response(each, types) for status, each in responses.items()}
        return converted

    def _response(self, response: Any, types: list[str]) -> Any:
        try:
            found = self._document.followed(response, "")
        except InvalidPart:
            return response
        schema = found.get("schema")
        if schema is None:
            return found
        if isinstance(schema, dict) and schema.get("type") == "file":
            return {**found, "content": {each: {"schema": FILE} for each in types or ["application/octet-stream"]}}
        json = [each for each in types if _is_json(each)]
        return {**found, "content": {each: {"schema": schema} for each in json[:1] or types or [JSON]}}


def _is_json(media_type: str) -> bool:
    bare = media_type.partition(";")[0].strip().lower()
    return bare == JSON or bare.endswith("+json")


def _media_types(data: Parts, root: Parts, word: str) -> list[str]:
    """Return the media types of an operation, with JSON for any, and lists of JSON patches last."""
    listed = data.get(word, root.get(word))
    types = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    return sorted(dict.fromkeys(JSON if each in ANY_TYPES else each for each in types), key=PATCH_LIST.__eq__)


def _others(parameters: Any, followed: list[Any]) -> Any:
    """Return the parameters outside the body in the form of 3.0; the others keep their places."""
    if not isinstance(parameters, list):
        return [] if parameters is None else parameters
    return [
        MOVED if _is_sent(data) else _parameter(data) if isinstance(data, dict) else original
        for original, data in zip(parameters, followed, strict=True)
    ]


def _is_sent(parameter: Any) -> bool:
    return isinstance(parameter, dict) and parameter.get("in") in ("body", "formData")


def _sent(parameters: Iterable[Any]) -> Iterator[Parts]:
    """Yield the parameters of the body; those of the operation replace the same ones of the path item."""
    found = {(each["in"], str(each.get("name"))): each for each in parameters if _is_sent(each)}
    yield from found.values()


def _parameter(data: Parts) -> Parts:
    if "$ref" in data:
        return data
    said = {word: each for word, each in data.items() if word in ("name", "in", "description", "required")}
    return {**said, "schema": _schema(data), **_style(data)}


def _schema(data: Parts) -> Parts:
    return {word: each for word, each in data.items() if word not in PARAMETER_FIELDS}


def _style(data: Parts) -> Parts:
    if data.get("type") != "array":
        return {}
    word = data.get("collectionFormat", "csv")
    if not isinstance(word, str):
        return {"style": word}
    style, explode = STYLES.get(word, (word, False))
    if data.get("in") in ("path", "header") and word == "csv":
        style = "simple"
    return {"style": style, "explode": explode}


def _body(parameter: Parts, types: list[str]) -> Parts:
    said = {word: each for word, each in parameter.items() if word in ("description", "required")}
    return {**said, "content": {each: {"schema": parameter.get("schema", {})} for each in types or [JSON]}}


def _form(fields: list[Parts], types: list[str]) -> Parts:
    """Return the body of form fields; a file needs multipart, which is otherwise used if it is the only form."""
    has_file = any(each.get("type") == "file" for each in fields)
    is_multipart = has_file or (MULTIPART in types and FORM not in types)
    properties, encoding = {}, {}
    for each in fields:
        name = each["name"]
        note = {"description": each["description"]} if "description" in each else {}
        properties[name] = {**(FILE if each.get("type") == "file" else _schema(each)), **note}
        if style := _style(each):
            encoding[name] = style
    required = [each["name"] for each in fields if each.get("required") is True]
    schema: Parts = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    media = {"schema": schema, "encoding": encoding}
    return {"required": bool(required), "content": {MULTIPART if is_multipart else FORM: media}}
