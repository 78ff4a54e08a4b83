"""LangChain: our tools for its agents, and its tools under our contract and our policy.

Each name is loaded when it is first asked for, and needs ``langchain-core``, which is the extra ``langchain``.

Source: LangChain reference, "Tools"; issue "MCP and the frameworks".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript.lazily import lazy

if TYPE_CHECKING:
    from neuroscript.interop.langchain.giving import to_langchain
    from neuroscript.interop.langchain.taking import from_langchain

__all__ = ["from_langchain", "to_langchain"]

__getattr__ = lazy(__name__, {"giving": "to_langchain", "taking": "from_langchain"})
