"""Calls of tools for models that know none: how to ask for one, and what they then write.

Source: AgentHeaven's ``to_prompt``, row AH-32 of seed-systems.md; issue "Models", models without tool calling.
"""

from __future__ import annotations

from neuroscript.llm.wire.prompted.model import Prompted
from neuroscript.llm.wire.prompted.parser import read
from neuroscript.llm.wire.prompted.prompt import instructions

__all__ = ["Prompted", "instructions", "read"]
