"""The package ``llm``: an engine's tools for its models, and its tools and toolboxes under our contract.

Each name is loaded when it is first asked for, and needs the package, which is the extra ``llm``. What brings our tools
to the command ``llm`` is `neuroscript.cli.chat.llm_toolbox`.

Source: docs of ``llm``, "Tools", "Python API"; issue "MCP and the frameworks".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy

if TYPE_CHECKING:
    from neuroscript.interop.llm.export import CallFailed, to_llm
    from neuroscript.interop.llm.load import from_llm

__all__ = ["CallFailed", "from_llm", "to_llm"]

__getattr__ = lazy(__name__, {"export": "CallFailed to_llm", "load": "from_llm"})
