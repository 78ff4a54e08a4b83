"""Tools in the wire format of MCP, as plain data, without the SDK.

See MCP 2025-11-25, "Tools".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from neuroscript.coercion.plain_data import freeze
from neuroscript.coercion.types import ArgType
from neuroscript.formats.json_schema import result_schema
from neuroscript.llm.wire.tools import input_schema, tool_description
from neuroscript.policy.labels import is_covered
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.wire_names import WireNames, spec_of
from neuroscript.spec.tool_spec import ToolSpec

CHANGING: Final = frozenset({"writes", "deletes", "exec"})
"""Effects that change something."""

WIDE: Final = frozenset({"net", "exec", "model"})
"""Effects beyond this machine."""

OUTSIDERS: Final = ("untrusted", "outside", "public")
"""Labels and sinks that involve people outside the user's organization."""

WRAPPED: Final = "result"
"""The key for a result that is not an object, as in the SDKs; the protocol requires an object."""


def to_mcp(tools: Iterable[Any], *, names: WireNames | None = None, structured: bool = True) -> list[dict[str, Any]]:
    """Return the tools of a ``tools/list`` response.

    Args:
        tools: Each a `ToolImplementation`, a `ToolInfo` or a `ToolSpec`; a spec has no annotations about effects.
        names: The names for the client. The default is ``group__name``, because clients pass the names on to model
            APIs, which do not allow dots.
        structured: Include output schemas; pass False if results may be written to files, because they would not match.

    Returns:
        A new list; its items are shared and immutable.

    Raises:
        RegistryError: Two tools would have the same name, and *names* is not passed.

    >>> to_mcp([ToolSpec("ping", "net", description="Ask who is there.")])[0]["name"]
    'net__ping'
    """
    all_tools = list(tools)
    names = names or WireNames.of(all_tools)
    return [_tool(each, names.wire(spec_of(each).full_name), structured) for each in all_tools]


def _tool(tool: Any, name: str, structured: bool) -> dict[str, Any]:
    spec: ToolSpec = spec_of(tool)
    facts: dict[str, Any] = {"name": name, "title": spec.full_name}
    description = tool_description(spec)
    if description:
        facts["description"] = description
    facts["inputSchema"] = input_schema(spec)
    output = output_schema(spec) if structured else None
    if output is not None:
        facts["outputSchema"] = output
    hints = hints_of(getattr(tool, "policy", ToolPolicy()))
    if hints:
        facts["annotations"] = hints
    return facts


def output_schema(spec: ToolSpec) -> dict[str, Any] | None:
    """Return the schema of a tool's structured result, or None for bytes, which are sent only as content.

    The schema always has a type; a result that is not an object is nested under `WRAPPED`.

    >>> output_schema(ToolSpec("ping", "net", return_type=ArgType.FLOAT))["properties"]
    {'result': {'type': 'number'}}
    """
    if spec.return_type is ArgType.BLOB and not spec.stream:
        return None
    key = "mcp, output"
    if key not in spec.exports:
        spec.exports[key] = freeze(_output(spec))
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
    """Return whether a result is nested under `WRAPPED`, because it is not always an object."""
    return bool(spec.stream) or result_schema(spec).get("type") != "object"


def hints_of(policy: ToolPolicy) -> Mapping[str, bool]:
    """Return the MCP annotations for the effects and labels of a tool; a tool without effects has none.

    Clients treat a tool without annotations as destructive and open-world, which is the safe default. A tool with the
    effect ``net`` is read-only only if it also has ``reads``.

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
        "openWorldHint": not effects.isdisjoint(WIDE) or _reaches_outsiders(policy),
    }


def _reaches_outsiders(policy: ToolPolicy) -> bool:
    """Return whether a tool declares that outsiders write its results or receive its arguments."""
    return any(is_covered(label, OUTSIDERS) for label in (*(policy.sources or ()), *(policy.sinks or ())))
