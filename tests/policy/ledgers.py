"""Ledgers with limits, and the refusals that they raise."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from neuroscript import LimitError
from neuroscript.policy.ledger import Ledger
from neuroscript.policy.limits import Limits


class Clock:
    """A clock of a host, which returns a settable time."""

    def __init__(self, now: Any = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> Any:
        if isinstance(self.now, Exception):
            raise self.now
        return self.now


def ledger_of(parent: Ledger | None = None, clock: Callable[[], Any] = time.time, **limits: Any) -> Ledger:
    return Ledger(Limits(**limits), clock, parent)


def refusal_of(run: Callable[[], Any]) -> tuple[str, str, str] | None:
    """Return the message, the code and the retry of the LimitError that *run* raises, or None."""
    try:
        run()
    except LimitError as error:
        return str(error), error.code, error.retry
    return None


def try_calls(ledger: Ledger, count: int, tool: str = "g.t", outermost: bool = True) -> list[bool]:
    return [refusal_of(lambda: ledger.begin(tool, outermost)) is None for _ in range(count)]
