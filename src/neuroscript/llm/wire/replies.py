"""Errors that model servers report in a reply, and the checks on a complete reply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from neuroscript.errors import LLMError, Retry
from neuroscript.runtime.interfaces import Turn
from neuroscript.runtime.replies import Reply, Stop, Usage

WORD: Final = re.compile(r"[a-z0-9_.-]{1,64}")
"""An error code that may be reported. Anything else in a server's error might repeat the conversation."""


QUOTA: Final = re.compile(r"insufficient_quota|billing_hard_limit_reached|billing_not_active")
"""Error codes with which status 429 means that no credit is left, so waiting does not help."""


KINDS: Final[tuple[tuple[re.Pattern[str], str, Retry], ...]] = (
    (QUOTA, "llm.rate", "host"),
    (re.compile(r"rate_limit.*|resource_exhausted"), "llm.rate", "later"),
    (re.compile(r"deadline_exceeded|timeout_error"), "llm.timeout", "later"),
    (re.compile(r"content_filter|.*policy.*"), "llm.refused", "never"),
    (
        re.compile(r"authentication_error|invalid_api_key|billing_error|permission_.*|unauthenticated"),
        "llm.auth",
        "host",
    ),
    (re.compile(r"(model_)?not_found(_error)?"), "llm.model_not_found", "host"),
    (re.compile(r"context_length_exceeded"), "llm.length", "host"),
    (
        re.compile(r"invalid_.*|.*_image.*|failed_precondition|out_of_range|request_too_large"),
        "llm.request",
        "host",
    ),
)
"""The meaning of error codes of OpenAI, Anthropic and Google; any other code is a server error."""


STATUSES: Final[Mapping[int, tuple[str, Retry]]] = {
    401: ("llm.auth", "host"),
    402: ("llm.auth", "host"),
    403: ("llm.auth", "host"),
    404: ("llm.model_not_found", "host"),
    408: ("llm.timeout", "later"),
    429: ("llm.rate", "later"),
    504: ("llm.timeout", "later"),
}
"""The meaning of HTTP statuses, and who can act; all others follow from their class, such as 4xx."""


SERVER: Final[tuple[str, Retry]] = ("llm.server", "later")
"""An unspecified server error."""


def reported_error(word: Any, status: Any = None) -> LLMError:
    """Return the error that a server reported within a reply, from its error code or its status.

    >>> reported_error("overloaded_error").text
    'the server ended the reply with an error (overloaded_error)'
    """
    said = word.lower() if isinstance(word, str) else ""
    code, retry = _classify(said, int(said) if status is None and re.fullmatch(r"[45]\d\d", said) else status)
    text = f"the server ended the reply with an error{in_brackets(said if WORD.fullmatch(said) else '')}"
    return LLMError(text, code=code, retry=retry)


def in_brackets(word: str) -> str:
    """Return *word* in parentheses after a space, or ``""``."""
    return f" ({word})" if word else ""


def error_code(error: Any) -> str:
    """Return the error code of a server's error, or ``""`` if it has none that may be reported.

    >>> error_code({"type": "error", "code": 429, "message": "You said ..."})
    '429'
    """
    places = [error.get(key) for key in ("code", "type")] if isinstance(error, Mapping) else [error]
    texts = [str(each) for each in places if type(each) in (str, int)]
    return next((text for text in texts if WORD.fullmatch(text)), "")


def _classify(word: str, status: Any) -> tuple[str, Retry]:
    for pattern, code, retry in KINDS:
        if pattern.fullmatch(word):
            return code, retry
    return code_of_status(status) if type(status) is int and 400 <= status < 600 else SERVER


def code_of_status(status: int, word: str = "") -> tuple[str, Retry]:
    """Return the code for an HTTP status of 300 or more with a server's error code, and who can act."""
    if status == 429 and QUOTA.fullmatch(word):
        return "llm.rate", "host"
    if status in STATUSES:
        return STATUSES[status]
    if status < 400:
        return "llm.format", "host"
    return ("llm.request", "host") if status < 500 else SERVER


def finish_reply(turn: Turn, stop: Stop, usage: Usage) -> Reply:
    """Return a reply; if it ended normally with calls, its stop reason is ``tools``.

    Raises:
        LLMError: ``llm.empty``, if the reply is empty although it was neither truncated nor refused.
    """
    if stop == "end" and not turn.content.strip() and not turn.tool_calls:
        raise LLMError("the model returned an empty reply", code="llm.empty", retry="later")
    return Reply(turn, "tools" if stop == "end" and turn.tool_calls else stop, usage)
