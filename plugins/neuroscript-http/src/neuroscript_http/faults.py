"""What goes wrong with a request, as errors that say who can make it go well.

Texts name hosts, sizes and seconds, and never a path, a query, a header's value or a body.
"""

from __future__ import annotations

from typing import Final, Literal

from neuroscript import ToolFailed

Word = Literal[
    "bad_encoding",
    "bad_header",
    "bad_url",
    "cancelled",
    "connect",
    "cut",
    "private",
    "protocol",
    "redirect",
    "resolve",
    "timeout",
    "tls",
    "too_large",
]

RETRY: Final[dict[Word, Literal["model", "later", "host", "never"]]] = {
    "bad_encoding": "never",
    "bad_header": "model",
    "bad_url": "model",
    "cancelled": "later",
    "connect": "later",
    "cut": "later",
    "private": "never",
    "protocol": "never",
    "redirect": "model",
    "resolve": "later",
    "timeout": "later",
    "tls": "host",
    "too_large": "model",
}
"""Who can make the same call succeed."""


def fault(word: Word, text: str) -> ToolFailed:
    """Return the error ``http.WORD``."""
    return ToolFailed(text, code=f"http.{word}", retry=RETRY[word])
