"""How large a result may be: what a call could take again, so that growth has an end.

Source: contract section 3, 8 MiB of text in the arguments of one call.
"""

from __future__ import annotations

from typing import Final

from neuroscript import ToolFailed

LIMIT: Final = 8 * 1024 * 1024
"""Bytes of a result, as UTF-8."""

VALUES: Final = 1_000_000
"""How many values a result may hold."""


def size(text: str) -> int:
    """Return how many bytes a text has as UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def refuse_above_limit(size_of_result: int) -> None:
    """Raise a `ToolFailed`, str.too_large, for a result of more bytes than `LIMIT`."""
    if size_of_result > LIMIT:
        text = "the result would be larger than 8 MiB; work on less text in one call"
        raise ToolFailed(text, code="str.too_large", retry="model")


def refuse_above_values(count: int) -> None:
    """Raise a `ToolFailed`, str.too_large, for a result of more values than `VALUES`."""
    if count > VALUES:
        text = "the result would hold more than 1,000,000 values; work on less text in one call"
        raise ToolFailed(text, code="str.too_large", retry="model")


def within_limit(text: str) -> str:
    """Return a text that is not larger than `LIMIT`, for results that grow by a small factor only."""
    refuse_above_limit(size(text))
    return text
