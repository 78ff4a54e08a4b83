"""Export tools to Smith: the METADATA of a tool, and a ``registry.json``."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from neuroscript.errors import SpecError
from neuroscript.interop.agentheaven.schemas import arguments_schema
from neuroscript.interop.smith.registry import ToolsRegistry
from neuroscript.io.text import quote_path, quote_untrusted
from neuroscript.io.text_files import write_atomically
from neuroscript.llm.wire.tools import tool_description
from neuroscript.tools.tool import ToolImplementation

VERSION: Final = "1.0"

DANGEROUS_EFFECTS: Final = frozenset({"writes", "deletes", "exec"})
"""Effects that make a tool dangerous in Smith; a tool that requires approval or trust is dangerous too."""


def metadata_of(tool: ToolImplementation, *, function: str = "") -> dict[str, Any]:
    """Return the METADATA of a tool, so that Smith's planner can use it.

    Args:
        function: The name of its function in Smith; the default is ``run_`` plus the tool name.
    """
    needs, name = tool.policy, tool.spec.wire_name
    dangerous = needs.requires_approval or needs.requires_trust or not DANGEROUS_EFFECTS.isdisjoint(needs.effects)
    return {
        "name": name,
        "function": function or f"run_{name}",
        "description": tool_description(tool.spec),
        "dangerous": dangerous,
        "parameters": {"type": "object", "properties": {}, **arguments_schema(tool.spec)},
    }


def write_registry(path: str | os.PathLike[str], tools: ToolsRegistry | Iterable[ToolImplementation]) -> None:
    """Write a ``registry.json`` atomically: the METADATA of each tool, and the ``module`` of its file.

    Args:
        tools: A registry from `load_folder` or `load_registry`, or any tools, which have no file.

    Raises:
        SpecError: Two tools have the same name; nothing is written.
        OSError: The file cannot be written.
    """
    entries = tools.get_tools_registry() if isinstance(tools, ToolsRegistry) else [*map(metadata_of, tools)]
    counts = Counter(str(each["name"]) for each in entries)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise SpecError(
            quote_path(os.fspath(path)), [f"several tools have the name {quote_untrusted(name)}" for name in twice]
        )
    data = {"version": VERSION, "auto_generated": True, "tools": entries}
    write_atomically(path, f"{json.dumps(data, indent=2)}\n")
