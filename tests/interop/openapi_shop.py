"""A realistic description, and a server that records its requests, for the tests of `from_openapi`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs
from pytest_httpserver import HTTPServer, URIPattern
from werkzeug import Request, Response

from neuroscript import Engine, ExecutionPolicy, Host, Toolset
from neuroscript_http.toolset import toolset as http


class Every(URIPattern):
    """Matches every path."""

    def match(self, uri: str) -> bool:
        return True


@attrs.frozen
class ShopRequest:
    """A received request, with its raw path and query."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]


@attrs.define(eq=False)
class Shop:
    """A server on loopback that answers each request with one function."""

    server: HTTPServer
    requests: list[ShopRequest] = attrs.field(factory=list)
    answer: Callable[[Request], Response] = lambda request: Response(status=204)
    http: Toolset = http

    @property
    def place(self) -> str:
        return f"{self.server.host}:{self.server.port}"

    @property
    def url(self) -> str:
        return f"http://{self.place}"

    def engine(self, tools: Toolset, *grants: str, secrets: dict[str, str] | None = None, **parts: Any) -> Engine:
        """Return an engine with the tools and the grants for this server."""
        given = (f"net:read,write:{self.place}", f"lan:reach:{self.place}", *grants)
        return Engine(
            toolsets=[http, tools],
            plugins="none",
            host=Host(secrets=secrets or {}),
            policy=ExecutionPolicy(grants=given),
            **parts,
        )

    def says(self, status: int, data: Any = None, media_type: str = "application/json") -> None:
        """Answer every request."""
        body = json.dumps(data) if media_type == "application/json" else data
        self.answer = lambda request: Response(body, status, content_type=media_type)

    def handled(self, request: Request) -> Response:
        """Record a request, and answer it."""
        target = request.environ["REQUEST_URI"]
        self.requests.append(ShopRequest(request.method, target, dict(request.headers), request.get_data()))
        return self.answer(request)


@contextmanager
def served() -> Iterator[HTTPServer]:
    """Provide a running server."""
    server = HTTPServer(host="127.0.0.1")
    server.start()
    try:
        yield server
    finally:
        server.stop()


def opened(server: HTTPServer) -> Shop:
    """Return a server without recorded requests."""
    shop = Shop(server)
    server.clear()
    server.expect_request(Every()).respond_with_handler(shop.handled)
    return shop


def received(request: Request) -> Response:
    """Respond with what werkzeug read from the form or the body; an answer of `Shop`."""
    files = {
        name: [[each.filename, each.mimetype, each.read().hex()] for each in request.files.getlist(name)]
        for name in request.files
    }
    fields = {name: request.form.getlist(name) for name in request.form}
    body = "" if files or fields else request.get_data().hex()
    said = {"type": request.mimetype, "files": files, "fields": fields, "body": body, "query": request.args.to_dict()}
    return Response(json.dumps(said), content_type="application/json")


def ok(schema: Any) -> dict[str, Any]:
    """Return responses with one successful JSON response."""
    return {"200": {"description": "Fine.", "content": {"application/json": {"schema": schema}}}}


def ref(name: str, part: str = "schemas") -> dict[str, str]:
    """Return a reference."""
    return {"$ref": f"#/components/{part}/{name}"}


def query(name: str, schema: Any, **more: Any) -> dict[str, Any]:
    """Return a query parameter."""
    return {"name": name, "in": "query", "schema": schema, **more}


STRINGS: Final = {"type": "array", "items": {"type": "string"}}
WORDS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
NOTHING: Final = {"204": {"description": "Nothing."}}

PETS: Final[dict[str, Any]] = {
    "openapi": "3.1.0",
    "info": {"title": "Pet Store", "version": "1.0.0"},
    "servers": [{"url": "https://{region}.pets.example/v1", "variables": {"region": {"default": "eu"}}}],
    "security": [{"key": []}],
    "paths": {
        "/pets": {
            "parameters": [ref("Trace", "parameters")],
            "get": {
                "operationId": "listPets",
                "summary": "List all pets",
                "description": "Those that are there,\n\x1b[2J in pages.",
                "parameters": [
                    query("limit", {"type": "integer", "format": "int32", "minimum": 1, "maximum": 100, "default": 20}),
                    query("tags", STRINGS),
                    query("filter[name]", {"type": "string"}),
                    query("status", {"type": "string", "enum": ["free", "sold"]}, deprecated=True),
                ],
                "responses": ok({"type": "array", "items": ref("Pet")}),
            },
            "post": {
                "operationId": "createPet",
                "requestBody": {"required": True, "content": {"application/json": {"schema": ref("Pet")}}},
                "responses": {"201": ok(ref("Pet"))["200"]},
            },
        },
        "/pets/{petId}": {
            "parameters": [{"name": "petId", "in": "path", "required": True, "schema": {"type": "integer"}}],
            "get": {"operationId": "getPetByID", "responses": ok(ref("Pet")) | {"default": ref("Error", "responses")}},
            "put": {
                "operationId": "pets/replace",
                "requestBody": ref("Pet", "requestBodies"),
                "responses": ok(ref("Pet")),
            },
            "patch": {
                "operationId": "update_pet",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/merge-patch+json": {
                            "schema": {
                                "type": "object",
                                "properties": {"name": {"type": "string"}, "owner": {"type": ["string", "null"]}},
                            }
                        }
                    },
                },
                "responses": ok(ref("Pet")),
            },
            "delete": {"operationId": "deletePet", "deprecated": True, "responses": NOTHING},
        },
        "/pets/{petId}/photo": {
            "get": {
                "parameters": [{"name": "petId", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "It.", "content": {"image/png": {}}}},
            }
        },
        "/pets/{petId}/note": {
            "put": {
                "parameters": [
                    {"name": "petId", "in": "path", "required": True, "schema": {"type": "string"}},
                    query("petId", {"type": "boolean"}),
                ],
                "requestBody": {"content": {"text/plain": {"schema": {"type": "string", "maxLength": 10}}}},
                "responses": NOTHING,
            }
        },
        "/tree": {
            "post": {
                "operationId": "plant",
                "requestBody": {"required": True, "content": {"application/json": {"schema": ref("Node")}}},
                "responses": ok(ref("Node")),
            }
        },
        "/login": {
            "post": {
                "operationId": "login",
                "security": [],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {
                                "type": "object",
                                "required": ["user", "word"],
                                "properties": {
                                    "user": {"type": "string"},
                                    "word": {"type": "string", "format": "password"},
                                    "roles": STRINGS,
                                    "more": {"type": "object", "properties": {"x": {"type": "integer"}}},
                                    "codes": {"type": "array", "items": {"type": "integer"}},
                                },
                            },
                            "encoding": {"codes": {"style": "form", "explode": False}},
                        }
                    },
                },
                "responses": {"200": {"description": "A token.", "content": {"text/plain": {"schema": {}}}}},
            }
        },
        "/count": {"get": {"operationId": "countPets", "responses": ok({"type": ["integer", "null"]})}},
        "/health": {"head": {"operationId": "health", "security": [{}, {"key": []}], "responses": NOTHING}},
        "/me": {"get": {"operationId": "me", "security": [{"token": []}], "responses": ok({})}},
        "/me/basic": {"get": {"operationId": "meBasic", "security": [{"login": []}], "responses": ok({})}},
        "/me/cookie": {"get": {"operationId": "meCookie", "security": [{"session": []}], "responses": ok({})}},
        "/me/query": {
            "get": {
                "operationId": "meQuery",
                "security": [{"inQuery": []}],
                "parameters": [query("api_key", {"type": "string"}), query("any", WORDS)],
                "responses": ok({}),
            }
        },
        "/open": {"get": {"operationId": "openId", "security": [{"openid": ["read"]}], "responses": ok({})}},
    },
    "components": {
        "parameters": {
            "Trace": {"name": "X-Trace", "in": "header", "schema": {"type": "string"}, "description": "An id."}
        },
        "requestBodies": {"Pet": {"required": True, "content": {"application/json": {"schema": ref("Pet")}}}},
        "responses": {"Error": {"description": "An error.", "content": {"application/json": {"schema": {}}}}},
        "schemas": {
            "Pet": {
                "type": "object",
                "required": ["id", "name"],
                "properties": {
                    "id": {"type": "integer", "format": "int64", "readOnly": True},
                    "name": {"type": "string", "minLength": 1, "description": "What it is called."},
                    "tags": STRINGS,
                    "price": {"type": "number", "minimum": 0},
                },
            },
            "Node": {
                "type": "object",
                "required": ["value"],
                "properties": {"value": {"type": "integer"}, "children": {"type": "array", "items": ref("Node")}},
            },
        },
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            "token": {"type": "http", "scheme": "bearer"},
            "login": {"type": "http", "scheme": "Basic"},
            "session": {"type": "apiKey", "in": "cookie", "name": "sid"},
            "inQuery": {"type": "apiKey", "in": "query", "name": "api_key"},
            "openid": {"type": "openIdConnect", "openIdConnectUrl": "https://id.example/"},
        },
    },
}

SECRETS: Final = {
    "key": "shop-key",
    "token": "shop-token",
    "login": "shop-login",
    "session": "shop-session",
    "inQuery": "shop-query",
    "openid": "shop-token",
}

LENT: Final = {
    "shop-key": "k-2f61c0aa",
    "shop-token": "t-77d1e9b2",
    "shop-login": "ada:open sesame",
    "shop-session": "s-51a0f3cc",
    "shop-query": "q&=95b1d0",
}
