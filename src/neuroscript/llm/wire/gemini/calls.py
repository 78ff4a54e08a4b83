"""Tool calls as Google's Gemini API sends them: parts with a ``functionCall``.

Source: Gemini API reference, "Content" (``Part``, ``FunctionCall``); its Python SDK writes the keys in snake case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from neuroscript.errors import ArgumentError, Problem
from neuroscript.llm.wire.calls import Member, call_of, inner
from neuroscript.runtime.interfaces import ToolCall

KEY: Final = "gemini.generate"
"""Under which the parts of a content stand in `Turn.native`."""

KEYS: Final = ("functionCall", "function_call")
"""What a part calls its call: on the wire, and as the Python SDK dumps it."""

PARTIAL: Final = ("partialArgs", "partial_args", "willContinue", "will_continue")
"""Members that say that more of the call is to come."""


def read_call(data: Mapping[str, Any]) -> ToolCall:
    """Return the call that a part asks for; the API gives an id only to some.

    Raises:
        ArgumentError: Something is missing, or of another kind, or the call is only a piece of one; it is named.

    >>> read_call({"functionCall": {"name": "math__add", "args": {"num1": 2, "num2": 3}}})
    ToolCall(name='math__add', arguments={'num1': 2, 'num2': 3}, id='')
    """
    key = next((key for key in KEYS if key in data), KEYS[0])
    given = {name: value for name, value in inner(data, key).items() if value is not None}
    for name in PARTIAL:
        if given.pop(name, False):
            raise ArgumentError([Problem(f"{key}['{name}']", "call.partial", "a whole call", "a piece of one")])
    return call_of(
        id=Member(given, "id", within=key),
        name=Member(given, "name", within=key),
        arguments=Member(given, "args", within=key),
    )
