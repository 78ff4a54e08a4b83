"""A tool of neurosurfer, and what it answers with, under the names of its document.

Source: neurosurfer's document of BaseTool; seed-systems.md rows NSF-28 to NSF-44.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import attrs

from neuroscript.interop.neurosurfer.tool_spec import ToolSpec


@attrs.define(slots=False)
class ToolResponse:
    """What a tool answers.

    Attributes:
        final_answer: Whether an agent is to stop here and present the observation.
        observation: What came of the call: a text, a plain value, or a generator whose items are read as they come.
        extras: What the next calls of tools get besides their inputs, by name.
    """

    final_answer: bool
    observation: Any
    extras: dict[str, Any] = attrs.field(factory=dict)


class BaseTool(ABC):
    """What all tools are made of; a subclass has a ``spec`` and a ``__call__``.

    Attributes:
        spec: What the tool promises. It is looked at here, and again where the tool is registered, for a subclass may
            have a constructor of its own.

    Raises:
        TypeError: There is no spec.
        ValueError: It is not well formed.
    """

    spec: ToolSpec

    def __init__(self) -> None:
        validated(self)

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> ToolResponse:
        """Carry out a call; inputs come by name, and so does what the host or an earlier call gives besides."""


def validated(tool: BaseTool) -> ToolSpec:
    """Return the spec of a tool, which is well formed.

    Raises:
        TypeError: There is none.
        ValueError: It is not well formed.
    """
    spec = getattr(tool, "spec", None)
    if not isinstance(spec, ToolSpec):
        raise TypeError(f"{type(tool).__name__} must define a ToolSpec 'spec'.")
    spec.validate()
    return spec
