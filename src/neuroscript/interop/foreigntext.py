"""Texts of a server, made safe to look at before a person or a model does: escaped, on one line, and cut.

Source: issue "MCP", text from outside; contract section 6.
"""

from __future__ import annotations

from typing import Any, Final

from neuroscript.display import one_line
from neuroscript.errors import SpecError
from neuroscript.foreign import MANY, NAMED, ONE, REFUSED, size_faults

LONGEST: Final = 1_000
"""How many characters are kept of a description, or of what a server says of an error."""

NOTES: Final = ("description", "title")
"""Keywords of a schema under which a text for readers stands."""

KEPT: Final = frozenset(
    {
        *(*ONE, *MANY, *NAMED, *NOTES, *REFUSED),
        *("$schema", "$ref", "type", "enum", "const", "default", "format", "pattern", "nullable", "required"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
        *("minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "minProperties", "maxProperties"),
        *("dependentRequired", "contentEncoding", "contentMediaType", "readOnly", "writeOnly", "deprecated"),
    }
)
"""Keywords that are taken; any other asks nothing of a value, and a model would read what stands there."""


def message_of(error: BaseException) -> str:
    """Return what an exception says, ``""`` where that fails in its turn."""
    try:
        return str(error)
    except Exception:  # of the error itself
        return ""


def bounded_schema(schema: Any, subject: str) -> Any:
    """Return `plain_schema` of a schema that nobody has looked at.

    Args:
        subject: Whose schema it is, for the error.

    Raises:
        SpecError: It is too deep, too large, or no JSON.
    """
    faults = list(size_faults(schema))
    if faults:
        raise SpecError(subject, faults)
    return plain_schema(schema)


def plain_schema(schema: Any) -> Any:
    """Return a schema with its known keywords alone, whose texts for readers are such lines; it asks what it asked.

    Names of properties, choices and defaults stay as they are, for they are what is sent.
    """
    if not isinstance(schema, dict):
        return schema
    return {word: _plain(word, each) for word, each in schema.items() if word in KEPT}


def _plain(word: str, value: Any) -> Any:
    """Return what stands under a keyword."""
    match value:
        case str() if word in NOTES:
            return one_line(value, LONGEST)
        case dict() if word in NAMED:
            return {name: plain_schema(each) for name, each in value.items()}
        case list() if word in MANY:
            return [plain_schema(each) for each in value]
        case dict() if word in ONE:
            return plain_schema(value)
        case _:
            return value
