"""Google's Gemini API: tools, turns and results out, calls and replies in, whole or in pieces.

Each name is loaded when it is first asked for, so that reading one call costs nothing of what schemas need. No SDK is
imported; what an SDK gives is taken as well as plain data.

Source: Gemini API reference, ``generateContent`` and ``streamGenerateContent``; issue "Models", model APIs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy

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

__getattr__ = lazy(
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
