"""Google's Gemini API as a `Wire`.

Source: Gemini API reference, ``generateContent``.
"""

from __future__ import annotations

from typing import Final

from neuroscript.interop.gemini.calls import KEY
from neuroscript.interop.gemini.replies import read
from neuroscript.interop.gemini.streams import ResponseAssembler
from neuroscript.interop.gemini.tools import tools
from neuroscript.interop.gemini.turns import conversation
from neuroscript.interop.wire import Wire

GENERATE: Final = Wire("Gemini", KEY, tools, conversation, read, ResponseAssembler)
"""Gemini's ``generateContent``."""
