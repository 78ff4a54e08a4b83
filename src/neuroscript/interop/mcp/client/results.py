"""Results of MCP tools as values: structured content that matches its schema, a string for a text, otherwise `Content`.

Structured content becomes `Content` only if its blocks say more than its own text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

import attrs

from neuroscript.coercion.constraints import coerce_present
from neuroscript.coercion.content import Content
from neuroscript.coercion.context import RESULT, ROOT, CoercionPass, CoercionSettings
from neuroscript.coercion.schema_inspection import FORMATS_FACT, MARK, check_schema
from neuroscript.coercion.schema_validation import SchemaValidator, compile_schema
from neuroscript.coercion.types import ArgType
from neuroscript.errors import SpecError, ToolFailed
from neuroscript.formats.json_schema import result_from_schema
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS, plain_schema
from neuroscript.interop.mcp.schema import FASTMCP_WRAPPED, WRAPPED, wraps
from neuroscript.io.text import NotJSON, one_line, parse_json
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
    is_wrapped = wraps(schema)
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
    meta = _meta_of(result)
    if promise.checker is not None:
        value = _structured_value(result, structured, promise)
    elif structured is not None:
        value = structured
    elif _is_text(blocks) and not meta:
        return blocks[0]["text"]
    elif not blocks and not meta:
        return None
    else:
        return content_of({"content": blocks, "_meta": meta})
    if not meta and _repeats(blocks, (structured, value)):
        return value
    return content_of({"content": blocks, "structuredContent": value, "_meta": meta})


def _meta_of(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the metadata of a result without that of the protocol, and without a mark that `to_result` sets again."""
    meta = result.get("_meta") or {}
    found = {key: each for key, each in meta.items() if not key.startswith(PROTOCOL_PREFIX)}
    return None if not found or found == FASTMCP_WRAPPED else found


PROTOCOL_PREFIX: Final = "io.modelcontextprotocol/"
"""The beginning of the keys that the protocol defines, which describe one connection."""


def _is_text(blocks: Any) -> bool:
    """Return whether the only block is a text and nothing else."""
    return len(blocks) == 1 and blocks[0].keys() == {"type", "text"} and isinstance(blocks[0]["text"], str)


def _repeats(blocks: Any, values: tuple[Any, ...]) -> bool:
    """Return whether blocks only repeat structured content: as one text, or as one for each item of a list."""
    texts = [each["text"] for each in blocks if _is_text([each])]
    if len(texts) < len(blocks):
        return False
    return any(
        not texts
        or (len(texts) == 1 and _is_text_of(texts[0], value))
        or (type(value) is list and len(texts) == len(value) and all(map(_is_text_of, texts, value)))
        for value in values
    )


def _is_text_of(text: str, value: Any) -> bool:
    """Return whether a text is a string, or the JSON text of another value."""
    if text == value:
        return True
    try:
        return bool(parse_json(text) == value)
    except NotJSON:
        return False


def content_of(result: Mapping[str, Any]) -> Content:
    """Return the content in a result of the protocol; raise a `ToolFailed` if it is invalid."""
    try:
        return Content.of_data(result)
    except SpecError as error:
        raise response_error(f"contains content that is not valid: {'; '.join(error.problems)}") from None


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
    if promise.returns is None:
        return value
    walk = CoercionPass(FOREIGN_RESULT)
    exact = None if value is None else walk.limited(coerce_present, promise.returns, value, ROOT)
    if walk.noted:
        raise response_error("does not match the tool's output schema")
    return exact


def response_error(what: str) -> ToolFailed:
    """Return the error for an unusable response."""
    return ToolFailed(f"the server's answer {what}", code="mcp.answer", retry="never")
