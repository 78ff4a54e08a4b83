"""Descriptions of version 2.0, and public descriptions of all versions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pytest_httpserver import HTTPServer
from tests import npm_packages
from tests.interop.openapi_shop import NOTHING, Shop, opened, received, served

from neuroscript import ArgType, SpecError, Toolset
from neuroscript.interop.openapi import from_openapi

PNG: Final = b"\x89PNG\r\n\x1a\n\x00\xff"


@pytest.fixture(scope="module")
def server() -> Iterator[HTTPServer]:
    with served() as server:
        yield server


@pytest.fixture
def shop(server: HTTPServer) -> Shop:
    shop = opened(server)
    shop.answer = received
    return shop


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
