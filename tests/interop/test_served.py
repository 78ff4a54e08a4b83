"""An error of a model server means the same as an HTTP status and in a reply."""

from __future__ import annotations

from typing import Any

import pytest

from neuroscript import LLMError
from neuroscript.llm.errors import fault_of_status
from neuroscript.llm.wire import gemini
from neuroscript.llm.wire.replies import reported_error

KEY = "the model's server rejected the key, or the key lacks a permission"
PAID = "the account at the model's server has no credit left"
SLOW = "the request to the model's server took too long"
FAILED = "the model's server failed"
REFUSED = "the model's server rejected the request"

STATUSES = {
    400: ("llm.request", "host", REFUSED),
    401: ("llm.auth", "host", KEY),
    402: ("llm.auth", "host", PAID),
    403: ("llm.auth", "host", KEY),
    404: ("llm.model_not_found", "host", "the model's server does not know the model or the address"),
    408: ("llm.timeout", "later", SLOW),
    409: ("llm.request", "host", REFUSED),
    413: ("llm.request", "host", REFUSED),
    422: ("llm.request", "host", REFUSED),
    429: ("llm.rate", "later", "the model's server limits requests at present"),
    500: ("llm.server", "later", FAILED),
    502: ("llm.server", "later", FAILED),
    503: ("llm.server", "later", FAILED),
    504: ("llm.timeout", "later", SLOW),
    529: ("llm.server", "later", FAILED),
}


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_means_the_same_everywhere(status: int) -> None:
    """Of an HTTP response, and of an error in a reply, as a string or a number."""
    code, retry, text = STATUSES[status]
    answered = fault_of_status(status, {}).error
    with pytest.raises(LLMError) as within:
        gemini.read({"error": {"code": status}})

    assert (answered.code, answered.retry, answered.text) == (code, retry, f"{text} ({status})")
    assert (within.value.code, within.value.retry) == (code, retry)
    assert (reported_error(str(status)).code, reported_error(str(status)).retry) == (code, retry)


@pytest.mark.parametrize("word", ["insufficient_quota", "billing_hard_limit_reached", "billing_not_active"])
def test_an_exhausted_account_is_for_the_host(word: str) -> None:
    """Waiting does not help, wherever the server reports it."""
    answered = fault_of_status(429, {}, {"error": {"code": word}}).error

    assert (answered.code, answered.retry, answered.text) == ("llm.rate", "host", f"{PAID} (429 {word})")
    assert (reported_error(word).code, reported_error(word).retry) == ("llm.rate", "host")


def test_a_redirect_is_not_an_answer() -> None:
    """It is not followed."""
    error = fault_of_status(307, {}).error

    assert (error.code, error.retry) == ("llm.format", "host")
    assert error.text == "the model's server redirects requests; check the address (307)"


@pytest.mark.parametrize("status", [[404], {"a": 1}, 404.0, True, 200, 10**9, None])
def test_an_invalid_status_is_a_fault_of_the_server(status: Any) -> None:
    """For any value in its place."""
    error = reported_error("", status)

    assert (error.code, error.retry) == ("llm.server", "later")
