"""Retries of model requests.

Temporary failures are retried until the first piece of a reply has been passed on. After that, a second reply would
follow the beginning of the first one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

import attrs

from neuroscript.errors import LLMError
from neuroscript.llm.errors import Fault, classify_error
from neuroscript.runtime.replies import RetriedRequest

T = TypeVar("T")

MAX_SERVER_WAIT_SECONDS: Final = 60.0
"""The longest wait in seconds that a server may ask for; if it asks for more, the request is not retried."""

MAX_BACKOFF_SECONDS: Final = 8.0
"""The longest wait in seconds when the server does not name one."""


@attrs.frozen
class RetryPolicy:
    """The retry policy of a request.

    Attributes:
        attempts: Maximum number of requests.
        backoff: Seconds before the first retry; doubled for each further one, up to `MAX_BACKOFF_SECONDS`.
        seconds: Maximum time for all requests together.
    """

    attempts: int
    backoff: float
    seconds: float


def retry(
    make: Callable[[float], T],
    policy: RetryPolicy,
    *,
    said: Callable[[], bool] = bool,
    on_retry: Callable[[RetriedRequest], object] | None = None,
) -> tuple[T, tuple[RetriedRequest, ...]]:
    """Return the result of the first successful request, and a record of each retry.

    Args:
        make: Makes the request; its argument is the deadline on the clock of `time.monotonic`.
        said: Returns whether a piece of the reply has been passed on. The request is not retried after that.
        on_retry: Receives each retry before the wait for it.

    Raises:
        LLMError: The error of the last request.
    """
    until = time.monotonic() + policy.seconds
    retries: list[RetriedRequest] = []
    while True:
        made, fault = _tried(make, until)
        if fault is None:
            return made[0], tuple(retries)
        wait = None if said() else _wait(policy, fault, len(retries), until)
        if wait is None:
            raise _error_with_delay(fault)
        retries.append(RetriedRequest(fault.error.code, wait))
        if on_retry is not None:
            on_retry(retries[-1])
        time.sleep(wait)


def _tried(make: Callable[[float], T], until: float) -> tuple[list[T], Fault | None]:
    """Return the result or the fault.

    SDK exceptions hold the key, so the raised error must not have one as its context.
    """
    try:
        return [make(until)], None
    except Exception as error:
        fault = classify_error(error)
        if fault is None:
            raise
        return [], fault


def _wait(policy: RetryPolicy, fault: Fault, before: int, until: float) -> float | None:
    """Return the seconds before the next request, or None to give up."""
    if fault.error.retry != "later" or before + 1 >= policy.attempts:
        return None
    wait = fault.wait
    if wait is None:
        wait = min(MAX_BACKOFF_SECONDS, policy.backoff * 2**before) * random.uniform(0.5, 1.0)  # noqa: S311
    return wait if wait <= MAX_SERVER_WAIT_SECONDS and time.monotonic() + wait < until else None


def _error_with_delay(fault: Fault) -> LLMError:
    if fault.wait is None or fault.wait < 1 or fault.error.retry != "later":
        return fault.error
    text = f"{fault.error.text}; try again after {fault.wait:.0f} s"
    return LLMError(text, code=fault.error.code, retry=fault.error.retry)
