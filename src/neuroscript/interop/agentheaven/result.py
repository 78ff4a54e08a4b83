"""Results of handles: the structured content, its main value, and errors, as AgentHeaven documents them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

import attrs

from neuroscript.errors import CallError

RESULT: Final = "result"
"""The key for a value that is not an object with the properties of its schema."""


@attrs.frozen
class ToolResult:
    """The result of a call.

    Attributes:
        structured_content: The result as an object; None if there is an error.
        error: Why the call failed.
        seconds: The duration of the call, including approvals.
    """

    structured_content: dict[str, Any] | None = None
    error: CallError | None = attrs.field(default=None, kw_only=True)
    seconds: float = attrs.field(default=0.0, kw_only=True)

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.error is None


def wrap(schema: Mapping[str, Any] | None, value: Any) -> dict[str, Any]:
    """Return a result as an object: a map unchanged if the author's *schema* describes it, else under ``result``."""
    return value if _is_whole(schema, value) else {RESULT: value}


def wrapped_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of the objects that `wrap` returns, from the author's schema, as a new copy.

    >>> wrapped_schema({"type": "string"})["properties"]
    {'result': {'type': 'string'}}
    """
    whole = deepcopy(dict(schema))
    if whole.get("properties"):
        return whole
    shared: dict[str, Any] = {key: whole.pop(key) for key in ("$schema", "$defs", "definitions") if key in whole}
    return {"type": "object", "properties": {RESULT: whole}, "required": [RESULT], **shared}


def main_value(schema: Mapping[str, Any] | None, value: Any) -> Any:
    """Return the main value of a result: if its *schema* has exactly one property, that property."""
    if schema is not None and _is_whole(schema, value):
        names = list(schema["properties"])
        return value[names[0]] if len(names) == 1 and names[0] in value else value
    return value


def _is_whole(schema: Mapping[str, Any] | None, value: Any) -> bool:
    """Return whether the author's schema describes the value itself."""
    return schema is not None and type(value) is dict and bool(schema.get("properties"))
