"""A collection of neurosurfer tools by name, and their description for a model."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from neuroscript.interop.neurosurfer.base_tool import BaseTool, validate_tool
from neuroscript.interop.neurosurfer.tool_spec import ToolSpec


class Toolkit:
    """Tools, each under the name in its spec.

    Args:
        tools: The initial tools.
        logger: Logs each registered tool; the default is the logger of this module.

    Attributes:
        registry: The tools by name.
        specs: The specs by name.

    Raises:
        TypeError: One of them is not a tool.
        ValueError: A spec is invalid, or two tools have the same name.
    """

    def __init__(self, tools: Iterable[BaseTool] = (), logger: logging.Logger | None = None) -> None:
        self.logger = logger or logging.getLogger(__name__)
        self.registry: dict[str, BaseTool] = {}
        self.specs: dict[str, ToolSpec] = {}
        for each in tools:
            self.register_tool(each)

    def register_tool(self, tool: BaseTool) -> None:
        """Register a tool and validate its spec, regardless of what its constructor did."""
        if not isinstance(tool, BaseTool):
            raise TypeError(f"Invalid tool type: {type(tool).__name__}. Expected a subclass of BaseTool.")
        spec = validate_tool(tool)
        if spec.name in self.registry:
            raise ValueError(f"Tool '{spec.name}' is already registered.")
        self.registry[spec.name] = tool
        self.specs[spec.name] = spec
        self.logger.info("Registered tool: %s", spec.name)

    def get_tools_description(self) -> str:
        """Return the description of all tools for a model, as Markdown."""
        return "\n".join(map(_described, self.specs.values()))


def _described(spec: ToolSpec) -> str:
    inputs = [
        f"- `{each.name}`: {each.type} ({'required' if each.required else 'optional'}) — {each.description}"
        for each in spec.inputs
    ]
    lines = [f"### `{spec.name}`", spec.description, f"**When to use**: {spec.when_to_use}", "**Inputs**:", *inputs]
    return "\n".join([*lines, f"**Returns**: {spec.returns.type} — {spec.returns.description}\n"])
