"""Responses: the return type of an operation, the value of a response, and the error for a status.

The error for a failed request contains only the status, because the body comes from the server and may contain values.

See the OpenAPI Specification 3.1.1, "Responses Object", and RFC 9110, section 15.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.types import ArgType
from neuroscript.errors import ToolFailed
from neuroscript.interop.openapi.document import Document, InvalidPart, at
from neuroscript.interop.openapi.request_body import JSON, MEDIA
from neuroscript.interop.openapi.schemas import MAX_DESCRIPTION_CHARS, kinds_of
from neuroscript.io.text import NotJSON, one_line, parse_json

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

BINARY: Final = re.compile(r"(?:image|audio|video|font)/.*|application/(?:octet-stream|pdf|zip|gzip)")

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
    """

    type: ArgType
    nullable: bool
    accept: str
    help: str


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
    kinds = [kind for status, response, place in good for kind in _kinds(document, status, response, place)]
    if method == "HEAD":
        kinds = [(ArgType.NIL, True)]
    names = {kind for kind, _ in kinds} - {ArgType.NIL}
    nullable = any(null for _, null in kinds)
    description = next((one_line(response.get("description"), MAX_DESCRIPTION_CHARS) for _, response, _ in good), "")
    accept = ", ".join(dict.fromkeys(_media_types(good))) or "*/*"
    if not kinds or len(names) > 1 or ArgType.ANY in names:
        return ReturnSpec(ArgType.ANY, False, accept, description)
    kind = names.pop() if names else ArgType.NIL
    return ReturnSpec(kind, nullable and kind is not ArgType.NIL, accept, description)


def _media_types(good: list[tuple[str, dict[str, Any], str]]) -> Iterator[str]:
    for _, response, _ in good:
        content = response.get("content")
        yield from (each.lower() for each in content or () if MEDIA.fullmatch(each.lower()))


def _kinds(document: Document, status: str, response: dict[str, Any], path: str) -> Iterator[tuple[ArgType, bool]]:
    """Yield the type of each content of a response, and whether it may be null."""
    content = response.get("content")
    if not content:
        yield (ArgType.NIL, True) if status in EMPTY_STATUSES else (ArgType.ANY, False)
        return
    if not isinstance(content, dict):
        raise InvalidPart(at(path, "content"), "expected an object with media types as keys")
    for name, media in content.items():
        word = name.partition(";")[0].strip().lower()
        if JSON.fullmatch(word):
            schema = media.get("schema", {}) if isinstance(media, dict) else {}
            kinds, null = kinds_of(document, schema, at(path, "content", name))
            yield (KINDS[kind][0] if len(kinds) == 1 and (kind := kinds.pop()) in KINDS else ArgType.ANY), null
        elif word.startswith("text/") and "*" not in word:
            yield ArgType.STRING, False
        else:
            yield (ArgType.BLOB if BINARY.fullmatch(word) else ArgType.ANY), False


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
    if promise.type is ArgType.ANY or (value is None and promise.nullable):
        return value
    if promise.type is ArgType.BLOB:
        return text.encode()
    if type(value) not in PYTHON_TYPES[promise.type]:
        raise _unlike("a different type than described")
    return value


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
