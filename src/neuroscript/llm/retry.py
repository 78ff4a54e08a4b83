"""The one place where a request is made again.

Whatever can succeed later is tried again, as long as nothing of the answer was told to anybody: after that, a second
answer would be told behind the first.

Source: issue "Models", retries in one place; RFC 9110, section 10.2.3.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

import attrs

from neuroscript.errors import LLMError
from neuroscript.llm.errors import Fault, fault_of
from neuroscript.runtime.replies import Retried

T = TypeVar("T")

ASKED: Final = 60.0
"""How many seconds a server may ask to wait; one that asks for more gets no further request."""

LONGEST: Final = 8.0
"""How many seconds are waited at most where the server does not say how long."""


@attrs.frozen
class Patience:
    """How long a request is tried.

    Attributes:
        attempts: How many requests are made at most.
        pause: How many seconds are waited before the second one; twice as long before each further one, up
            to `LONGEST`.
        seconds: How long all of it may take.
    """

    attempts: int
    pause: float
    seconds: float


def persisted(
    make: Callable[[float], T],
    patience: Patience,
    *,
    said: Callable[[], bool] = bool,
    on_retry: Callable[[Retried], object] | None = None,
) -> tuple[T, tuple[Retried, ...]]:
    """Return what the first try that succeeds gives, and one fact for each try before it.

    Args:
        make: Makes the request; it is given until when all has to be there, on the clock of `time.monotonic`.
        said: Tells whether something of the answer was told; nothing is tried again then.
        on_retry: Is told of each further try, before the wait for it.

    Raises:
        LLMError: That of the last try.
    """
    until = time.monotonic() + patience.seconds
    retries: list[Retried] = []
    while True:
        made, fault = _tried(make, until)
        if fault is None:
            return made[0], tuple(retries)
        wait = None if said() else _wait(patience, fault, len(retries), until)
        if wait is None:
            raise _told(fault)
        retries.append(Retried(fault.error.code, wait))
        if on_retry is not None:
            on_retry(retries[-1])
        time.sleep(wait)


def _tried(make: Callable[[float], T], until: float) -> tuple[list[T], Fault | None]:
    """Return what was made, or the fault; an error of an SDK holds the key, so none is left as the context of ours."""
    try:
        return [make(until)], None
    except Exception as error:
        fault = fault_of(error)
        if fault is None:
            raise
        return [], fault


def _wait(patience: Patience, fault: Fault, before: int, until: float) -> float | None:
    """Return how long to wait for the next try, or None if there is to be none."""
    if fault.error.retry != "later" or before + 1 >= patience.attempts:
        return None
    wait = fault.wait
    if wait is None:
        wait = min(LONGEST, patience.pause * 2**before) * random.uniform(0.5, 1.0)  # noqa: S311
    return wait if wait <= ASKED and time.monotonic() + wait < until else None


def _told(fault: Fault) -> LLMError:
    if fault.wait is None or fault.wait < 1 or fault.error.retry != "later":
        return fault.error
    text = f"{fault.error.text}; it asks to wait {fault.wait:.0f} s"
    return LLMError(text, code=fault.error.code, retry=fault.error.retry)
