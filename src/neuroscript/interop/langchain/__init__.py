"""LangChain: our tools for its agents, and its tools under our contract and our policy.

Each name is loaded when it is first asked for, and needs ``langchain-core``, which is the extra ``langchain``.

Source: LangChain reference, "Tools"; issue "MCP and the frameworks".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy

if TYPE_CHECKING:
    from neuroscript.interop.langchain.export import to_langchain
    from neuroscript.interop.langchain.load import from_langchain

__all__ = ["from_langchain", "to_langchain"]

__getattr__ = lazy(__name__, {"export": "to_langchain", "load": "from_langchain"})
