"""What the server of a model tells as an error, by the word or the status that it has for it.

Source: Anthropic API reference, "Errors"; Google API design guide, "Errors"; RFC 9110, status codes.

What a reply comes to, when all of it was read: whether anything was said, and whether tools are asked for.

Source: issue "Models", clear errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from neuroscript.errors import LLMError, Retry
from neuroscript.runtime.interfaces import Turn
from neuroscript.runtime.replies import Reply, Stop, Usage

WORD: Final = re.compile(r"[a-z0-9_.-]{1,64}")
"""A word that is told of a server's error; everything else that it says might repeat the conversation."""


QUOTA: Final = re.compile(r"insufficient_quota|billing_hard_limit_reached|billing_not_active")
"""Words with which 429 means that there is no money left, which no waiting changes."""


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
    (re.compile(r"(model_)?not_found(_error)?"), "llm.model", "host"),
    (re.compile(r"context_length_exceeded"), "llm.length", "host"),
    (
        re.compile(r"invalid_.*|.*_image.*|failed_precondition|out_of_range|request_too_large"),
        "llm.request",
        "host",
    ),
)
"""What the words of OpenAI, Anthropic and Google mean; every other one is a fault of the server."""


STATUSES: Final[Mapping[int, tuple[str, Retry]]] = {
    401: ("llm.auth", "host"),
    402: ("llm.auth", "host"),
    403: ("llm.auth", "host"),
    404: ("llm.model", "host"),
    408: ("llm.timeout", "later"),
    429: ("llm.rate", "later"),
    504: ("llm.timeout", "later"),
}
"""What statuses mean, and who acts; all others mean what their hundreds mean."""


SERVER: Final[tuple[str, Retry]] = ("llm.server", "later")
"""A fault of the server, whatever it was."""


def told(word: Any, status: Any = None) -> LLMError:
    """Return the error that a server told within an answer, by its word, or else by its number.

    >>> told("overloaded_error").text
    'the server ended the reply with an error (overloaded_error)'
    """
    said = word.lower() if isinstance(word, str) else ""
    code, retry = _meaning(said, int(said) if status is None and re.fullmatch(r"[45]\d\d", said) else status)
    text = f"the server ended the reply with an error{in_brackets(said if WORD.fullmatch(said) else '')}"
    return LLMError(text, code=code, retry=retry)


def in_brackets(word: str) -> str:
    """Return a word in brackets after a blank, ``""`` where there is none."""
    return f" ({word})" if word else ""


def word_of(error: Any) -> str:
    """Return a server's own word for an error, ``""`` where it has none that may be told.

    >>> word_of({"type": "error", "code": 429, "message": "You said ..."})
    '429'
    """
    places = [error.get(key) for key in ("code", "type")] if isinstance(error, Mapping) else [error]
    texts = [str(each) for each in places if type(each) in (str, int)]
    return next((text for text in texts if WORD.fullmatch(text)), "")


def _meaning(word: str, status: Any) -> tuple[str, Retry]:
    for pattern, code, retry in KINDS:
        if pattern.fullmatch(word):
            return code, retry
    return meaning(status) if type(status) is int and 400 <= status < 600 else SERVER


def meaning(status: int, word: str = "") -> tuple[str, Retry]:
    """Return the code of a status, 300 or more, that came with a word, and who can do something about it."""
    if status == 429 and QUOTA.fullmatch(word):
        return "llm.rate", "host"
    if status in STATUSES:
        return STATUSES[status]
    if status < 400:
        return "llm.format", "host"
    return ("llm.request", "host") if status < 500 else SERVER


def settled(turn: Turn, stop: Stop, usage: Usage) -> Reply:
    """Return a reply; one that ended with calls asks for tools.

    Raises:
        LLMError: ``llm.empty``, nothing was said, and not for want of room or will.
    """
    if stop == "end" and not turn.content.strip() and not turn.tool_calls:
        raise LLMError("the model said nothing", code="llm.empty", retry="later")
    return Reply(turn, "tools" if stop == "end" and turn.tool_calls else stop, usage)
