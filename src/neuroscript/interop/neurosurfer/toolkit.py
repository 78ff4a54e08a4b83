"""Tools of neurosurfer by their names, and what a model is told of them.

Source: neurosurfer's document of Toolkit; seed-systems.md rows NSF-49 to NSF-55.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from neuroscript.interop.neurosurfer.base_tool import BaseTool, validated
from neuroscript.interop.neurosurfer.tool_spec import ToolSpec


class Toolkit:
    """Tools, each under the name of its spec.

    Args:
        tools: Those to begin with.
        logger: Who is told of each tool that comes; by default the logger of this module.

    Attributes:
        registry: The tools by name.
        specs: What they promise, by name.

    Raises:
        TypeError: One of them is no tool.
        ValueError: A spec is not well formed, or two tools have one name.
    """

    def __init__(self, tools: Iterable[BaseTool] = (), logger: logging.Logger | None = None) -> None:
        self.logger = logger or logging.getLogger(__name__)
        self.registry: dict[str, BaseTool] = {}
        self.specs: dict[str, ToolSpec] = {}
        for each in tools:
            self.register_tool(each)

    def register_tool(self, tool: BaseTool) -> None:
        """Take a tool; its spec is looked at, whatever its constructor has done."""
        if not isinstance(tool, BaseTool):
            raise TypeError(f"Invalid tool type: {type(tool).__name__}. Expected a subclass of BaseTool.")
        spec = validated(tool)
        if spec.name in self.registry:
            raise ValueError(f"Tool '{spec.name}' is already registered.")
        self.registry[spec.name] = tool
        self.specs[spec.name] = spec
        self.logger.info("Registered tool: %s", spec.name)

    def get_tools_description(self) -> str:
        """Return what a model is told of all tools, as Markdown."""
        return "\n".join(map(_described, self.specs.values()))


def _described(spec: ToolSpec) -> str:
    inputs = [
        f"- `{each.name}`: {each.type} ({'required' if each.required else 'optional'}) — {each.description}"
        for each in spec.inputs
    ]
    lines = [f"### `{spec.name}`", spec.description, f"**When to use**: {spec.when_to_use}", "**Inputs**:", *inputs]
    return "\n".join([*lines, f"**Returns**: {spec.returns.type} — {spec.returns.description}\n"])
