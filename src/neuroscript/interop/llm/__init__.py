"""Integration with the package ``llm``: export tools to its models, and load its tools and toolboxes.

Names are imported lazily and need the package; install the extra ``llm``. `neuroscript.cli.chat.llm_toolbox` makes our
tools available to the ``llm`` command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.interop.llm.export import CallFailed, to_llm
    from neuroscript.interop.llm.load import from_llm

__all__ = ["CallFailed", "from_llm", "to_llm"]

__getattr__ = lazy_getattr(__name__, {"export": "CallFailed to_llm", "load": "from_llm"})
