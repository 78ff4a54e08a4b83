"""Errors of requests, each with who can retry.

Messages contain hosts, sizes and seconds, but never a path, a query, a header value or a body.
"""

from __future__ import annotations

from typing import Final, Literal

from neuroscript import ToolFailed

FaultName = Literal[
    "bad_encoding",
    "bad_header",
    "bad_url",
    "cancelled",
    "connect",
    "incomplete",
    "private",
    "protocol",
    "redirect",
    "resolve",
    "timeout",
    "tls",
    "too_large",
]

RETRY: Final[dict[FaultName, Literal["model", "later", "host", "never"]]] = {
    "bad_encoding": "never",
    "bad_header": "model",
    "bad_url": "model",
    "cancelled": "later",
    "connect": "later",
    "incomplete": "later",
    "private": "never",
    "protocol": "never",
    "redirect": "model",
    "resolve": "later",
    "timeout": "later",
    "tls": "host",
    "too_large": "model",
}
"""Who can make the call succeed, by error."""


def fault(word: FaultName, text: str) -> ToolFailed:
    """Return a `ToolFailed` with the code ``http.WORD``."""
    return ToolFailed(text, code=f"http.{word}", retry=RETRY[word])
