"""Results of calls in the wire format of MCP: structured if the tool has an output schema, and always with content.

See MCP 2025-11-25, "Tools".
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping
from typing import Any, Final

from neuroscript.coercion.plain_data import content_of, to_plain
from neuroscript.coercion.scalars import EXACT_FLOAT, AnyContent
from neuroscript.errors import UNSET
from neuroscript.interop.mcp.schema import FASTMCP_MARK, FASTMCP_WRAPPED, WRAPPED, is_wrapped, output_schema
from neuroscript.interop.media import media_type
from neuroscript.io.text import sendable
from neuroscript.runtime.interfaces import ToolResult
from neuroscript.runtime.result_text import result_text, value_text
from neuroscript.runtime.wire_names import WireNames
from neuroscript.spec.tool_spec import ToolSpec


def to_result(result: ToolResult, spec: ToolSpec | None = None, names: WireNames | None = None) -> dict[str, Any]:
    """Return the response to ``tools/call``; an error is also a result, so that the model can read it.

    Args:
        spec: The spec of the tool; without it, the result is not structured.
        names: The client's names for the tools.

    >>> to_result(ToolResult("", "math.add", 5))
    {'content': [{'type': 'text', 'text': '5'}], 'isError': False}
    """
    if not result.ok:
        text = sendable(result_text(result, names))  # a string that cannot be encoded would end the connection
        return {"content": [_text(text)], "isError": True}
    is_remote = spec is not None and bool(spec.definition)
    value = _whole_numbers(result.value) if is_remote else result.value
    schema = None if spec is None or result.spilled is not None else output_schema(spec)
    structured = _structured(value, spec, schema)
    is_whole = is_remote and "structuredContent" in structured
    facts = {"content": _blocks(value, result.tool, is_remote, is_whole), "isError": False, **structured}
    if schema is not None and schema.get(FASTMCP_MARK) is True:
        facts["_meta"] = {**facts.get("_meta", {}), **FASTMCP_WRAPPED}
    return facts


LATER_BLOCKS: Final = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""The protocol versions that introduced blocks."""


def known_block(block: dict[str, Any], version: str) -> dict[str, Any]:
    """Return a block, or its note as a text if a protocol version lacks it: the client could not read the message.

    >>> known_block({"type": "resource_link", "uri": "a:b", "name": "B"}, "2024-11-05")
    {'type': 'text', 'text': '[B: a:b]'}
    """
    if version >= LATER_BLOCKS.get(block["type"], ""):
        return block
    return _text(content_of({"content": [block]}).text)


def _whole_numbers(value: Any) -> Any:
    """Return the value of a server's tool with ints in place of whole floats, as most servers write them.

    A number that the server wrote as ``1`` is a float here if its schema says ``number``.
    """
    match value:
        case float() if value.is_integer() and abs(value) <= EXACT_FLOAT:
            return int(value)
        case list():
            return [_whole_numbers(each) for each in value]
        case dict():
            return {key: _whole_numbers(each) for key, each in value.items()}
        case _:
            return value


def _structured(value: Any, spec: ToolSpec | None, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the members of a result beside its blocks."""
    meta: dict[str, Any] = {}
    if isinstance(value, AnyContent):
        data = value.wire
        meta = {"_meta": data["_meta"]} if "_meta" in data else {}
        value = data.get("structuredContent", UNSET)
        value = _whole_numbers(value) if spec is not None and spec.definition else value
    else:
        value = to_plain(value) if schema is not None or type(value) is dict else UNSET
    if value is UNSET or (schema is None and (type(value) is not dict or spec is None)):
        return meta
    is_nested = schema is not None and spec is not None and is_wrapped(spec)
    return {"structuredContent": {WRAPPED: value} if is_nested else value, **meta}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _blocks(value: Any, tool: str, is_remote: bool = False, is_whole: bool = False) -> list[dict[str, Any]]:
    """Return content as its blocks, bytes of a known media type as such, and other values as text.

    Args:
        is_remote: Whether the value comes from an MCP server, which sends no block for None.
        is_whole: Whether content keeps exactly the blocks of its server, beside its structured content.
    """
    if isinstance(value, AnyContent):
        blocks: list[dict[str, Any]] = value.wire["content"] if is_whole else value.shown
        return blocks
    if type(value) is list and any(isinstance(each, AnyContent) for each in value):
        return [block for each in value for block in _blocks(each, tool)]
    kind = media_type(value)
    if not kind:
        return [] if value is None and is_remote else [_text(value_text(value))]
    data = b2a_base64(value, newline=False).decode("ascii")
    family = kind.partition("/")[0]
    if family in ("image", "audio"):
        return [{"type": family, "data": data, "mimeType": kind}]
    return [{"type": "resource", "resource": {"uri": f"neuroscript:result/{tool}", "mimeType": kind, "blob": data}}]
