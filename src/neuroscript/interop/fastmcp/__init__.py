"""FastMCP both ways: an engine's tools for its servers, and the tools of a server in this process under our contract.

Each name is loaded when it is first asked for, and needs the extra ``fastmcp``.

Source: issue "MCP and the frameworks"; FastMCP 4.1, "Tools".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy

if TYPE_CHECKING:
    from neuroscript.interop.fastmcp.export import to_fastmcp
    from neuroscript.interop.fastmcp.load import from_fastmcp

__all__ = ["from_fastmcp", "to_fastmcp"]

__getattr__ = lazy(__name__, {"export": "to_fastmcp", "load": "from_fastmcp"})
