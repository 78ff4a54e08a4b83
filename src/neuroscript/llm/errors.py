"""What went wrong with a model, as an `LLMError`: from the errors of an SDK, of its transport, and of HTTP.

The SDKs of OpenAI and of Anthropic come from one generator, so their errors are told apart by the names of their
classes. Of a server's own words only its status and its code are told, for its sentences repeat what was sent.

Source: issue "Models", clear errors; docs/reference/errors.md, models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import attrs

from neuroscript._imports import mending
from neuroscript.errors import LLMError
from neuroscript.llm.wire.replies import WORD, meaning

DOORS: Final = frozenset({"openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2"})
"""The packages whose errors are those of a request."""

CUT: Final = frozenset({"RemoteProtocolError", "ReadError", "CloseError"})
"""Errors of a connection that was there and broke."""

PAID: Final = "the account at the model's server is used up, or not paid for"
TEXTS: Final[Mapping[str, str]] = {
    "llm.auth": "the model's server refused the key, or what may be done with it",
    "llm.format": "the model's server sends requests elsewhere; is the address right?",
    "llm.model": "the model's server knows no such model or address",
    "llm.rate": "the model's server takes no more requests at present",
    "llm.request": "the model's server refused the request",
    "llm.server": "the model's server failed",
    "llm.timeout": "the request to the model's server took too long",
}
"""What is told of the code of a status."""


@attrs.frozen
class Fault:
    """An error of a request, and how long its server asks to wait.

    Attributes:
        wait: In seconds; None where the server says nothing.
    """

    error: LLMError
    wait: float | None = None


def missing(package: str, extra: str) -> LLMError:
    """Return the error that a package is not there, with the line that installs it."""
    return LLMError(f"{package} is not installed; install it with: {mending(extra)}", code="llm.missing")


def format_error(kind: str) -> LLMError:
    """Return the error that an answer is of another shape; *kind* is its content type."""
    told = kind if re.fullmatch(r"[a-z0-9.+-]{1,40}/[a-z0-9.+-]{1,40}", kind) else "something else"
    text = f"the model's server answered with {told}, which is no answer of this API; is the address right?"
    return LLMError(text, code="llm.format", retry="host")


def cut_error() -> LLMError:
    """Return the error that a reply ended too early."""
    text = "the connection to the model's server broke before the reply was whole"
    return LLMError(text, code="llm.cut", retry="later")


def timeout_error(seconds: float) -> LLMError:
    """Return the error that a whole reply took too long."""
    return LLMError(f"the model's reply was not whole after {seconds:g} s", code="llm.timeout", retry="later")


def fault_of(error: BaseException) -> Fault | None:
    """Return what an error means for a request, or None where it is no error of a request."""
    if isinstance(error, LLMError):
        return Fault(LLMError(error.text, code=error.code, retry=error.retry))
    kinds = {kind.__name__ for kind in type(error).__mro__}
    response = getattr(error, "response", None)
    if type(error).__module__.partition(".")[0] not in DOORS:
        return None
    if kinds & {"APIStatusError", "HTTPStatusError"} and response is not None:
        return of_status(response.status_code, response.headers, getattr(error, "body", None))
    return Fault(_of_transport(kinds | {type(error.__cause__).__name__}))


def _of_transport(kinds: set[str]) -> LLMError:
    if kinds & {"APITimeoutError", "TimeoutException"}:
        return LLMError("the model's server was silent for too long", code="llm.timeout", retry="later")
    if kinds & CUT:
        return cut_error()
    if kinds & {"APIConnectionError", "TransportError"}:
        return LLMError("the model's server can not be reached", code="llm.connect", retry="later")
    return LLMError("the model's server sent what its SDK can not read", code="llm.format", retry="host")


def of_status(status: int, headers: Mapping[str, str], body: Any = None) -> Fault:
    """Return what a status of HTTP, 300 or more, means.

    Args:
        headers: Those of the response, looked up in lower case.
        body: What it says, as plain data; only its code is looked at.
    """
    word = code_word(body)
    code, retry = meaning(status, word)
    text = PAID if status == 402 or (code, retry) == ("llm.rate", "host") else TEXTS[code]
    told = f"{status} {word}".strip()
    return Fault(LLMError(f"{text} ({told})", code=code, retry=retry), asked_wait(headers))


def code_word(body: Any) -> str:
    """Return the code, or else the type, that the body of an error names, or ``""``.

    >>> code_word({"error": {"message": "…", "type": "overloaded_error"}})
    'overloaded_error'
    """
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    if not isinstance(inner, Mapping):
        return ""
    words = (inner.get("code"), inner.get("type"))
    return next((word for word in words if isinstance(word, str) and WORD.fullmatch(word)), "")


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a server asks to wait: ``retry-after-ms``, or ``Retry-After`` in seconds or as a date.

    >>> asked_wait({"retry-after": "2"})
    2.0
    """
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return exact / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    return seconds if seconds is not None or text is None else _until(text)


def _number(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"\d{1,12}(\.\d{1,12})?", text.strip(), re.ASCII) else None


def _until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
