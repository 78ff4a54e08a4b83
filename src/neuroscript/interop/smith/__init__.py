"""Smith's tools: files with METADATA and a function under our contract and our policy; its registry, and its plans.

Each name is loaded when it is first asked for.

Source: Smith's document of tools; seed-systems.md rows SM-1 to SM-64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript.lazily import lazy

if TYPE_CHECKING:
    from neuroscript.interop.smith.checking import problems_of
    from neuroscript.interop.smith.converting import plan_data
    from neuroscript.interop.smith.giving import metadata_of, write_registry
    from neuroscript.interop.smith.payloads import payload_of
    from neuroscript.interop.smith.planning import plan_task
    from neuroscript.interop.smith.plans import plan_problems, read_plan
    from neuroscript.interop.smith.references import referred_steps, resolved
    from neuroscript.interop.smith.registry import ToolsRegistry, load_folder, load_registry
    from neuroscript.interop.smith.taking import from_smith, load_file

__all__ = [
    "ToolsRegistry",
    "from_smith",
    "load_file",
    "load_folder",
    "load_registry",
    "metadata_of",
    "payload_of",
    "plan_data",
    "plan_problems",
    "plan_task",
    "problems_of",
    "read_plan",
    "referred_steps",
    "resolved",
    "write_registry",
]

__getattr__ = lazy(
    __name__,
    {
        "checking": "problems_of",
        "converting": "plan_data",
        "giving": "metadata_of write_registry",
        "payloads": "payload_of",
        "planning": "plan_task",
        "plans": "plan_problems read_plan",
        "references": "referred_steps resolved",
        "registry": "ToolsRegistry load_folder load_registry",
        "taking": "from_smith load_file",
    },
)
