"""Anthropic's Messages API: tools, turns and results out, calls and replies in, whole or in pieces.

Each name is loaded when it is first asked for, so that reading one call costs nothing of what schemas need. No SDK is
imported; what an SDK gives is taken as well as plain data.

Source: Anthropic API reference, "Messages"; issue "Models", model APIs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript.lazily import lazy

if TYPE_CHECKING:
    from neuroscript.interop.anthropic.calls import read_call
    from neuroscript.interop.anthropic.messages import MESSAGES
    from neuroscript.interop.anthropic.replies import read, read_calls
    from neuroscript.interop.anthropic.streams import MessageAssembler
    from neuroscript.interop.anthropic.tools import to_tools
    from neuroscript.interop.anthropic.turns import conversation, to_content

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

__getattr__ = lazy(
    __name__,
    {
        "calls": "read_call",
        "turns": "conversation to_content",
        "messages": "MESSAGES",
        "replies": "read read_calls",
        "streams": "MessageAssembler",
        "tools": "to_tools",
    },
)
