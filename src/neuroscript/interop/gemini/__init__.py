"""Google's Gemini API: tools, turns and results out, calls and replies in, whole or in pieces.

Each name is loaded when it is first asked for, so that reading one call costs nothing of what schemas need. No SDK is
imported; what an SDK gives is taken as well as plain data.

Source: Gemini API reference, ``generateContent`` and ``streamGenerateContent``; issue "Models", model APIs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript.lazily import lazy

if TYPE_CHECKING:
    from neuroscript.interop.gemini.calls import KEYS, read_call
    from neuroscript.interop.gemini.generate import GENERATE
    from neuroscript.interop.gemini.replies import read, read_calls
    from neuroscript.interop.gemini.streams import ResponseAssembler
    from neuroscript.interop.gemini.tools import to_tools
    from neuroscript.interop.gemini.turns import conversation, to_parts

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
        "calls": "KEYS read_call",
        "turns": "conversation to_parts",
        "generate": "GENERATE",
        "replies": "read read_calls",
        "streams": "ResponseAssembler",
        "tools": "to_tools",
    },
)
