"""Requests that a server has not answered yet, and the error of each whose answer cannot be used.

The SDK drops a message that it cannot parse, so that the caller would wait for its timeout. And it builds an object for
each part of a result before the result can be looked at. Both are found on the way from the transport to the SDK: the
request is answered with an error that says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from neuroscript._imports import missing
from neuroscript.interop.mcp.client.results import Unusable
from neuroscript.interop.mcp.client.size_limits import LONGEST, MAX_VALUES, TOO_LONG, TOO_MANY

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
    raise missing("reaching an MCP server needs the SDK of MCP", "mcp", error) from None

MAX_TOOLS: Final = 1_000
"""How many tools a server may list."""

MAX_PARTS: Final = {"content": (10_000, "content parts"), "tools": (MAX_TOOLS, "tools")}
"""How many items each list of a result may have, and what they are called."""

MAX_IDS: Final = 10
HEAD: Final = 4_096
"""How many ids are looked for in a message that is JSON but not an answer, and in how many characters of one that is
not JSON."""

FAILED: Final = "Failed to parse "
"""How the SDK begins its own error of an answer over HTTP that it cannot parse; what follows quotes the answer."""

NO_ID: Final = ""
ID: Final = re.compile(r'"id"\s*:\s*(?:(-?[0-9]{1,20})|"([^"\\]{1,64})")\s*[,}]')


class Pending:
    """The requests of one connection that have no answer yet."""

    def __init__(self) -> None:
        self._ids: dict[str, RequestId] = {}

    def sent(self, item: SessionMessage) -> None:
        """Note a message that goes to the server: a request, or that one was cancelled."""
        match item.message:
            case JSONRPCRequest(id=id):
                self._ids[str(id)] = id
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": id}):
                self._ids.pop(str(id), None)

    def received(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        """Return a message of the server, or in its place the error of the request whose answer cannot be used."""
        if isinstance(item, Exception):
            return self._unparsed(item)
        match item.message:
            case JSONRPCResponse(id=id, result=result):
                self._ids.pop(str(id), None)
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
        """Return the error of the request that a message belongs to; what belongs to none stays what it is."""
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
    """Return why an answer could not be parsed, by how it, or the error of the SDK, ends."""
    text = data if isinstance(data, str) else ""
    if text.endswith(TOO_MANY):
        return f"has more than {MAX_VALUES} values"
    return f"is longer than {LONGEST} bytes" if text.endswith(TOO_LONG) else "cannot be parsed"


def _excess(result: dict[str, Any]) -> str:
    """Return what a result has too many of, or ``""``."""
    for key, (most, things) in MAX_PARTS.items():
        parts = result.get(key)
        if isinstance(parts, list) and len(parts) > most:
            return f"has more than {most} {things}"
    return ""


def _answered_ids(data: object) -> Iterator[str]:
    """Yield the id of each answer in a message that could not be parsed, `NO_ID` where a broken text has none.

    An answer without an id is not attributed to a request: some servers answer notifications that way.
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
