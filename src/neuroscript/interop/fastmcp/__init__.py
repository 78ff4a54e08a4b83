"""FastMCP integration: export tools to its servers, and load the tools of a server in this process.

Names are imported lazily and need the extra ``fastmcp``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.interop.fastmcp.export import to_fastmcp
    from neuroscript.interop.fastmcp.load import from_fastmcp

__all__ = ["from_fastmcp", "to_fastmcp"]

__getattr__ = lazy_getattr(__name__, {"export": "to_fastmcp", "load": "from_fastmcp"})
