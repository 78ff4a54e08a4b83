"""The package ``llm``: an engine's tools for its models, and its tools and toolboxes under our contract.

Each name is loaded when it is first asked for, and needs the package, which is the extra ``llm``. What brings our tools
to the command ``llm`` is `neuroscript.cli.llm_toolbox`.

Source: docs of ``llm``, "Tools", "Python API"; issue "MCP and the frameworks".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript.lazily import lazy

if TYPE_CHECKING:
    from neuroscript.interop.llm.giving import CallFailed, to_llm
    from neuroscript.interop.llm.taking import from_llm

__all__ = ["CallFailed", "from_llm", "to_llm"]

__getattr__ = lazy(__name__, {"giving": "CallFailed to_llm", "taking": "from_llm"})
