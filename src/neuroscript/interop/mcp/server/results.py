"""Results of calls in the wire format of MCP: structured if the tool has an output schema, and always with content.

See MCP 2025-11-25, "Tools".
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from typing import Any

from neuroscript.coercion.plain_data import to_plain
from neuroscript.interop.mcp.schema import WRAPPED, is_wrapped, output_schema
from neuroscript.interop.media import media_type
from neuroscript.io.text import sendable
from neuroscript.runtime.interfaces import ToolResult
from neuroscript.runtime.result_text import result_text
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
    if spec is None or result.spilled is not None or output_schema(spec) is None:
        return {"content": [_content(result)], "isError": False}
    value = to_plain(result.value)
    text = result.value if type(result.value) is str else json.dumps(value, ensure_ascii=False)
    structured = {WRAPPED: value} if is_wrapped(spec) else value
    return {"content": [_text(text)], "structuredContent": structured, "isError": False}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _content(result: ToolResult) -> dict[str, Any]:
    """Return bytes of a known media type as such, and other values as text."""
    kind = media_type(result.value)
    if not kind:
        return _text(result_text(result))
    data = b2a_base64(result.value, newline=False).decode("ascii")
    family = kind.partition("/")[0]
    if family in ("image", "audio"):
        return {"type": family, "data": data, "mimeType": kind}
    resource = {"uri": f"neuroscript:result/{result.tool}", "mimeType": kind, "blob": data}
    return {"type": "resource", "resource": resource}
