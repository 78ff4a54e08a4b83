"""Function declarations for Google's Gemini API.

They use ``parametersJsonSchema``, which accepts any JSON Schema. The older ``parameters`` accepts only a subset of
OpenAPI 3.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from neuroscript.llm.wire.tools import input_schema, make_definitions, tool_description
from neuroscript.runtime.wire_names import WireNames
from neuroscript.spec.tool_spec import ToolSpec


def to_tools(tools: Iterable[Any], *, names: WireNames | None = None) -> list[Any]:
    """Return the value of ``tools`` in a request: one entry with all declarations, or an empty list without tools.

    Args:
        tools: Each a `ToolImplementation`, a `ToolInfo` or a `ToolSpec`.
        names: The names that the model uses; by default `WireNames.of` the tools.

    Returns:
        A new list. Its declarations are read-only and made once for each spec.

    Raises:
        RegistryError: If two tools would have the same name.

    >>> to_tools([ToolSpec("now", "time")])[0]["functionDeclarations"][0]["name"]
    'time__now'
    """
    found = make_definitions(tools, names, "gemini", _declaration)
    return [{"functionDeclarations": found}] if found else []


def tools(tools: Iterable[Any], names: WireNames) -> list[dict[str, Any]]:
    """Return the same as `to_tools`, with the signature that `Wire` needs."""
    return to_tools(tools, names=names)


def _declaration(spec: ToolSpec, name: str) -> dict[str, Any]:
    text = tool_description(spec)
    description = {"description": text} if text else {}
    return {"name": name, **description, "parametersJsonSchema": input_schema(spec)}
