"""Tool calls as Anthropic's Messages API sends them: ``tool_use`` blocks.

Source: Anthropic API reference, "Messages", content blocks of an assistant's message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from neuroscript.llm.wire.calls import Member, call_of
from neuroscript.runtime.interfaces import ToolCall

KEY: Final = "anthropic.messages"
"""Under which the blocks of a message stand in `Turn.native`."""


def read_call(data: Mapping[str, Any]) -> ToolCall:
    """Return the call that a ``tool_use`` block asks for.

    Raises:
        ArgumentError: Something is missing, or of another kind; it is named.

    >>> read_call({"type": "tool_use", "id": "t1", "name": "math__add", "input": {"num1": 2, "num2": 3}})
    ToolCall(name='math__add', arguments={'num1': 2, 'num2': 3}, id='t1')
    """
    return call_of(id=Member(data, "id"), name=Member(data, "name"), arguments=Member(data, "input"))
