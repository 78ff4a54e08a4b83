"""Requests that a server has not answered yet, and errors for responses that cannot be used.

The SDK drops a message that it cannot parse, so the caller would wait for its timeout. It also creates an object for
each part of a result before the result can be checked. Both problems are detected between the transport and the SDK,
and the request gets an error with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from neuroscript._imports import missing_extra
from neuroscript.interop.mcp.client.results import Unusable
from neuroscript.interop.mcp.client.size_limits import MAX_MESSAGE_SIZE, MAX_VALUES, TOO_LONG, TOO_MANY

try:
    from mcp.shared.message import SessionMessage
    from mcp_types import (
        PARSE_ERROR,
        ErrorData,
        JSONRPCError,
        JSONRPCNotification,
        JSONRPCRequest,
        JSONRPCResponse,
        RequestId,
    )
    from pydantic import ValidationError
except ImportError as error:
    raise missing_extra("reaching an MCP server needs the SDK of MCP", "mcp", error) from None

MAX_TOOLS: Final = 1_000
"""Maximum number of tools of a server."""

MAX_PARTS: Final = {
    "content": (10_000, "content parts"),
    "contents": (10_000, "content parts"),
    "messages": (10_000, "messages"),
    "prompts": (10_000, "prompts"),
    "resourceTemplates": (10_000, "resource templates"),
    "resources": (10_000, "resources"),
    "tools": (MAX_TOOLS, "tools"),
}
"""Maximum number of items in each list of a result, and their description."""

MAX_IDS: Final = 10
HEAD: Final = 4_096
"""Where ids are searched in messages that are not responses: the number of ids in a JSON message, and the number of
characters of a message that is not JSON."""

FAILED: Final = "Failed to parse "
"""The prefix of the SDK's error for an HTTP response that it cannot parse; the rest quotes the response."""

NO_ID: Final = ""
ID: Final = re.compile(r'"id"\s*:\s*(?:(-?[0-9]{1,20})|"([^"\\]{1,64})")\s*[,}]')


class Pending:
    """The requests of one connection that have no response yet."""

    def __init__(self) -> None:
        self._ids: dict[str, RequestId] = {}

    def sent(self, item: SessionMessage) -> None:
        """Record a message to the server: a request or a cancellation."""
        match item.message:
            case JSONRPCRequest(id=id):
                self._ids[str(id)] = id
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": id}):
                self._ids.pop(str(id), None)

    def received(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        """Return a message of the server, or an error for its request if it is an unusable response."""
        if isinstance(item, Exception):
            return self._unparsed(item)
        match item.message:
            case JSONRPCResponse(id=id, result=result):
                self._ids.pop(str(id), None)
                if "task" in result:  # the SDK lacks the tasks of 2025-11-25, and requires content
                    result.setdefault("content", [])
                reason = _excess(result)
                return _failed(id, reason) if reason else item
            case JSONRPCError(id=None, error=error) if error.code == PARSE_ERROR and len(self._ids) == 1:
                return SessionMessage(JSONRPCError(jsonrpc="2.0", id=self._ids.popitem()[1], error=error))
            case JSONRPCError(id=id, error=error):
                self._ids.pop(str(id), None)
                is_unparsed = error.code == PARSE_ERROR and error.message.startswith(FAILED)
                return _failed(id, _reason(error.message)) if is_unparsed else item
        return item

    def _unparsed(self, error: Exception) -> SessionMessage | Exception:
        """Return an error for the request that a message belongs to; other messages are returned unchanged."""
        if not isinstance(error, ValidationError):
            return error
        data = [each["input"] for each in error.errors(include_url=False, include_context=False)]
        found = [*islice((id for each in data for id in _answered_ids(each)), MAX_IDS)]
        known = next((id for id in found if id in self._ids), None)
        if known is None and {*found} == {NO_ID} and len(self._ids) == 1:
            (known,) = self._ids
        return error if known is None else _failed(self._ids.pop(known), _reason(data[0]))


def _failed(id: RequestId | None, reason: str) -> SessionMessage:
    data = ErrorData(code=PARSE_ERROR, message=reason, data=Unusable(reason))
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=id, error=data))


def _reason(data: object) -> str:
    """Return why a response could not be parsed, from the end of it or of the SDK's error."""
    text = data if isinstance(data, str) else ""
    if text.endswith(TOO_MANY):
        return f"has more than {MAX_VALUES} values"
    return f"is longer than {MAX_MESSAGE_SIZE} bytes" if text.endswith(TOO_LONG) else "cannot be parsed"


def _excess(result: dict[str, Any]) -> str:
    """Return which limit a result exceeds, or ``""``."""
    for key, (limit, noun) in MAX_PARTS.items():
        parts = result.get(key)
        if isinstance(parts, list) and len(parts) > limit:
            return f"has more than {limit} {noun}"
    return ""


def _answered_ids(data: object) -> Iterator[str]:
    """Yield the id of each response in an invalid message, or `NO_ID` for malformed JSON without one.

    A response without an id is not attributed to a request, because some servers respond to notifications that way.
    """
    match data:
        case {"id": int() | str() as id, "result": _} | {"id": int() | str() as id, "error": _}:
            yield str(id)
        case {"id": float() as number, "result": _} | {"id": float() as number, "error": _} if number.is_integer():
            yield str(int(number))
        case list():
            yield from (id for each in data[:MAX_IDS] if isinstance(each, dict) for id in _answered_ids(each))
        case str() if data.lstrip("\ufeff \t\r").startswith(("{", "[")) and "jsonrpc" in data:
            yield from [number or text for number, text in ID.findall(data[:HEAD])] or [NO_ID]
