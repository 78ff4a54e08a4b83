"""Neurosurfer integration: its documented tool classes, and loading of tools, including those of the package itself.

Names are imported lazily. The modules are named as in neurosurfer's documentation, so that
``from neurosurfer.tools.tool_spec import …`` becomes ``from neuroscript.interop.neurosurfer.tool_spec import …``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.interop.neurosurfer.base_tool import BaseTool, ToolResponse
    from neuroscript.interop.neurosurfer.invoke import Invoker
    from neuroscript.interop.neurosurfer.load import from_neurosurfer
    from neuroscript.interop.neurosurfer.tool_spec import ToolParam, ToolReturn, ToolSpec
    from neuroscript.interop.neurosurfer.toolkit import Toolkit

__all__ = [
    "BaseTool",
    "Invoker",
    "ToolParam",
    "ToolResponse",
    "ToolReturn",
    "ToolSpec",
    "Toolkit",
    "from_neurosurfer",
]

__getattr__ = lazy_getattr(
    __name__,
    {
        "base_tool": "BaseTool ToolResponse",
        "invoke": "Invoker",
        "load": "from_neurosurfer",
        "tool_spec": "ToolParam ToolReturn ToolSpec",
        "toolkit": "Toolkit",
    },
)
