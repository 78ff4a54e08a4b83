"""Tool calls of Anthropic's Messages API: ``tool_use`` blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from neuroscript.llm.wire.calls import CallField, call_of
from neuroscript.runtime.interfaces import ToolCall

KEY: Final = "anthropic.messages"
"""The key in `Turn.native` for the blocks of a message."""


def read_call(data: Mapping[str, Any]) -> ToolCall:
    """Return the call in a ``tool_use`` block.

    Raises:
        ArgumentError: If a member is missing or has the wrong type.

    >>> read_call({"type": "tool_use", "id": "t1", "name": "math__add", "input": {"num1": 2, "num2": 3}})
    ToolCall(name='math__add', arguments={'num1': 2, 'num2': 3}, id='t1')
    """
    return call_of(id=CallField(data, "id"), name=CallField(data, "name"), arguments=CallField(data, "input"))
