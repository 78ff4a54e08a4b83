"""Tools as Google's Gemini API is told of them: declarations of functions, their parameters as JSON Schema.

``parametersJsonSchema`` takes JSON Schema as it is; ``parameters``, the older member, knows only a part of OpenAPI 3.0.

Source: Gemini API reference, "Caching" (``FunctionDeclaration``); google-genai, ``types.FunctionDeclaration``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from neuroscript.llm.wire.tools import description, made, schema_of
from neuroscript.runtime.wire_names import WireNames
from neuroscript.spec.tool_spec import ToolSpec


def to_tools(tools: Iterable[Any], *, names: WireNames | None = None) -> list[dict[str, Any]]:
    """Return what stands under ``tools`` in a request: one entry with all declarations, or nothing without tools.

    Args:
        tools: Each a `ToolImplementation`, a `ToolInfo` or a `ToolSpec`.
        names: What the model calls them; by default `WireNames.of` them.

    Returns:
        A new list; the declarations are made once for each spec and can not be changed.

    Raises:
        RegistryError: Two of them would have one name.

    >>> to_tools([ToolSpec("now", "time")])[0]["functionDeclarations"][0]["name"]
    'time__now'
    """
    found = made(tools, names, "gemini", _told)
    return [{"functionDeclarations": found}] if found else []


def tools(tools: Iterable[Any], names: WireNames) -> list[dict[str, Any]]:
    """Return the same as `to_tools`, as a `Wire` has it."""
    return to_tools(tools, names=names)


def _told(spec: ToolSpec, name: str) -> dict[str, Any]:
    text = description(spec)
    said = {"description": text} if text else {}
    return {"name": name, **said, "parametersJsonSchema": schema_of(spec)}
