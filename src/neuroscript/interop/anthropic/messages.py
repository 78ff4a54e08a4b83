"""Anthropic's Messages API as a `Wire`.

Source: Anthropic API reference, "Messages".
"""

from __future__ import annotations

from typing import Final

from neuroscript.interop.anthropic.calls import KEY
from neuroscript.interop.anthropic.replies import read
from neuroscript.interop.anthropic.streams import MessageAssembler
from neuroscript.interop.anthropic.tools import tools
from neuroscript.interop.anthropic.turns import conversation
from neuroscript.interop.wire import Wire

MESSAGES: Final = Wire("Anthropic", KEY, tools, conversation, read, MessageAssembler)
"""Anthropic's Messages; what a request needs besides, ``model`` and ``max_tokens``, is the transport's."""
