"""The base class of neurosurfer tools and their response, as neurosurfer documents them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import attrs

from neuroscript.interop.neurosurfer.tool_spec import ToolSpec


@attrs.define(slots=False)
class ToolResponse:
    """The response of a tool.

    Attributes:
        final_answer: Whether the agent should stop and present the observation.
        observation: The result: a string, plain data, or a generator whose items are read one by one.
        extras: Additional arguments for the next tool calls, by name.
    """

    final_answer: bool
    observation: Any
    extras: dict[str, Any] = attrs.field(factory=dict)


class BaseTool(ABC):
    """The base class of tools; a subclass defines ``spec`` and ``__call__``.

    Attributes:
        spec: The spec of the tool. It is validated by the constructor, and again at registration, because a subclass
            may override the constructor.

    Raises:
        TypeError: The class has no spec.
        ValueError: The spec is invalid.
    """

    spec: ToolSpec

    def __init__(self) -> None:
        validate_tool(self)

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> ToolResponse:
        """Run the tool; inputs and additional arguments from the host or an earlier call are passed by name."""


def validate_tool(tool: BaseTool) -> ToolSpec:
    """Return the validated spec of a tool.

    Raises:
        TypeError: The tool has no spec.
        ValueError: The spec is invalid.
    """
    spec = getattr(tool, "spec", None)
    if not isinstance(spec, ToolSpec):
        raise TypeError(f"{type(tool).__name__} must define a ToolSpec 'spec'.")
    spec.validate()
    return spec
