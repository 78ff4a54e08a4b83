"""Files and bytes in requests, and descriptions of version 2.0, against a server that reads real forms."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pytest_httpserver import HTTPServer
from tests import npm_packages
from tests.interop.openapi_shop import NOTHING, Shop, opened, served
from werkzeug import Request, Response

from neuroscript import ArgType, ArgumentError, SpecError, Toolset
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


def received(request: Request) -> Response:
    """Respond with what werkzeug read from the form or the body."""
    files = {
        name: [[each.filename, each.mimetype, each.read().hex()] for each in request.files.getlist(name)]
        for name in request.files
    }
    fields = {name: request.form.getlist(name) for name in request.form}
    body = "" if files or fields else request.get_data().hex()
    said = {"type": request.mimetype, "files": files, "fields": fields, "body": body, "query": request.args.to_dict()}
    return Response(json.dumps(said), content_type="application/json")


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


# Version 2.0

ITEM: Final = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
SWAGGER: Final[dict[str, Any]] = {
    "swagger": "2.0",
    "info": {"title": "Old shop", "version": "1"},
    "host": "shop.example",
    "basePath": "/v1",
    "schemes": ["http", "https"],
    "consumes": ["application/json"],
    "produces": ["application/json"],
    "paths": {
        "/items/{id}": {
            "parameters": [{"$ref": "#/parameters/Id"}],
            "get": {
                "operationId": "getItem",
                "parameters": [
                    {"name": "csv", "in": "query", "type": "array", "items": {"type": "string"}},
                    *(
                        {
                            "name": word,
                            "in": "query",
                            "type": "array",
                            "items": {"type": "string"},
                            "collectionFormat": word,
                        }
                        for word in ("ssv", "pipes", "multi")
                    ),
                    {"name": "limit", "in": "query", "type": "integer", "maximum": 10, "exclusiveMaximum": True},
                ],
                "responses": {"200": {"$ref": "#/responses/Item"}},
            },
            "put": {
                "operationId": "putItem",
                "parameters": [{"$ref": "#/parameters/Item"}],
                "responses": {"200": {"$ref": "#/responses/Item"}},
                "security": [{"key": []}],
            },
            "post": {
                "operationId": "addPhoto",
                "consumes": ["multipart/form-data"],
                "parameters": [
                    {"name": "photo", "in": "formData", "type": "file", "required": True, "description": "It."},
                    {"name": "tags", "in": "formData", "type": "array", "items": {"type": "string"}},
                ],
                "responses": {"200": {"$ref": "#/responses/Item"}},
            },
            "patch": {
                "operationId": "editItem",
                "consumes": ["application/x-www-form-urlencoded"],
                "parameters": [{"name": "name", "in": "formData", "type": "string", "required": True}],
                "responses": {"200": {"$ref": "#/responses/Item"}},
            },
        },
        "/photo": {
            "get": {
                "operationId": "getPhoto",
                "produces": ["image/png"],
                "responses": {"200": {"description": "It.", "schema": {"type": "file"}}},
            }
        },
    },
    "parameters": {
        "Id": {"name": "id", "in": "path", "required": True, "type": "integer"},
        "Item": {"name": "item", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Item"}},
    },
    "responses": {"Item": {"description": "The item.", "schema": {"type": "object"}}},
    "definitions": {"Item": ITEM},
    "securityDefinitions": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
}


def old_shop(shop: Shop) -> Toolset:
    """Return the tools of version 2.0."""
    return from_openapi(SWAGGER, group="t", base_url=shop.url, private=[shop.place], secrets={"key": "k"})


def test_version_2_requests(shop: Shop) -> None:
    """Parameters, bodies and forms arrive as the description says."""
    with shop.engine(old_shop(shop), "secret:read:k", secrets={"k": "k-1f20"}) as engine:
        lists = {word: ["a", "b"] for word in ("csv", "ssv", "pipes", "multi")}
        engine.call_named("t.get_item", {"id": "7", "limit": "9", **lists})
        put = engine.call_named("t.put_item", {"id": 7, "name": "tea"})
        photo = engine.call_named("t.add_photo", {"id": 7, "photo": PNG, "tags": ["a", "b"]})
        edited = engine.call_named("t.edit_item", {"id": 7, "name": "tea & cup"})

    assert shop.requests[0].target == "/items/7?csv=a,b&ssv=a%20b&pipes=a%7Cb&multi=a&multi=b&limit=9"
    assert (put["type"], bytes.fromhex(put["body"])) == ("application/json", b'{"name":"tea"}')
    assert shop.requests[1].headers["X-Key"] == "k-1f20"
    assert (photo["files"], photo["fields"]) == ({"photo": [["photo", "image/png", PNG.hex()]]}, {"tags": ["a,b"]})
    assert (edited["type"], edited["fields"]) == ("application/x-www-form-urlencoded", {"name": ["tea & cup"]})


def test_version_2_specs(shop: Shop) -> None:
    """Rules and types are those of the description, and HTTPS is preferred."""
    tools = {tool.spec.name: tool for tool in from_openapi(SWAGGER, group="t", secrets={"key": "k"})}
    limit = tools["get_item"].spec.args[-1]

    assert tools["get_item"].policy.capabilities == ("net:read:shop.example:443",)
    assert (limit.type, limit.maximum) == (ArgType.INT, 9)
    assert tools["get_item"].spec.return_type is ArgType.MAP
    assert tools["get_photo"].spec.return_type is ArgType.BLOB
    assert [arg.name for arg in tools["add_photo"].spec.args] == ["id", "photo", "tags"]


def test_version_2_problems() -> None:
    """Each problem has its path in the original description; an ambiguous body loses no field silently."""
    bad = json.loads(json.dumps(SWAGGER))
    item = bad["paths"]["/items/{id}"]
    item["put"]["parameters"].append({"name": "extra", "in": "formData", "type": "string"})
    item["post"]["parameters"].append({"name": "x", "in": "query", "type": "array", "collectionFormat": "tsv"})
    item["patch"]["parameters"].append({"$ref": "#/parameters/Missing"})
    bad["paths"]["/photo"]["get"]["security"] = [{"unknown": []}]

    with pytest.raises(SpecError) as caught:
        from_openapi(bad, group="t", secrets={"key": "k"})

    path = "paths['/items/{id}']"
    assert list(caught.value.problems) == [
        f"{path}.put: parameters: describe a body and form fields, but a request has one body",
        f"{path}.post.parameters[2]: style: expected form or spaceDelimited or pipeDelimited or deepObject",
        f"{path}.patch.parameters[1]: $ref: #/parameters/Missing not found in the document",
        "paths['/photo'].get.security: requires unknown; name a host secret for each, as in secrets={'scheme': 'name'}",
    ]


def test_version_2_needs_a_host() -> None:
    """Without one, the server must be named."""
    document = {"swagger": "2.0", "info": {"title": "t"}, "paths": {"/a": {"get": {"responses": NOTHING}}}}

    with pytest.raises(SpecError) as caught:
        from_openapi(document)

    assert list(caught.value.problems) == ["servers: missing; pass base_url"]
    assert len(from_openapi(document, base_url="https://a.example")) == 1


def test_wrong_values_of_version_2_are_reported() -> None:
    """No part of a description raises another error than `SpecError`."""
    wrong: list[Any] = [None, 7, "x", [7], [{}], {"$ref": 7}, {"$ref": "#/paths"}, {"a": 1}]
    for key in SWAGGER:
        for value in wrong:
            load({**SWAGGER, key: value})
    operation = SWAGGER["paths"]["/items/{id}"]["post"]
    for key in operation:
        for value in wrong:
            load({**SWAGGER, "paths": {"/items/{id}": {"post": {**operation, key: value}}}})
    for value in wrong:
        parameter = {"name": "x", "in": "formData", "type": value, "items": value, "collectionFormat": value}
        load({**SWAGGER, "paths": {"/a": {"post": {"parameters": [parameter, value]}}}})
        load({**SWAGGER, "paths": {"/a": value, "/b": {"post": value}}})


def load(document: dict[str, Any]) -> None:
    """Load a description, or get a `SpecError`."""
    try:
        from_openapi(document, group="t", secrets={"key": "k"})
    except SpecError as error:
        assert error.problems


# Public descriptions

PUBLIC: Final = {
    "Kubernetes": ("kubernetes-client", "9.0.0", "lib/specs/swagger-1.13.json.gz", 1_014),
    "GitHub": ("@octokit/openapi", "23.0.2", "generated/api.github.com.json", 1_223),
    "Petstore 2.0": ("@readme/oas-examples", "8.2.2", "2.0/json/petstore.json", 20),
    "Petstore 3.0": ("@readme/oas-examples", "8.2.2", "3.0/json/petstore.json", 20),
    "Petstore 3.1": ("@readme/oas-examples", "8.2.2", "3.1/json/petstore.json", 20),
}
"""The package, its version, the file and the number of operations."""


@pytest.mark.full
@pytest.mark.parametrize("name", PUBLIC)
def test_every_operation_of_a_public_description_becomes_a_tool(name: str) -> None:
    """The documentation states these numbers."""
    package, version, path, count = PUBLIC[name]
    try:
        file = Path(npm_packages.installed(package, version, path)[1])
    except OSError as error:
        pytest.skip(str(error))
    text = (gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()).decode()
    document = json.loads(text)
    schemes = document.get("securityDefinitions") or document.get("components", {}).get("securitySchemes") or {}

    loaded = from_openapi(
        document, group="api", secrets=dict.fromkeys(schemes, "key"), base_url="https://api.example", skip=True
    )

    assert (len(loaded.toolset), loaded.skipped) == (count, ())
