"""Errors as HTTP problems: their status, and the document that describes them.

See RFC 9457 and RFC 9110, section 15.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from neuroscript.errors import (
    CallError,
    CallTimeout,
    LimitError,
    PolicyError,
    Retry,
    ReturnError,
    ToolFailed,
    ToolNotFound,
)
from neuroscript.io.text import sendable
from neuroscript.tools.serialization import error_to_data

RESULT_LIMIT = "limit.items"
"""The code of a result that is too large, which the sender of the request can avoid."""


def status_of(error: CallError) -> int:
    """Return the status of the response to a call that failed.

    >>> status_of(ToolNotFound("math.ad"))
    404
    """
    match error:
        case ToolNotFound():
            return 404
        case PolicyError():
            return 403
        case LimitError():
            return 422 if error.code == RESULT_LIMIT else 429
        case CallTimeout():
            return 504
        case ReturnError():
            return 500
        case ToolFailed() if error.code == ToolFailed.CODE and error.retry == "never":
            return 500
        case _:
            return 503 if error.retry == "later" else 422


def problem_of(error: CallError, status: int) -> dict[str, Any]:
    """Return the problem document of a call that failed. It contains no argument values."""
    data = error_to_data(error)
    more = {word: data[word] for word in ("problems", "items") if word in data}
    return problem(status, data["message"], error.code, error.retry) | more


def problem(status: int, detail: str, code: str, retry: Retry) -> dict[str, Any]:
    """Return a problem document.

    >>> problem(404, "unknown tool", "tool.not_found", "model")["title"]
    'Not Found'
    """
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": sendable(detail),
        "code": code,
        "retry": retry,
    }
