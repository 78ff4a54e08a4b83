"""The text of a call's result as a model reads it: the value, or an error and what to do about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import copy
from typing import Any, Final

import attrs

from neuroscript.coercion.plain_data import readable_text, to_plain
from neuroscript.errors import ArgumentError, CallError, Retry, ToolFailed, ToolNotFound
from neuroscript.io.text import quote_untrusted
from neuroscript.runtime.interfaces import ToolResult
from neuroscript.runtime.wire_names import WireNames

ADVICE: Final[Mapping[Retry, str]] = {
    "model": "Fix the arguments and call again.",
    "later": "The same call may succeed later.",
    "host": "Only the host can change that; do not repeat this call.",
    "never": "This call cannot succeed; do not repeat it.",
}
"""Advice for a model about an error, by who can make the call succeed."""


def result_text(result: ToolResult, names: WireNames | None = None) -> str:
    """Return a result as a model reads it: strings unchanged, other values as JSON, errors with advice.

    Of content, a model reads the texts, and a note such as ``[image/png, 1,234 bytes]`` for each other block.

    Args:
        names: The names of tools that the model uses; by default the standard wire names.

    >>> result_text(ToolResult("c1", "math.add", 5))
    '5'
    """
    if result.error is not None:
        error = result.error
        text = error_text(error, names or WireNames())
        return f"error {error.code}: {text}{'' if text.endswith('?') else '.'} {ADVICE[error.retry]}"
    return value_text(result.value)


def value_text(value: Any) -> str:
    """Return the value of a result as a model reads it."""
    readable = readable_text(value)
    return json.dumps(to_plain(value), ensure_ascii=False) if readable is None else readable


def shorten(result: ToolResult, longest: int) -> ToolResult:
    """Return a result shortened to *longest* characters, with the number of omitted characters.

    Of errors, only the message of a `ToolFailed` is shortened, because all others are short. The text of a result that
    was written to a file is short too.
    """
    if result.spilled is not None:
        return result
    error = result.error
    if isinstance(error, ToolFailed) and len(error.text) > longest:
        cut = copy(error)
        cut.text, cut.__cause__ = _cut(error.text, longest), error.__cause__
        return attrs.evolve(result, error=cut)
    text = result_text(result) if result.ok else ""
    return result if len(text) <= longest else attrs.evolve(result, value=_cut(text, longest))


def _cut(text: str, longest: int) -> str:
    return f"{text[:longest]}\n[{len(text) - longest} more characters of this result were omitted]"


def error_text(error: CallError, names: WireNames) -> str:
    """Return the text of an error without its own tool's name, and with other tools under the model's names."""
    if isinstance(error, ToolNotFound):
        near = " or ".join(map(names.wire, error.near))
        return "no tool with this name is available" + (f"; did you mean {near}?" if near else "")
    if isinstance(error, ArgumentError):
        return str(error).removeprefix(f"{error.tool}: ")
    return error.text or quote_untrusted(error.code)
