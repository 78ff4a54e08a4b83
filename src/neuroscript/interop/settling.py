"""What a reply comes to, when all of it was read: whether anything was said, and whether tools are asked for.

Source: issue "Models", clear errors.
"""

from __future__ import annotations

from neuroscript.errors import LLMError
from neuroscript.replies import Reply, Stop, Usage
from neuroscript.runtime import Turn


def settled(turn: Turn, stop: Stop, usage: Usage) -> Reply:
    """Return a reply; one that ended with calls asks for tools.

    Raises:
        LLMError: ``llm.empty``, nothing was said, and not for want of room or will.
    """
    if stop == "end" and not turn.content.strip() and not turn.tool_calls:
        raise LLMError("the model said nothing", code="llm.empty", retry="later")
    return Reply(turn, "tools" if stop == "end" and turn.tool_calls else stop, usage)
