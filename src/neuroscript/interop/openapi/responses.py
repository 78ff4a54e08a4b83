"""Responses: the return type of an operation, the value of a response, and the error for a status.

The error for a failed request contains only the status, because the body comes from the server and may contain values.

See the OpenAPI Specification 3.1.1, "Responses Object", and RFC 9110, section 15.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.constraints import coerce_present
from neuroscript.coercion.context import RESULT, ROOT, CoercionPass
from neuroscript.coercion.types import ArgType
from neuroscript.errors import SpecError, ToolFailed
from neuroscript.formats.json_schema import result_from_schema
from neuroscript.interop.openapi.document import Document, InvalidPart, at
from neuroscript.interop.openapi.request_body import BINARY, JSON, MEDIA
from neuroscript.interop.openapi.schemas import MAX_DESCRIPTION_CHARS, Schemas, kinds_of
from neuroscript.io.text import NotJSON, one_line, parse_json
from neuroscript.spec.tool_spec import ArgSpec

KINDS: Final[Mapping[str, tuple[ArgType, tuple[type, ...]]]] = {
    "object": (ArgType.MAP, (dict,)),
    "array": (ArgType.SLICE_ANY, (list,)),
    "string": (ArgType.STRING, (str,)),
    "integer": (ArgType.INT, (int,)),
    "number": (ArgType.FLOAT, (int, float)),
    "boolean": (ArgType.BOOL, (bool,)),
}
"""The return type for each JSON type, and the Python types of its decoded values."""

PYTHON_TYPES: Final = dict(KINDS.values())

EMPTY_STATUSES: Final = frozenset({"204", "205"})
"""Statuses whose responses have no body."""

RETRY_LATER_STATUSES: Final = frozenset({408, 423, 425, 429})
RETRY_MODEL_STATUSES: Final = frozenset({400, 404, 409, 410, 412, 413, 414, 416, 422, 428})
"""Statuses after which the same request may succeed later, and statuses that a corrected request may avoid."""


@attrs.frozen
class ReturnSpec:
    """What an operation returns.

    Attributes:
        type: The return type; ``any`` if the description does not determine it.
        nullable: Whether None is a possible result.
        accept: The value of the header ``Accept``.
        help: The description of the response.
        returns: The spec of the result, if one JSON schema describes all results.
    """

    type: ArgType
    nullable: bool
    accept: str
    help: str
    returns: ArgSpec | None = None


def promise_of(document: Document, method: str, responses: Any, path: str) -> ReturnSpec:
    """Return what an operation returns on success; a HEAD response never has content.

    Raises:
        Unfit: A reference leads out of the document, or to nothing.
    """
    good = [
        (status, document.followed(each, at(path, status)), at(path, status))
        for status, each in (responses.items() if isinstance(responses, dict) else ())
        if re.fullmatch(r"2(?:[0-9]{2}|XX)", status)
    ]
    contents = [each for status, response, place in good for each in _contents(document, status, response, place)]
    if method == "HEAD":
        contents = [_NO_CONTENT]
    names = {each.type for each in contents} - {ArgType.NIL}
    nullable = any(each.nullable for each in contents)
    returns = _returns(document, [each for each in contents if each.type is not ArgType.NIL])
    description = next((one_line(response.get("description"), MAX_DESCRIPTION_CHARS) for _, response, _ in good), "")
    accept = ", ".join(dict.fromkeys(_media_types(good))) or "*/*"
    if not contents or len(names) > 1 or ArgType.ANY in names:
        return ReturnSpec(ArgType.ANY, False, accept, description, returns)
    kind = names.pop() if names else ArgType.NIL
    return ReturnSpec(kind, nullable and kind is not ArgType.NIL, accept, description, returns)


def _returns(document: Document, contents: list[_Content]) -> ArgSpec | None:
    """Return the spec of the result if the operation returns content of one kind, and that is JSON."""
    if len(contents) != 1 or contents[0].schema is None:
        return None
    key = json.dumps(contents[0].schema)
    if key not in document.results:
        document.results[key] = _result_spec(document, contents[0].schema, contents[0].path)
    found: ArgSpec | None = document.results[key]
    return found


def _result_spec(document: Document, schema: dict[str, Any], path: str) -> ArgSpec | None:
    schemas = Schemas(document, is_response=True)
    try:
        converted = schemas.taken(schema, path)
        if schemas.definitions:
            converted = {**converted, "$defs": schemas.definitions}
        returns = result_from_schema(converted)
    except (InvalidPart, SpecError):  # the outer type, which the operation needs, is known without it
        return None
    return returns if returns.has_parts else None


def _media_types(good: list[tuple[str, dict[str, Any], str]]) -> Iterator[str]:
    for _, response, _ in good:
        content = response.get("content")
        yield from (each.lower() for each in content or () if MEDIA.fullmatch(each.lower()))


@attrs.frozen
class _Content:
    """One content of a response.

    Attributes:
        type: The type of its value.
        nullable: Whether the value may be null.
        schema: The schema of JSON content.
        path: The path of the schema.
    """

    type: ArgType
    nullable: bool
    schema: dict[str, Any] | None = None
    path: str = ""


_NO_CONTENT: Final = _Content(ArgType.NIL, True)


def _contents(document: Document, status: str, response: dict[str, Any], path: str) -> Iterator[_Content]:
    """Yield each content of a response."""
    content = response.get("content")
    if not content:
        yield _NO_CONTENT if status in EMPTY_STATUSES else _Content(ArgType.ANY, False)
        return
    if not isinstance(content, dict):
        raise InvalidPart(at(path, "content"), "expected an object with media types as keys")
    for name, media in content.items():
        word = name.partition(";")[0].strip().lower()
        if JSON.fullmatch(word):
            schema = media.get("schema", {}) if isinstance(media, dict) else {}
            place = at(path, "content", name)
            kinds, null = kinds_of(document, schema, place)
            kind = KINDS[word][0] if len(kinds) == 1 and (word := kinds.pop()) in KINDS else ArgType.ANY
            yield _Content(kind, null, schema if isinstance(schema, dict) else None, place)
        elif word.startswith("text/") and "*" not in word:
            yield _Content(ArgType.STRING, False)
        else:
            yield _Content(ArgType.BLOB if BINARY.fullmatch(word) else ArgType.ANY, False)


def value_of(answer: Mapping[str, Any], promise: ReturnSpec) -> Any:
    """Return the value of a response from the http toolset.

    Raises:
        ToolFailed: ``openapi.status`` for a status other than 2xx, and ``openapi.answer`` for a response that does not
            match the description.
    """
    status = answer["status"]
    if not 200 <= status < 300:
        raise ToolFailed(
            f"the server responded with {status_text(status)}", code="openapi.status", retry=retry_of(status)
        )
    if promise.type is ArgType.NIL:
        return None
    if answer["size"] == 0:
        return _empty(promise)
    if JSON.fullmatch(answer["media_type"]):
        return _decoded(answer["text"], promise)
    if promise.type is ArgType.BLOB:
        return answer["text"].encode() if answer["bytes"] is None else answer["bytes"]
    if promise.type is ArgType.ANY:
        return answer["bytes"] if answer["text"] is None else answer["text"]
    if promise.type is ArgType.STRING and answer["text"] is not None:
        return answer["text"]
    raise _unlike("a response that does not match its description")


def _empty(promise: ReturnSpec) -> Any:
    if promise.nullable or promise.type is ArgType.ANY:
        return None
    if promise.type in (ArgType.STRING, ArgType.BLOB):
        return "" if promise.type is ArgType.STRING else b""
    raise _unlike("an empty response")


def _decoded(text: str | None, promise: ReturnSpec) -> Any:
    if text is None:
        raise _unlike("invalid JSON")
    try:
        value = parse_json(text)
    except NotJSON:
        raise _unlike("invalid JSON") from None
    if promise.type is ArgType.BLOB:
        return text.encode()
    if value is None and (promise.nullable or promise.type is ArgType.ANY):
        return value
    if promise.type is not ArgType.ANY and type(value) not in PYTHON_TYPES[promise.type]:
        raise _unlike("a different type than described")
    if promise.returns is None:
        return value
    walk = CoercionPass(RESULT)
    exact = walk.limited(coerce_present, promise.returns, value, ROOT)
    if walk.noted:
        raise _unlike("a different type than described")
    return exact


def _unlike(what: str) -> ToolFailed:
    return ToolFailed(f"the server returned {what}", code="openapi.answer", retry="never")


def status_text(status: int) -> str:
    """Return a status with its standard reason phrase.

    >>> status_text(404), status_text(599)
    ('404 not found', '599')
    """
    try:
        return f"{status} {HTTPStatus(status).phrase.lower()}"
    except ValueError:
        return str(status)


def retry_of(status: int) -> Literal["model", "later", "host"]:
    """Return who can resolve a status other than 2xx."""
    if status >= 500 or status in RETRY_LATER_STATUSES:
        return "later"
    return "model" if status in RETRY_MODEL_STATUSES else "host"
