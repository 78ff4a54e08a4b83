"""Results of MCP tools as values: structured content that matches its schema, otherwise the content blocks."""

from __future__ import annotations

import json
from binascii import Error, a2b_base64
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

import attrs

from neuroscript.coercion.constraints import coerce_present
from neuroscript.coercion.context import RESULT, ROOT, CoercionPass, CoercionSettings
from neuroscript.coercion.schema_inspection import FORMATS_FACT, MARK, check_schema
from neuroscript.coercion.schema_validation import SchemaValidator, compile_schema
from neuroscript.coercion.types import ArgType
from neuroscript.errors import SpecError, ToolFailed
from neuroscript.formats.json_schema import result_from_schema
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS, plain_schema
from neuroscript.interop.mcp.schema import WRAPPED
from neuroscript.io.text import one_line
from neuroscript.spec.tool_spec import ArgSpec

FOREIGN_RESULT: Final = CoercionSettings(sizes=RESULT.sizes)
"""The settings for structured content that its schema has accepted: JSON Schema takes ``1.0`` as an integer."""


@attrs.frozen(eq=False)
class ReturnSpec:
    """What a tool returns.

    Attributes:
        returns: The spec of the result; None if the tool has no output schema.
        is_wrapped: Whether the value is nested under ``result``.
        checker: Validates structured content; None without an output schema.
    """

    returns: ArgSpec | None = None
    is_wrapped: bool = False
    checker: SchemaValidator | None = attrs.field(default=None, repr=False)


@attrs.frozen
class Unusable:
    """Why a response cannot be used: the data of a replacement error, of a type that no server can send.

    Attributes:
        reason: What is wrong with the response, such as ``cannot be parsed``.
    """

    reason: str


def promise_of(schema: Mapping[str, Any] | None, *, formats: bool = False) -> ReturnSpec:
    """Return what an output schema promises; pass None for a tool without one.

    Args:
        formats: Whether the formats of strings are checked.

    Raises:
        SpecError: It cannot be read.
    """
    if schema is None:
        return ReturnSpec()
    plain = {word: each for word, each in schema.items() if word != MARK}
    text = json.dumps({**plain, MARK: {FORMATS_FACT: True}} if formats else plain)
    faults = check_schema(text).faults or compile_schema(text)[1]
    if faults:
        raise SpecError("outputSchema", faults)
    checker, _ = compile_schema(text)
    properties = schema.get("properties")
    is_wrapped = isinstance(properties, dict) and [*properties] == [WRAPPED] and schema.get("required") == [WRAPPED]
    returns = result_from_schema(plain_schema(plain), WRAPPED if is_wrapped else "")
    return ReturnSpec(None if returns.type is ArgType.NIL else returns, is_wrapped, checker)


def value_of(result: Mapping[str, Any], promise: ReturnSpec) -> Any:
    """Return the value of a result in the wire format of MCP.

    Raises:
        ToolFailed: ``mcp.error``: the tool reports a failure. ``mcp.answer``: the result does not match its schema.
    """
    blocks = result.get("content") or []
    if result.get("isError") is True:
        raise ToolFailed(f"the server says: {_text_of(blocks)}", code="mcp.error", retry="model")
    structured = result.get("structuredContent")
    if not _is_finite(structured):
        raise response_error("contains a number that JSON does not support, such as NaN")
    if promise.checker is not None:
        return _structured_value(result, structured, promise)
    if structured is not None:
        return structured
    values = [_value(block) for block in blocks]
    return values[0] if len(values) == 1 else (values or None)


def _is_finite(value: object) -> bool:
    """Return whether all numbers are finite; the SDK's parser accepts ``NaN`` and ``Infinity``."""
    rest = [value]
    while rest:
        match rest.pop():
            case dict() as each:
                rest.extend(each.values())
            case list() as each:
                rest.extend(each)
            case float() as each if not isfinite(each):
                return False
    return True


def _text_of(blocks: Any) -> str:
    texts = [each["text"] for each in blocks if each.get("type") == "text" and isinstance(each.get("text"), str)]
    return one_line("\n".join(texts), MAX_DESCRIPTION_CHARS) or "nothing"


def _structured_value(result: Mapping[str, Any], structured: Any, promise: ReturnSpec) -> Any:
    if "structuredContent" not in result:
        raise response_error("has no structured content, which the tool's output schema requires")
    if promise.checker is not None and promise.checker.problems(structured):
        raise response_error("does not match the tool's output schema")
    value = structured[WRAPPED] if promise.is_wrapped else structured
    if promise.returns is None or not promise.returns.has_parts:
        return value
    walk = CoercionPass(FOREIGN_RESULT)
    exact = None if value is None else walk.limited(coerce_present, promise.returns, value, ROOT)
    if walk.noted:
        raise response_error("does not match the tool's output schema")
    return exact


def response_error(what: str) -> ToolFailed:
    """Return the error for an unusable response."""
    return ToolFailed(f"the server's answer {what}", code="mcp.answer", retry="never")


def _value(block: Mapping[str, Any]) -> Any:
    """Return the value of a content block: a string, or a map with the media type."""
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio", "data": str(data), "mimeType": str(kind)}:
            return {"media_type": kind, "data": _bytes(data)}
        case {"type": "resource", "resource": {"uri": str(uri), **resource}}:
            value = {"uri": uri, "media_type": resource.get("mimeType")}
            blob = resource.get("blob")
            if isinstance(blob, str):
                return {**value, "data": _bytes(blob)}
            return {**value, "text": resource.get("text")}
        case {"type": "resource_link", "uri": str(uri)}:
            link = {"uri": uri, "media_type": block.get("mimeType"), "name": block.get("name")}
            return {**link, "description": block.get("description")}
        case _:
            raise response_error("contains an unsupported content type")


def _bytes(text: str) -> bytes:
    try:
        return a2b_base64(text, strict_mode=True)
    except (Error, ValueError):
        raise response_error("contains invalid base64") from None
