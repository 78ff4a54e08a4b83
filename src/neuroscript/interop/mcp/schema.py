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
from neuroscript.spec.tool_spec import DEFINITION, ToolSpec

CHANGING: Final = frozenset({"writes", "deletes", "exec"})
"""Effects that change something."""

WIDE: Final = frozenset({"net", "exec", "model"})
"""Effects beyond this machine."""

OUTSIDERS: Final = ("untrusted", "outside", "public")
"""Labels and sinks that involve people outside the user's organization."""

WRAPPED: Final = "result"
"""The key for a result that is not an object, as in the SDKs; the protocol requires an object."""


FASTMCP_MARK: Final = "x-fastmcp-wrap-result"
"""The keyword with which servers of FastMCP mark the schema of a nested result."""

FASTMCP_WRAPPED: Final[Mapping[str, Any]] = {"fastmcp": {"wrap_result": True}}
"""The metadata with which they mark such a result."""


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
    facts: dict[str, Any] = {
        "name": name,
        "title": title_of(spec),
        "description": description_of(spec) or None,
        "inputSchema": arguments_schema(spec),
        "outputSchema": output_schema(spec) if structured else None,
        "annotations": annotations_of(spec, getattr(tool, "policy", ToolPolicy())) or None,
        **{key: definition_of(spec).get(key) for key in ("icons", "_meta")},
    }
    return {key: each for key, each in facts.items() if each is not None}


def definition_of(spec: ToolSpec) -> Mapping[str, Any]:
    """Return the definition on the MCP server that a tool comes from, or an empty map for other tools."""
    found: Mapping[str, Any] = spec.exports.get(DEFINITION, {})
    return found


def title_of(spec: ToolSpec) -> str | None:
    """Return the title that a client shows; a tool of an MCP server has one only if the server says it."""
    return definition_of(spec).get("title") if spec.definition else spec.full_name


def description_of(spec: ToolSpec) -> str:
    """Return the description that a model reads; ``""`` if it would only repeat the title of a server's tool."""
    definition = definition_of(spec)
    text = tool_description(spec)
    return "" if definition and "description" not in definition and text == definition.get("title") else text


def arguments_schema(spec: ToolSpec) -> Mapping[str, Any]:
    """Return the schema of the arguments; for a server's tool that of the server, unless the host has hidden some."""
    schema: Mapping[str, Any] | None = definition_of(spec).get("inputSchema")
    if schema is None or {*schema.get("properties", {})} != {arg.name for arg in spec.args}:
        return input_schema(spec)
    return schema


def annotations_of(spec: ToolSpec, policy: ToolPolicy) -> Mapping[str, Any]:
    """Return the annotations for clients: those of a trusted MCP server, otherwise what the policy declares."""
    known: Mapping[str, Any] | None = definition_of(spec).get("annotations")
    return hints_of(policy) if known is None else known


def output_schema(spec: ToolSpec) -> dict[str, Any] | None:
    """Return the schema of a tool's structured result, or None for bytes and `any`, which are sent only as content.

    The schema always has a type; a result that is not an object is nested under `WRAPPED`. A tool of an MCP server has
    the schema of the server.

    >>> output_schema(ToolSpec("ping", "net", return_type=ArgType.FLOAT))["properties"]
    {'result': {'type': 'number'}}
    """
    if spec.definition:
        return definition_of(spec).get("outputSchema")
    if spec.return_type is ArgType.BLOB and not spec.stream:
        return None
    if spec.return_type is ArgType.ANY and spec.returns is None:
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
    if spec.definition:
        return wraps(definition_of(spec).get("outputSchema") or {})
    return bool(spec.stream) or result_schema(spec).get("type") != "object"


def wraps(schema: Mapping[str, Any]) -> bool:
    """Return whether an output schema nests every result under `WRAPPED`."""
    properties = schema.get("properties")
    return isinstance(properties, dict) and [*properties] == [WRAPPED] and schema.get("required") == [WRAPPED]


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
