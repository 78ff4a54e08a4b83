"""Tools as OpenAI's APIs are told of them.

Source: OpenAI API reference, "Chat Completions" and "Responses", ``tools``; issue "Models", model APIs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from neuroscript.llm.wire.openai.strict import strict_schema
from neuroscript.llm.wire.tools import description, made, schema_of
from neuroscript.runtime.wire_names import WireNames
from neuroscript.spec.tool_spec import ToolSpec

Api = Literal["chat", "responses"]
"""Which of the two APIs is meant."""

LONGEST: Final = 1_024
"""How many characters the description of a tool may have."""

NOT_AT_THE_ROOT: Final = frozenset({"allOf", "anyOf", "enum", "not", "oneOf"})
"""What the APIs refuse beside the ``type`` of all arguments, strict or not."""


def to_tools(
    tools: Iterable[Any], *, api: Api = "chat", strict: bool = True, names: WireNames | None = None
) -> list[dict[str, Any]]:
    """Return what stands under ``tools`` in a request.

    Args:
        tools: Each a `ToolImplementation`, a `ToolInfo` or a `ToolSpec`.
        api: Which API the request is for.
        strict: Whether strict mode is asked for where a tool can be told so, as `strict_schema` says.
        names: What the model calls the tools; by default as the rule spells them.

    Returns:
        A list of your own. What it holds is made once for each spec, is shared and can not be changed.

    Raises:
        RegistryError: Two tools would have one name.

    >>> to_tools([ToolSpec("ping", "net", description="Ask who is there.")], api="responses", strict=False)[0]["name"]
    'net__ping'
    """
    key = f"openai, {api}, {'strict' if strict else 'lax'}"
    return made(tools, names, key, lambda spec, name: _tool(spec, name, api, strict))


def _tool(spec: ToolSpec, name: str, api: Api, strict: bool) -> dict[str, Any]:
    """Return one tool; Responses takes what says nothing of strict for strict, so it is always told."""
    schema = strict_schema(spec) if strict else None
    facts: dict[str, Any] = {"name": name}
    told = description(spec)
    if told:
        facts["description"] = told if len(told) <= LONGEST else f"{told[: LONGEST - 1]}…"
    facts["parameters"] = _lax(schema_of(spec)) if schema is None else schema
    facts["strict"] = schema is not None
    return {"type": "function", **facts} if api == "responses" else {"type": "function", "function": facts}


def _lax(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema as it is, but for what the APIs refuse at its root, which the line asks of each call anyway."""
    if "properties" in schema and NOT_AT_THE_ROOT.isdisjoint(schema):
        return schema
    return {"properties": {}, **{word: each for word, each in schema.items() if word not in NOT_AT_THE_ROOT}}
