"""What a tool of neurosurfer is called, takes and gives, under the names of its document.

Source: neurosurfer's document of ToolSpec; seed-systems.md rows NSF-2 to NSF-27.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

FITS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "str": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
"""By the word of each type which values are of it; ``str`` is another word for ``string``."""


@attrs.define(slots=False)
class ToolParam:
    """One input of a tool.

    Attributes:
        name: The keyword by which it is given.
        type: One of ``string``, ``integer``, ``number``, ``boolean``, ``array``, ``object``.
        description: What it is.
        required: Whether it must be given.
    """

    name: str
    type: str
    description: str
    required: bool = True


@attrs.define(slots=False)
class ToolReturn:
    """What a tool gives.

    Attributes:
        type: One of the types of a `ToolParam`.
        description: What it means.
    """

    type: str
    description: str


@attrs.define(slots=False)
class ToolSpec:
    """What a tool promises; nothing of it is looked at before `validate`, or before the tool is registered.

    Attributes:
        name: What it is called, once in a toolkit.
        description: What it does.
        when_to_use: When it is the right one.
        inputs: What it takes, at least one.
        returns: What it gives.
    """

    name: str
    description: str
    when_to_use: str
    inputs: list[ToolParam]
    returns: ToolReturn

    def validate(self) -> None:
        """Look whether the spec is well formed.

        Raises:
            ValueError: With what is wrong with it first.
        """
        if not all(each and isinstance(each, str) for each in (self.name, self.description, self.when_to_use)):
            raise ValueError("ToolSpec must have name, description, when_to_use.")
        if not self.inputs:
            raise ValueError(f"ToolSpec({self.name}) must define at least one input param.")
        try:
            self._look()
        except (AttributeError, TypeError):
            raise ValueError(f"{self.name} must have ToolParams as inputs and a ToolReturn as returns.") from None

    def _look(self) -> None:
        names: set[str] = set()
        for each in self.inputs:
            self._support(each.name, each.type)
            if not each.name:
                raise ValueError(f"{self.name} has an input with empty name.")
            if not isinstance(each.name, str):
                raise ValueError(f"{self.name} has an input whose name is no text.")
            if each.name in names:
                raise ValueError(f"{self.name} has duplicate input '{each.name}'.")
            names.add(each.name)
        self._support("returns", self.returns.type)

    def _support(self, where: str, kind: object) -> None:
        if not isinstance(kind, str) or kind not in FITS:
            raise ValueError(f"{self.name}.{where} has unsupported type '{kind}'.")

    def check_inputs(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Return *raw* itself, if it is what the tool takes; nothing in it is converted.

        Raises:
            ValueError: With the first of what is missing, what is not known, and what is of another type.
        """
        if not isinstance(raw, dict):
            raise ValueError(f"Inputs for {self.name} expected object, got {type(raw).__name__}")
        for each in self.inputs:
            if each.required and each.name not in raw:
                raise ValueError(f"Missing required input: {each.name}")
        extras = raw.keys() - {each.name for each in self.inputs}
        if extras:
            raise ValueError(f"Unexpected inputs for {self.name}: {sorted(extras, key=str)}")
        for each in self.inputs:
            if each.name in raw and not FITS[each.type](raw[each.name]):
                raise ValueError(f"Input '{each.name}' expected {each.type}, got {type(raw[each.name]).__name__}")
        return raw

    def to_json(self) -> dict[str, Any]:
        """Return the spec as plain data that JSON can hold."""
        return {
            "name": self.name,
            "description": self.description,
            "when_to_use": self.when_to_use,
            "inputs": [
                {"name": each.name, "type": each.type, "description": each.description, "required": each.required}
                for each in self.inputs
            ],
            "returns": {"type": self.returns.type, "description": self.returns.description},
        }
