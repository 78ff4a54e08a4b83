"""Tool calls of Google's Gemini API: parts with a ``functionCall``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from neuroscript.errors import ArgumentError, Problem
from neuroscript.llm.wire.calls import CallField, call_of, inner
from neuroscript.runtime.interfaces import ToolCall

KEY: Final = "gemini.generate"
"""The key in `Turn.native` for the parts of a content."""

KEYS: Final = ("functionCall", "function_call")
"""The key of a call in a part: on the wire, and in dumps of the Python SDK."""

PARTIAL: Final = ("partialArgs", "partial_args", "willContinue", "will_continue")
"""Members which say that more of the call will follow."""


def read_call(data: Mapping[str, Any]) -> ToolCall:
    """Return the call in a part; the API sends ids only for some calls.

    Raises:
        ArgumentError: If a member is missing or has the wrong type, or the call is only partial.

    >>> read_call({"functionCall": {"name": "math__add", "args": {"num1": 2, "num2": 3}}})
    ToolCall(name='math__add', arguments={'num1': 2, 'num2': 3}, id='')
    """
    key = next((key for key in KEYS if key in data), KEYS[0])
    members = {name: value for name, value in inner(data, key).items() if value is not None}
    for name in PARTIAL:
        if members.pop(name, False):
            raise ArgumentError([Problem(f"{key}['{name}']", "call.partial", "a complete call", "a partial one")])
    return call_of(
        id=CallField(members, "id", within=key),
        name=CallField(members, "name", within=key),
        arguments=CallField(members, "args", within=key),
    )
