"""Google's Gemini API as a `Wire`."""

from __future__ import annotations

from typing import Final

from neuroscript.llm.wire.api import Wire
from neuroscript.llm.wire.gemini.calls import KEY
from neuroscript.llm.wire.gemini.replies import read
from neuroscript.llm.wire.gemini.stream import ResponseAssembler
from neuroscript.llm.wire.gemini.tools import tools
from neuroscript.llm.wire.gemini.turns import conversation

GENERATE: Final = Wire("Gemini", KEY, tools, conversation, read, ResponseAssembler)
"""Gemini's ``generateContent``."""
