"""The spec of a neurosurfer tool, as neurosurfer documents it."""

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
"""Checks of values by type name; ``str`` is an alias of ``string``."""


@attrs.define(slots=False)
class ToolParam:
    """One input of a tool.

    Attributes:
        name: The keyword under which it is passed.
        type: One of ``string``, ``integer``, ``number``, ``boolean``, ``array``, ``object``.
        description: What it means.
        required: Whether it is required.
    """

    name: str
    type: str
    description: str
    required: bool = True


@attrs.define(slots=False)
class ToolReturn:
    """The return value of a tool.

    Attributes:
        type: One of the types of a `ToolParam`.
        description: What it means.
    """

    type: str
    description: str


@attrs.define(slots=False)
class ToolSpec:
    """The spec of a tool; it is not validated before `validate` or the registration of the tool.

    Attributes:
        name: Its name, unique in a toolkit.
        description: What it does.
        when_to_use: When to use it.
        inputs: Its inputs, at least one.
        returns: Its return value.
    """

    name: str
    description: str
    when_to_use: str
    inputs: list[ToolParam]
    returns: ToolReturn

    def validate(self) -> None:
        """Validate the spec.

        Raises:
            ValueError: With the first problem found.
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
                raise ValueError(f"{self.name} has an input whose name is not a string.")
            if each.name in names:
                raise ValueError(f"{self.name} has duplicate input '{each.name}'.")
            names.add(each.name)
        self._support("returns", self.returns.type)

    def _support(self, where: str, kind: object) -> None:
        if not isinstance(kind, str) or kind not in FITS:
            raise ValueError(f"{self.name}.{where} has unsupported type '{kind}'.")

    def check_inputs(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Return *raw* unchanged if it is valid input for the tool; nothing is converted.

        Raises:
            ValueError: With the first missing input, unknown inputs, or the first input of the wrong type.
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
        """Return the spec as plain JSON data."""
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
