"""Smith integration: load tool files with METADATA, and use its registry and its plans.

Names are imported lazily.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.interop.smith.export import metadata_of, write_registry
    from neuroscript.interop.smith.json_values import payload_of
    from neuroscript.interop.smith.load import from_smith, load_file
    from neuroscript.interop.smith.metadata import problems_of
    from neuroscript.interop.smith.plan_check import plan_problems, read_plan
    from neuroscript.interop.smith.plan_conversion import plan_data
    from neuroscript.interop.smith.planner import plan_task
    from neuroscript.interop.smith.references import referred_steps, resolve
    from neuroscript.interop.smith.registry import ToolsRegistry, load_folder, load_registry

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
    "resolve",
    "write_registry",
]

__getattr__ = lazy_getattr(
    __name__,
    {
        "export": "metadata_of write_registry",
        "json_values": "payload_of",
        "load": "from_smith load_file",
        "metadata": "problems_of",
        "plan_check": "plan_problems read_plan",
        "plan_conversion": "plan_data",
        "planner": "plan_task",
        "references": "referred_steps resolve",
        "registry": "ToolsRegistry load_folder load_registry",
    },
)
