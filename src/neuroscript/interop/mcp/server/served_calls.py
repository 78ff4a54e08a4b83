"""What resources, prompts and completions have in common: pages of a list, and errors of calls as protocol errors."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Final

from neuroscript._imports import missing_extra
from neuroscript.errors import ArgumentError, CallError
from neuroscript.io.text import sendable
from neuroscript.runtime.interfaces import ToolResult
from neuroscript.runtime.result_text import result_text
from neuroscript.runtime.wire_names import WireNames

try:
    from mcp.shared.exceptions import MCPError
    from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
except ImportError as error:
    raise missing_extra("serving over MCP needs its SDK", "mcp", error) from None

COMPLETE: Final = {"resultType": "complete"}
"""What a result of protocol 2026-07-28 contains if the client need not be asked; the SDK removes it for others."""

PAGE_ITEMS: Final = 500
"""Maximum number of items in one page of a list."""

RESOURCE_NOT_FOUND: Final = -32002
"""The code for an unknown resource in protocol versions before 2026-07-28, which use `INVALID_PARAMS` instead."""


def page(items: Sequence[Mapping[str, Any]], name: str, key: str, cursor: str | None) -> dict[str, Any]:
    """Return one page of a list.

    Args:
        items: All items, sorted by *key*.
        name: The key for the items in the result.
        key: The key whose value identifies an item; the value of the last item of a page is the cursor.
        cursor: The cursor that the client received with the page before.
    """
    start = 0 if cursor is None else bisect_right(items, cursor, key=lambda item: str(item[key]))
    shown = items[start : start + PAGE_ITEMS]
    more = {"nextCursor": shown[-1][key]} if start + PAGE_ITEMS < len(items) else {}
    return {**COMPLETE, name: list(shown), **more}


def not_found(context: Any, uri: str) -> MCPError:
    """Return the error for a resource that does not exist, or that this client may not read."""
    is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return MCPError(INVALID_PARAMS if is_modern else RESOURCE_NOT_FOUND, "resource not found", {"uri": uri})


def call_failed(result: ToolResult, names: WireNames) -> MCPError:
    """Return the protocol error for a call that failed; its message contains no values, like that of a tool."""
    assert result.error is not None
    code = INVALID_PARAMS if isinstance(result.error, ArgumentError) else INTERNAL_ERROR
    return MCPError(code, sendable(result_text(result, names)), {"code": result.error.code})


def is_missing(error: CallError | None) -> bool:
    """Return whether a call failed because what it reads does not exist."""
    return error is not None and error.code.endswith(".notfound")
