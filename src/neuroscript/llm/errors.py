"""Conversion of SDK, transport and HTTP errors into `LLMError`.

The SDKs of OpenAI and Anthropic come from one generator, so class names identify their errors. Only the status and the
error code of a server are reported, because its messages may repeat what was sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import attrs

from neuroscript._imports import install_hint
from neuroscript.errors import LLMError
from neuroscript.llm.wire.replies import WORD, code_of_status

CLIENT_PACKAGES: Final = frozenset({"openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2"})
"""The packages whose exceptions are request errors."""

BROKEN_CONNECTION_ERRORS: Final = frozenset({"RemoteProtocolError", "ReadError", "CloseError"})
"""Exceptions that mean an open connection broke."""

NO_CREDIT: Final = "the account at the model's server has no credit left"
MESSAGES: Final[Mapping[str, str]] = {
    "llm.auth": "the model's server rejected the key, or the key lacks a permission",
    "llm.format": "the model's server redirects requests; check the address",
    "llm.model_not_found": "the model's server does not know the model or the address",
    "llm.rate": "the model's server limits requests at present",
    "llm.request": "the model's server rejected the request",
    "llm.server": "the model's server failed",
    "llm.timeout": "the request to the model's server took too long",
}
"""The message for each error code."""


@attrs.frozen
class Fault:
    """The error of a request.

    Attributes:
        error: The error.
        wait: How many seconds the server asks to wait, or None.
    """

    error: LLMError
    wait: float | None = None


def missing_package_error(package: str, extra: str) -> LLMError:
    """Return the error for a package that is not installed, with the command that installs it."""
    return LLMError(f"{package} is not installed; install it with: {install_hint(extra)}", code="llm.not_installed")


def format_error(kind: str) -> LLMError:
    """Return the error for a response in the wrong format; *kind* is its content type."""
    description = kind if re.fullmatch(r"[a-z0-9.+-]{1,40}/[a-z0-9.+-]{1,40}", kind) else "something else"
    text = f"the model's server answered with {description}, which is not a reply of this API; check the address"
    return LLMError(text, code="llm.format", retry="host")


def cut_error() -> LLMError:
    """Return the error for a reply that ended too early."""
    text = "the connection to the model's server broke before the reply was complete"
    return LLMError(text, code="llm.incomplete", retry="later")


def timeout_error(seconds: float) -> LLMError:
    """Return the error for a reply that took too long."""
    return LLMError(f"the model's reply was not complete after {seconds:g} s", code="llm.timeout", retry="later")


def classify_error(error: BaseException) -> Fault | None:
    """Return the fault that *error* means, or None if it is not a request error."""
    if isinstance(error, LLMError):
        return Fault(LLMError(error.text, code=error.code, retry=error.retry))
    kinds = {kind.__name__ for kind in type(error).__mro__}
    response = getattr(error, "response", None)
    if type(error).__module__.partition(".")[0] not in CLIENT_PACKAGES:
        return None
    if kinds & {"APIStatusError", "HTTPStatusError"} and response is not None:
        return fault_of_status(response.status_code, response.headers, getattr(error, "body", None))
    return Fault(_of_transport(kinds | {type(error.__cause__).__name__}))


def _of_transport(kinds: set[str]) -> LLMError:
    if kinds & {"APITimeoutError", "TimeoutException"}:
        return LLMError("the model's server was silent for too long", code="llm.timeout", retry="later")
    if kinds & BROKEN_CONNECTION_ERRORS:
        return cut_error()
    if kinds & {"APIConnectionError", "TransportError"}:
        return LLMError("the model's server cannot be reached", code="llm.connect", retry="later")
    return LLMError("the model's server sent a response that its SDK cannot read", code="llm.format", retry="host")


def fault_of_status(status: int, headers: Mapping[str, str], body: Any = None) -> Fault:
    """Return the fault for an HTTP status of 300 or more.

    Args:
        headers: The response headers, with lower-case keys.
        body: The response body as plain data; only its error code is read.
    """
    word = error_code(body)
    code, retry = code_of_status(status, word)
    text = NO_CREDIT if status == 402 or (code, retry) == ("llm.rate", "host") else MESSAGES[code]
    description = f"{status} {word}".strip()
    return Fault(LLMError(f"{text} ({description})", code=code, retry=retry), retry_after_seconds(headers))


def error_code(body: Any) -> str:
    """Return the code, or else the type, in the body of an error, or ``""``.

    >>> error_code({"error": {"message": "…", "type": "overloaded_error"}})
    'overloaded_error'
    """
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    if not isinstance(inner, Mapping):
        return ""
    words = (inner.get("code"), inner.get("type"))
    return next((word for word in words if isinstance(word, str) and WORD.fullmatch(word)), "")


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a server asks to wait, from ``retry-after-ms`` or ``Retry-After``.

    ``Retry-After`` may be seconds or a date.

    >>> retry_after_seconds({"retry-after": "2"})
    2.0
    """
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return exact / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    return seconds if seconds is not None or text is None else _seconds_until(text)


def _number(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"\d{1,12}(\.\d{1,12})?", text.strip(), re.ASCII) else None


def _seconds_until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
