"""The schemas of a tool as JSON text: JSON Schema, and the definitions for OpenAI's API and MCP."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from neuroscript.coercion.plain_data import to_plain
from neuroscript.errors import NeuroScriptError
from neuroscript.formats.json_schema import result_schema, spec_to_schema
from neuroscript.interop.mcp.schema import to_mcp
from neuroscript.llm.wire.openai import to_tools
from neuroscript.tools.tool import ToolImplementation

MAX_CHARS: Final = 100_000

_FORMATS: Final[tuple[tuple[str, str, Callable[[ToolImplementation], Any]], ...]] = (
    ("json-schema", "JSON Schema of the arguments", lambda tool: spec_to_schema(tool.spec, exact=False)),
    ("result-schema", "JSON Schema of the result", lambda tool: result_schema(tool.spec)),
    ("openai", "OpenAI", lambda tool: to_tools([tool])[0]),
    ("mcp", "MCP", lambda tool: to_mcp([tool])[0]),
)


def schemas_of(tool: ToolImplementation) -> tuple[tuple[str, str, str], ...]:
    """Return the id, the title and the text of each schema. Defaults of secret arguments are left out."""
    return tuple((id, title, _text(tool, make)) for id, title, make in _FORMATS)


def _text(tool: ToolImplementation, make: Callable[[ToolImplementation], Any]) -> str:
    try:
        text = json.dumps(_without_secrets(to_plain(make(tool))), indent=2, ensure_ascii=False)
    except NeuroScriptError as error:
        return str(error)
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}\n… {len(text) - MAX_CHARS:,} more characters"


def _without_secrets(data: Any, *, is_secret: bool = False) -> Any:
    """Return a schema without the defaults, constants and choices of secrets."""
    if isinstance(data, list):
        return [_without_secrets(each, is_secret=is_secret) for each in data]
    if not isinstance(data, dict):
        return data
    is_secret = is_secret or data.get("writeOnly") is True
    left_out = VALUES if is_secret else ()
    return {key: _without_secrets(each, is_secret=is_secret) for key, each in data.items() if key not in left_out}


VALUES: Final = ("default", "const", "enum", "examples")
"""Keywords whose values are values of the argument."""
