"""What came of a call, as the text that its model reads: the result, or what to do about the error.

Source: contract section 6, ``.retry``; peers.md part 0.1, "error text".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import copy
from typing import Final

import attrs

from neuroscript.coercion.plain_data import plain
from neuroscript.errors import ArgumentError, CallError, Retry, ToolFailed, ToolNotFound
from neuroscript.io.text import shown
from neuroscript.runtime.interfaces import ToolResult
from neuroscript.runtime.wire_names import WireNames

ADVICE: Final[Mapping[Retry, str]] = {
    "model": "Mend the call and make it again.",
    "later": "The same call may succeed later.",
    "host": "Only the host can change that: do not make this call again.",
    "never": "This call can not succeed: do not make it again.",
}
"""What a model may do about an error, by who can make the call succeed."""


def result_text(result: ToolResult, names: WireNames | None = None) -> str:
    """Return a result as a model reads it: a text as it is, everything else as JSON; an error with what to do about it.

    Args:
        names: What the model calls the tools; by default as the rule spells them.

    >>> result_text(ToolResult("c1", "math.add", 5))
    '5'
    """
    if result.error is not None:
        error = result.error
        text = error_text(error, names or WireNames())
        return f"error {error.code}: {text}{'' if text.endswith('?') else '.'} {ADVICE[error.retry]}"
    value = result.value
    return value if type(value) is str else json.dumps(plain(value), ensure_ascii=False)


def shortened(result: ToolResult, longest: int) -> ToolResult:
    """Return a result of which a model reads at most *longest* characters, and how many were left out.

    Of an error that is what a tool says in a `ToolFailed`; the texts of all others are short. So is that of a result
    that stands in a file.
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
    return f"{text[:longest]}\n[{len(text) - longest} further characters of this result were left out]"


def error_text(error: CallError, names: WireNames) -> str:
    """Return the text of an error without the tool's own name, and with others as the model calls them."""
    if isinstance(error, ToolNotFound):
        near = " or ".join(map(names.wire, error.near))
        return "no tool of that name can be called here" + (f"; did you mean {near}?" if near else "")
    if isinstance(error, ArgumentError):
        return str(error).removeprefix(f"{error.tool}: ")
    return error.text or shown(error.code)
