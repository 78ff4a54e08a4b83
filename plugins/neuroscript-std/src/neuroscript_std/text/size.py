"""Size limits of results: the same as those of arguments, so a result can always be passed to another call."""

from __future__ import annotations

from typing import Final

from neuroscript import ToolFailed

MAX_RESULT_BYTES: Final = 8 * 1024 * 1024
"""Maximum bytes of a result, as UTF-8."""

MAX_RESULT_VALUES: Final = 1_000_000
"""Maximum number of values in a result."""


def utf8_length(text: str) -> int:
    """Return the number of bytes of a string in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def refuse_above_limit(size_of_result: int) -> None:
    """Raise `ToolFailed` with the code str.too_large if a result has more bytes than `MAX_RESULT_BYTES`."""
    if size_of_result > MAX_RESULT_BYTES:
        text = "the result would exceed 8 MiB; process less text per call"
        raise ToolFailed(text, code="str.too_large", retry="model")


def refuse_above_values(count: int) -> None:
    """Raise `ToolFailed` with the code str.too_large if a result has more values than `MAX_RESULT_VALUES`."""
    if count > MAX_RESULT_VALUES:
        text = "the result would contain more than 1,000,000 values; process less text per call"
        raise ToolFailed(text, code="str.too_large", retry="model")


def require_within_limit(text: str) -> str:
    """Return a string of at most `MAX_RESULT_BYTES` bytes; only for results that grow by a small factor."""
    refuse_above_limit(utf8_length(text))
    return text
