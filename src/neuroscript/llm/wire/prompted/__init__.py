"""Tool calling for models without it: the prompt that asks for calls, and the parser that reads them."""

from __future__ import annotations

from neuroscript.llm.wire.prompted.model import PromptedModel
from neuroscript.llm.wire.prompted.parser import read
from neuroscript.llm.wire.prompted.prompt import instructions

__all__ = ["PromptedModel", "instructions", "read"]
