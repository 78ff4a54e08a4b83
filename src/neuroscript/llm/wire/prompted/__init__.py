"""Tool calling for models without it: the prompt that asks for calls, and the parser that reads them."""

from __future__ import annotations

from neuroscript.llm.wire.prompted.model import Prompted
from neuroscript.llm.wire.prompted.parser import read
from neuroscript.llm.wire.prompted.prompt import instructions

__all__ = ["Prompted", "instructions", "read"]
