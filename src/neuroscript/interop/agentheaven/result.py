"""What a call of a handle gives: the content that the document calls structured, the main value in it, an error.

Source: seed-systems.md rows AH-21 to AH-24, AH-28.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

import attrs

from neuroscript.errors import CallError

RESULT: Final = "result"
"""Under which name a value stands that is no object with the properties of its schema."""


@attrs.frozen
class ToolResult:
    """What came of a call.

    Attributes:
        structured_content: The result as an object; None where there is an error.
        error: Why there is no result.
        seconds: How long it took, gates included.
    """

    structured_content: dict[str, Any] | None = None
    error: CallError | None = attrs.field(default=None, kw_only=True)
    seconds: float = attrs.field(default=0.0, kw_only=True)

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.error is None


def wrapped(schema: Mapping[str, Any] | None, value: Any) -> dict[str, Any]:
    """Return a result as an object: a map as it is where its author gave a *schema* for it, else under ``result``."""
    return value if _is_whole(schema, value) else {RESULT: value}


def told_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of what `wrapped` gives, of the one that an author gave; a copy of your own.

    >>> told_schema({"type": "string"})["properties"]
    {'result': {'type': 'string'}}
    """
    whole = deepcopy(dict(schema))
    if whole.get("properties"):
        return whole
    shared: dict[str, Any] = {key: whole.pop(key) for key in ("$schema", "$defs", "definitions") if key in whole}
    return {"type": "object", "properties": {RESULT: whole}, "required": [RESULT], **shared}


def main_value(schema: Mapping[str, Any] | None, value: Any) -> Any:
    """Return the main value of a result: of a map whose *schema* has one property only that property."""
    if schema is not None and _is_whole(schema, value):
        names = list(schema["properties"])
        return value[names[0]] if len(names) == 1 and names[0] in value else value
    return value


def _is_whole(schema: Mapping[str, Any] | None, value: Any) -> bool:
    """Tell whether a schema that an author gave speaks of the very value."""
    return schema is not None and type(value) is dict and bool(schema.get("properties"))
