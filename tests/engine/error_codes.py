"""The codes of errors, with the check of who can make the call succeed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuroscript import CallError

RETRIES = {
    "call.timeout": "later",
    "coercion.format": "model",
    "engine.closed": "never",
    "limit.amount": "never",
    "limit.concurrency": "later",
    "limit.identical_calls": "model",
    "limit.rate": "later",
    "policy.rejected": "never",
    "return.type": "never",
    "tool.failed": "never",
    "tool.not_found": "model",
}
"""Who can make the call succeed, by code; for every other code it is 'host'."""


def code(run: Callable[[], Any]) -> str:
    """Return the code of the error that a call ends with, or ``ok``."""
    try:
        run()
    except CallError as error:
        assert error.retry == RETRIES.get(error.code, "host")
        return error.code
    return "ok"
