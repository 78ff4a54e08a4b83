"""LangChain integration: export tools to its agents, and load its tools.

Names are imported lazily and need ``langchain-core``; install the extra ``langchain``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.interop.langchain.export import to_langchain
    from neuroscript.interop.langchain.load import from_langchain

__all__ = ["from_langchain", "to_langchain"]

__getattr__ = lazy_getattr(__name__, {"export": "to_langchain", "load": "from_langchain"})
