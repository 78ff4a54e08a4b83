"""Tool definitions for OpenAI's APIs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from neuroscript.llm.wire.openai.strict import strict_schema
from neuroscript.llm.wire.tools import input_schema, make_definitions, tool_description
from neuroscript.runtime.wire_names import WireNames
from neuroscript.spec.tool_spec import ToolSpec

Api = Literal["chat", "responses"]
"""One of the two APIs."""

MAX_DESCRIPTION_CHARS: Final = 1_024
"""Maximum characters of a tool's description."""

NOT_AT_THE_ROOT: Final = frozenset({"allOf", "anyOf", "enum", "not", "oneOf"})
"""Keywords that the APIs reject at the root of a schema, in strict mode or not."""


def to_tools(
    tools: Iterable[Any], *, api: Api = "chat", strict: bool = True, names: WireNames | None = None
) -> list[Any]:
    """Return the value of ``tools`` in a request.

    Args:
        tools: Each a `ToolImplementation`, a `ToolInfo` or a `ToolSpec`.
        api: The API of the request.
        strict: Whether to use strict mode for tools that `strict_schema` supports.
        names: The names that the model uses; by default `WireNames.of` the tools.

    Returns:
        A new list. Its items are read-only and made once for each spec.

    Raises:
        RegistryError: If two tools would have the same name.

    >>> to_tools([ToolSpec("ping", "net", description="Ask who is there.")], api="responses", strict=False)[0]["name"]
    'net__ping'
    """
    key = f"openai, {api}, {'strict' if strict else 'lax'}"
    return make_definitions(tools, names, key, lambda spec, name: _tool(spec, name, api, strict))


def _tool(spec: ToolSpec, name: str, api: Api, strict: bool) -> dict[str, Any]:
    """Return one tool; ``strict`` is always set, because Responses treats a missing value as true."""
    schema = strict_schema(spec) if strict else None
    facts: dict[str, Any] = {"name": name}
    description = tool_description(spec)
    if description:
        facts["description"] = (
            description if len(description) <= MAX_DESCRIPTION_CHARS else f"{description[: MAX_DESCRIPTION_CHARS - 1]}…"
        )
    facts["parameters"] = _lax(input_schema(spec)) if schema is None else schema
    facts["strict"] = schema is not None
    return {"type": "function", **facts} if api == "responses" else {"type": "function", "function": facts}


def _lax(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema without the root keywords that the APIs reject; the call pipeline enforces those anyway."""
    if "properties" in schema and NOT_AT_THE_ROOT.isdisjoint(schema):
        return schema
    return {"properties": {}, **{word: each for word, each in schema.items() if word not in NOT_AT_THE_ROOT}}
