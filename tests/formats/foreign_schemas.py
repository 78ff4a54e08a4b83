"""JSON Schemas that other programs wrote, and the strings in generated ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


FOREIGN: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Order",
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]+$"},
        "mail": {"type": "string", "format": "email"},
        "odd": {"type": "integer", "multipleOf": 3},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "either": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        "only": {"const": "x"},
        "place": {"$ref": "#/$defs/place"},
    },
    "required": ["code"],
    "dependentRequired": {"mail": ["tags"]},
    "if": {"properties": {"code": {"const": "A"}}},
    "then": {"required": ["odd"]},
    "maxProperties": 5,
    "propertyNames": {"maxLength": 6},
    "$defs": {"place": {"type": "object", "properties": {"zip": {"type": "string", "minLength": 5}}}},
}
