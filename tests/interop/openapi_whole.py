"""A description with every supported field, so that tests can put wrong values into each of them."""

from __future__ import annotations

from typing import Any, Final

WHOLE: Final[dict[str, Any]] = {
    "openapi": "3.1.0",
    "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
    "info": {"title": "Pets", "version": "1", "description": "d"},
    "servers": [
        {
            "url": "https://{r}.example/v1",
            "description": "x",
            "variables": {"r": {"default": "a", "enum": ["a"], "description": "d"}},
        }
    ],
    "security": [{"key": []}],
    "paths": {
        "/pets/{id}": {
            "summary": "s",
            "servers": [{"url": "https://a.example/v2"}],
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}},
                {"$ref": "#/components/parameters/P"},
            ],
            "get": {
                "operationId": "getPet",
                "summary": "s",
                "description": "d",
                "deprecated": True,
                "tags": ["t"],
                "security": [{"basic": []}, {}],
                "servers": [{"url": "https://a.example/v3"}],
                "parameters": [
                    {
                        "name": "q",
                        "in": "query",
                        "style": "form",
                        "explode": True,
                        "required": False,
                        "deprecated": True,
                        "description": "d",
                        "schema": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
                    },
                    {
                        "name": "d",
                        "in": "query",
                        "style": "deepObject",
                        "explode": True,
                        "schema": {"type": "object", "properties": {"a": {"type": "integer"}}},
                    },
                    {"name": "X-H", "in": "header", "schema": {"type": "string", "pattern": "^a"}},
                    {"name": "c", "in": "cookie", "explode": False, "schema": {"type": "string"}},
                    {
                        "name": "j",
                        "in": "query",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/S"}}},
                    },
                ],
                "responses": {
                    "200": {
                        "description": "ok",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/S"}}},
                    },
                    "404": {"description": "no"},
                    "default": {"description": "z"},
                },
            },
            "post": {
                "operationId": "addPet",
                "security": [{"oauth": ["r"]}, {"oidc": []}],
                "requestBody": {
                    "required": True,
                    "description": "d",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/S"}}},
                },
                "responses": {"2XX": {"$ref": "#/components/responses/R"}},
            },
            "put": {
                "requestBody": {"$ref": "#/components/requestBodies/B"},
                "responses": {"204": {"description": "x"}},
            },
        },
        "/x": {"$ref": "#/components/pathItems/I"},
    },
    "components": {
        "schemas": {
            "S": {
                "type": "object",
                "title": "T",
                "description": "d",
                "required": ["a"],
                "properties": {
                    "a": {
                        "type": "string",
                        "format": "date",
                        "default": "x",
                        "minLength": 1,
                        "maxLength": 3,
                        "pattern": "a",
                    },
                    "b": {
                        "type": ["integer", "null"],
                        "minimum": 1,
                        "maximum": 3,
                        "exclusiveMinimum": 0,
                        "exclusiveMaximum": 4,
                        "multipleOf": 1,
                    },
                    "p": {"type": "string", "format": "password"},
                    "ro": {"type": "string", "readOnly": True},
                    "l": {
                        "type": "array",
                        "items": {"type": "string"},
                        "minItems": 1,
                        "maxItems": 3,
                        "uniqueItems": True,
                        "prefixItems": [{"type": "string"}],
                        "contains": {"type": "string"},
                        "minContains": 1,
                        "maxContains": 2,
                        "unevaluatedItems": False,
                    },
                    "o": {
                        "type": "object",
                        "properties": {"x": {"const": 1}},
                        "patternProperties": {"a": {}},
                        "additionalProperties": {"type": "string"},
                        "propertyNames": {"pattern": "a"},
                        "dependentRequired": {"a": ["b"]},
                        "dependentSchemas": {"a": {}},
                        "minProperties": 1,
                        "maxProperties": 4,
                        "unevaluatedProperties": False,
                    },
                    "w": {
                        "oneOf": [{"type": "string"}, {"$ref": "#/components/schemas/U"}],
                        "anyOf": [{}],
                        "allOf": [{}],
                        "not": {"const": 7},
                        "if": {},
                        "then": {},
                        "else": {},
                    },
                    "e": {"enum": ["a", "b", None]},
                    "n": {
                        "type": "string",
                        "nullable": True,
                        "deprecated": True,
                        "writeOnly": True,
                        "contentEncoding": "base64",
                        "contentMediaType": "a/b",
                        "contentSchema": {},
                    },
                    "r": {"$ref": "#/components/schemas/U", "description": "beside"},
                },
                "additionalProperties": False,
            },
            "U": {"type": "object", "properties": {"u": {"$ref": "#/components/schemas/U"}}},
        },
        "parameters": {"P": {"name": "p", "in": "query", "schema": {"type": "integer"}}},
        "responses": {
            "R": {
                "description": "d",
                "content": {"application/json": {"schema": {"type": ["object", "null"]}}, "text/plain": {}},
            }
        },
        "requestBodies": {
            "B": {
                "content": {
                    "application/x-www-form-urlencoded": {
                        "schema": {
                            "type": "object",
                            "properties": {"l": {"type": "array", "items": {"type": "string"}}},
                        },
                        "encoding": {"l": {"style": "form", "explode": False}},
                    }
                }
            }
        },
        "pathItems": {
            "I": {
                "patch": {
                    "requestBody": {"content": {"text/plain": {"schema": {"type": "string"}}}},
                    "responses": {"default": {"description": "d"}},
                }
            }
        },
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "basic": {"type": "http", "scheme": "basic"},
            "oauth": {"type": "oauth2", "flows": {}},
            "oidc": {"type": "openIdConnect", "openIdConnectUrl": "x"},
        },
    },
}

SECRETS: Final = {"key": "k", "basic": "b", "oauth": "o", "oidc": "i"}
"""The secrets of its security schemes."""
