"""Tools as MCP tells of them: plain data in the words of the protocol, made without its SDK.

Source: MCP 2025-11-25, "Tools"; seed-systems.md AH-33 and part 3; issue "MCP", annotations from effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from neuroscript.coercion.plain_data import sealed
from neuroscript.coercion.types import ArgType
from neuroscript.formats.json_schema import result_schema
from neuroscript.llm.wire.tools import description, schema_of
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.wire_names import WireNames, spec_of
from neuroscript.spec.tool_spec import ToolSpec

CHANGING: Final = frozenset({"writes", "deletes", "exec"})
"""Effects that change something."""

WIDE: Final = frozenset({"net", "exec", "model"})
"""Effects on more than this machine's own world."""

WRAPPED: Final = "result"
"""Under which key a result stands that is no object, as with the SDKs: the protocol had no other place."""


def to_mcp(tools: Iterable[Any], *, names: WireNames | None = None, structured: bool = True) -> list[dict[str, Any]]:
    """Return what ``tools/list`` answers.

    Args:
        tools: Each a `ToolImplementation`, a `ToolInfo` or a `ToolSpec`; of a spec alone nothing is said of effects.
        names: What a client calls the tools; by default as the rule spells them, ``group__name``, for clients hand the
            names on to the APIs of models, which take no dot.
        structured: Whether their results have schemas; where results may go to files, none holds.

    Returns:
        A list of your own. What it holds is shared and can not be changed.

    Raises:
        RegistryError: Two tools would have one name, where no *names* are given.

    >>> to_mcp([ToolSpec("ping", "net", description="Ask who is there.")])[0]["name"]
    'net__ping'
    """
    given = list(tools)
    names = names or WireNames.of(given)
    return [_tool(each, names.wire(spec_of(each).full_name), structured) for each in given]


def _tool(tool: Any, name: str, structured: bool) -> dict[str, Any]:
    spec: ToolSpec = spec_of(tool)
    facts: dict[str, Any] = {"name": name, "title": spec.full_name}
    told = description(spec)
    if told:
        facts["description"] = told
    facts["inputSchema"] = schema_of(spec)
    output = output_schema(spec) if structured else None
    if output is not None:
        facts["outputSchema"] = output
    hints = hints_of(getattr(tool, "policy", ToolPolicy()))
    if hints:
        facts["annotations"] = hints
    return facts


def output_schema(spec: ToolSpec) -> dict[str, Any] | None:
    """Return the schema of a tool's structured result, or None where it has none: bytes stand in its content alone.

    What is no object stands under `WRAPPED`, and there is always a type.

    >>> output_schema(ToolSpec("ping", "net", return_type=ArgType.FLOAT))["properties"]
    {'result': {'type': 'number'}}
    """
    if spec.return_type is ArgType.BLOB and not spec.stream:
        return None
    key = "mcp, output"
    if key not in spec.exports:
        spec.exports[key] = sealed(_output(spec))
    schema: dict[str, Any] = spec.exports[key]
    return schema


def _output(spec: ToolSpec) -> dict[str, Any]:
    schema = result_schema(spec)
    if spec.stream is True:
        schema = {"type": "array", "items": schema}
    if not is_wrapped(spec):
        return schema
    return {"type": "object", "properties": {WRAPPED: schema}, "required": [WRAPPED], "additionalProperties": False}


def is_wrapped(spec: ToolSpec) -> bool:
    """Tell whether a result stands under `WRAPPED`, for not every one is an object."""
    return bool(spec.stream) or result_schema(spec)["type"] != "object"


def hints_of(policy: ToolPolicy) -> Mapping[str, bool]:
    """Return what a client may think of a tool by its effects; of one that states none nothing is said.

    A client takes a tool of which nothing is said for one that destroys and reaches out, which is the careful guess.
    What asks of the net is only read-only where it says that it reads.

    >>> dict(hints_of(ToolPolicy(effects=("pure",))))
    {'readOnlyHint': True, 'destructiveHint': False, 'idempotentHint': True, 'openWorldHint': False}
    """
    effects = frozenset(policy.effects)
    if not effects:
        return {}
    reads = effects.isdisjoint(CHANGING) and not ("net" in effects and "reads" not in effects)
    return {
        "readOnlyHint": reads,
        "destructiveHint": not reads,
        "idempotentHint": not effects.isdisjoint({"pure", "idempotent"}),
        "openWorldHint": not effects.isdisjoint(WIDE),
    }
