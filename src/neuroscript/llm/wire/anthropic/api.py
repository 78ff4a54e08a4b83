"""Anthropic's Messages API as a `Wire`."""

from __future__ import annotations

from typing import Final

from neuroscript.llm.wire.anthropic.calls import KEY
from neuroscript.llm.wire.anthropic.replies import read
from neuroscript.llm.wire.anthropic.stream import MessageAssembler
from neuroscript.llm.wire.anthropic.tools import tools
from neuroscript.llm.wire.anthropic.turns import conversation
from neuroscript.llm.wire.api import Wire

MESSAGES: Final = Wire("Anthropic", KEY, tools, conversation, read, MessageAssembler)
"""Anthropic's Messages API. The transport adds ``model`` and ``max_tokens``."""
