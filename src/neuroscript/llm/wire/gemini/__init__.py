"""Google's Gemini API: converts tools, turns and results to requests, and reads calls and replies.

Names load lazily, so that reading a call does not load the schema code. No SDK is imported; SDK objects and plain data
are both accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.llm.wire.gemini.api import GENERATE
    from neuroscript.llm.wire.gemini.calls import KEYS, read_call
    from neuroscript.llm.wire.gemini.replies import read, read_calls
    from neuroscript.llm.wire.gemini.stream import ResponseAssembler
    from neuroscript.llm.wire.gemini.tools import to_tools
    from neuroscript.llm.wire.gemini.turns import conversation, to_parts

__all__ = [
    "GENERATE",
    "KEYS",
    "ResponseAssembler",
    "conversation",
    "read",
    "read_call",
    "read_calls",
    "to_parts",
    "to_tools",
]

__getattr__ = lazy_getattr(
    __name__,
    {
        "api": "GENERATE",
        "calls": "KEYS read_call",
        "replies": "read read_calls",
        "stream": "ResponseAssembler",
        "tools": "to_tools",
        "turns": "conversation to_parts",
    },
)
