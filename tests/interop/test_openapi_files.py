"""Files and bytes in requests, against a server that reads real forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from pytest_httpserver import HTTPServer
from tests.interop.openapi_shop import Shop, opened, received, served

from neuroscript import ArgType, ArgumentError
from neuroscript.interop.openapi import from_openapi
from neuroscript.interop.openapi.multipart import Part, join_parts

PNG: Final = b"\x89PNG\r\n\x1a\n\x00\xff"
BINARY: Final = {"type": "string", "format": "binary"}


@pytest.fixture(scope="module")
def server() -> Iterator[HTTPServer]:
    with served() as server:
        yield server


@pytest.fixture
def shop(server: HTTPServer) -> Shop:
    shop = opened(server)
    shop.answer = received
    return shop


def posting(content: dict[str, Any], version: str = "3.1.0", *, required: bool = True) -> dict[str, Any]:
    """Return a description with one operation that has a body."""
    post = {
        "operationId": "send",
        "requestBody": {"required": required, "content": content},
        "responses": {"200": {"description": "It.", "content": {"application/json": {"schema": {"type": "object"}}}}},
    }
    servers = [{"url": "https://a.example"}]
    return {"openapi": version, "info": {"title": "t"}, "servers": servers, "paths": {"/send": {"post": post}}}


def form(properties: dict[str, Any], **media: Any) -> dict[str, Any]:
    """Return the content of a multipart form that requires its first property."""
    schema = {"type": "object", "required": [next(iter(properties))], "properties": properties}
    return {"multipart/form-data": {"schema": schema, **media}}


def sent(shop: Shop, document: dict[str, Any], arguments: dict[str, Any], tool: str = "t.send") -> Any:
    """Return what the server received."""
    tools = from_openapi(document, group="t", base_url=shop.url, private=[shop.place])
    with shop.engine(tools) as engine:
        return engine.call_named(tool, arguments)


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_form_with_files(shop: Shop, version: str) -> None:
    """Fields are text, lists are repeated, maps are JSON, and each file has a name and its media type."""
    properties = {
        "photo": BINARY,
        "caption": {"type": "string"},
        "count": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "more": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "pages": {"type": "array", "items": BINARY},
    }
    arguments = {
        "photo": PNG,
        "caption": 'Tea "for two" \u2615\r\nX: y',
        "count": "3",
        "tags": ["a", "b"],
        "more": {"x": 1},
        "pages": [b"\x00", b"two"],
    }

    got = sent(shop, posting(form(properties), version), arguments)

    assert got["type"] == "multipart/form-data"
    assert got["files"] == {
        "photo": [["photo", "image/png", PNG.hex()]],
        "pages": [["pages", "application/octet-stream", "00"], ["pages", "application/octet-stream", "74776f"]],
    }
    assert got["fields"] == {
        "caption": ['Tea "for two" \u2615\r\nX: y'],
        "count": ["3"],
        "tags": ["a", "b"],
        "more": ['{"x":1}'],
    }


def test_file_is_an_argument_of_bytes(shop: Shop) -> None:
    """A model sends it as base64; nothing optional is sent if it is missing."""
    document = posting(form({"photo": {**BINARY, "description": "What to show."}, "note": {"type": "string"}}))
    [tool] = from_openapi(document, group="t", base_url=shop.url)

    got = sent(shop, document, {"photo": {"$base64": "iVBORw0KGgoA/w=="}})

    assert [(arg.name, arg.type, arg.description) for arg in tool.spec.args] == [
        ("photo", ArgType.BLOB, "What to show."),
        ("note", ArgType.STRING, ""),
    ]
    assert (got["files"], got["fields"]) == ({"photo": [["photo", "image/png", PNG.hex()]]}, {})


def test_media_types_and_styles_of_parts(shop: Shop) -> None:
    """The encoding of a part decides how it is written."""
    encoding = {
        "data": {"contentType": "text/csv"},
        "codes": {"style": "form", "explode": False},
        "any": {"contentType": "image/*, text/plain"},
    }
    properties = {
        "data": {"contentMediaType": "text/csv"},
        "codes": {"type": "array", "items": {"type": "integer"}},
        "any": BINARY,
    }

    got = sent(
        shop, posting(form(properties, encoding=encoding)), {"data": b"a,b\n", "codes": [1, 2], "any": b"GIF89a"}
    )

    assert got["files"] == {
        "data": [["data", "text/csv", b"a,b\n".hex()]],
        "any": [["any", "image/gif", b"GIF89a".hex()]],
    }
    assert got["fields"] == {"codes": ["1,2"]}


@pytest.mark.parametrize(
    ("media_type", "schema", "expected"),
    [
        ("application/octet-stream", {}, "application/octet-stream"),
        ("application/octet-stream", BINARY, "application/octet-stream"),
        ("image/*", BINARY, "image/png"),
        ("*/*", {}, "image/png"),
        ("application/x-tar", BINARY, "application/x-tar"),
        ("application/x-tar", {"type": "string", "contentMediaType": "application/x-tar"}, "application/x-tar"),
    ],
)
def test_body_of_bytes(shop: Shop, media_type: str, schema: dict[str, Any], expected: str) -> None:
    """A media type with an asterisk stands for that of the bytes."""
    got = sent(shop, posting({media_type: {"schema": schema}}), {"body": PNG})

    assert (got["type"], got["body"]) == (expected, PNG.hex())


def test_optional_body_of_bytes(shop: Shop) -> None:
    """Without a value, no body is sent."""
    got = sent(shop, posting({"application/octet-stream": {}}, required=False), {})

    assert (got["type"], got["body"]) == ("", "")


def test_encoded_bytes_are_text(shop: Shop) -> None:
    """A ``contentEncoding`` says that the server expects the encoded text."""
    properties = {"photo": {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"}}

    got = sent(shop, posting(form(properties)), {"photo": "iVBORw0K"})

    assert (got["files"], got["fields"]) == ({}, {"photo": ["iVBORw0K"]})


def test_large_file_is_refused(shop: Shop) -> None:
    """The limit of the engine applies to files as well."""
    document = posting(form({"photo": BINARY}))

    with pytest.raises(ArgumentError) as caught:
        sent(shop, document, {"photo": bytes(9 * 1024 * 1024)})

    assert (caught.value.problems[0].code, caught.value.retry) == ("limit.text", "model")
    assert not shop.requests


def test_boundary_is_in_no_part() -> None:
    """Equal parts have equal bodies, so that a recorded request can be compared."""
    parts = [Part("a", b"x"), Part('b"\r\n', b"\x00", "image/png", is_file=True)]
    body, media_type = join_parts(parts)
    boundary = media_type.partition("boundary=")[2]

    assert join_parts(parts) == (body, media_type)
    assert body.count(boundary.encode()) == len(parts) + 1
    assert b'name="b%22%0D%0A"; filename="b%22%0D%0A"' in body


def test_files_that_only_the_server_sends_are_no_arguments(shop: Shop) -> None:
    """As for all other properties."""
    hidden = {"seen": {**BINARY, "readOnly": True}, "all": {"type": "array", "items": BINARY, "readOnly": True}}
    [tool] = from_openapi(posting(form({"photo": BINARY, **hidden})), group="t", base_url=shop.url)

    assert [arg.name for arg in tool.spec.args] == ["photo"]


def test_file_that_may_be_null_is_bytes(shop: Shop) -> None:
    """Version 3.1 writes this as a second type."""
    document = posting(form({"photo": {"type": ["string", "null"], "format": "binary"}}))

    got = sent(shop, document, {"photo": PNG})

    assert got["files"] == {"photo": [["photo", "image/png", PNG.hex()]]}
