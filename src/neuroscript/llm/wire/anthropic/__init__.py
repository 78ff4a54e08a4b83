"""Anthropic's Messages API: converts tools, turns and results to requests, and reads calls and replies.

Names load lazily, so that reading a call does not load the schema code. No SDK is imported; SDK objects and plain data
are both accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.llm.wire.anthropic.api import MESSAGES
    from neuroscript.llm.wire.anthropic.calls import read_call
    from neuroscript.llm.wire.anthropic.replies import read, read_calls
    from neuroscript.llm.wire.anthropic.stream import MessageAssembler
    from neuroscript.llm.wire.anthropic.tools import to_tools
    from neuroscript.llm.wire.anthropic.turns import conversation, to_content

__all__ = [
    "MESSAGES",
    "MessageAssembler",
    "conversation",
    "read",
    "read_call",
    "read_calls",
    "to_content",
    "to_tools",
]

__getattr__ = lazy_getattr(
    __name__,
    {
        "api": "MESSAGES",
        "calls": "read_call",
        "replies": "read read_calls",
        "stream": "MessageAssembler",
        "tools": "to_tools",
        "turns": "conversation to_content",
    },
)
