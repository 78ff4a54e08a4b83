"""Conversion of handles to MCP and FastMCP tools, and of their tools to handles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from neuroscript._imports import missing_extra
from neuroscript.coercion.plain_data import to_plain
from neuroscript.engine.engine import Engine
from neuroscript.errors import SpecError
from neuroscript.interop.agentheaven.result import wrap, wrapped_schema
from neuroscript.interop.mcp.client.accepted_definitions import Definition
from neuroscript.interop.mcp.client.definition import Trust, single_tool
from neuroscript.interop.mcp.client.host_services import HostClient, find_definition, host_client
from neuroscript.interop.mcp.schema import to_mcp
from neuroscript.interop.mcp.server.results import to_result
from neuroscript.llm.offered_tools import OfferedTool
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.runtime.interfaces import ToolResult
from neuroscript.runtime.wire_names import WireNames
from neuroscript.tools.tool import ToolImplementation

Schema = Mapping[str, Any]


def names_of(tool: ToolImplementation, name: str) -> WireNames:
    """Return the client's name for a single tool."""
    return WireNames({tool.name: name}, {name: tool.name})


def mcp_tool(tool: ToolImplementation, name: str, arguments: Schema, output: Schema | None) -> Any:
    """Return a tool as an ``mcp.types.Tool`` of the SDK.

    Args:
        name: The name for clients.
        arguments: The schema of the arguments.
        output: The schema of the result, if the author supplies one.
    """
    try:
        from mcp_types import Tool
    except ImportError as error:
        raise missing_extra("ToolSpec.to_mcp needs the SDK of MCP", "mcp", error) from None
    (facts,) = to_mcp([tool], names=names_of(tool, name))
    facts |= {"inputSchema": dict(arguments), "title": name}
    if output is not None:
        facts["outputSchema"] = wrapped_schema(output)
    return Tool.model_validate(facts)


def fastmcp_tool(engine: Engine, tool: ToolImplementation, name: str, arguments: Schema, output: Schema | None) -> Any:
    """Return a tool of an engine as a FastMCP tool; the arguments are as for `mcp_tool`."""
    from neuroscript.interop.fastmcp.export import engine_tool, structured_output

    offer = OfferedTool(name, engine.infos[tool.name], engine, names_of(tool, name))
    schema, structure = structured_output(offer)
    if output is not None:
        schema, structure = wrapped_schema(output), _authored(offer, output)
    return engine_tool(offer, schema, structure).model_copy(update={"parameters": dict(arguments), "title": name})


def _authored(offer: OfferedTool, schema: Schema) -> Callable[[ToolResult], dict[str, Any]]:
    """Return a function that converts a result to MCP data with the author's output schema."""

    def structure(result: ToolResult) -> dict[str, Any]:
        facts = to_result(result, offer.info.spec, offer.names)
        return {**facts, "structuredContent": wrap(schema, to_plain(result.value))}

    return structure


async def client_tool(
    client: Any, name: str, group: str, timeout: float
) -> tuple[ToolImplementation, Definition, HostClient]:
    """Return a tool of the server that a client is connected to, with the policy of a third-party tool.

    Raises:
        ToolMissing: The server has no tool with that name.
        SpecError: The client or the tool is invalid; with every problem found.
    """
    connection, definitions = await host_client(client, timeout)
    definition = find_definition(definitions, name)
    return single_tool(definition, group, connection, Trust()), definition, connection


def process_tool(source: Any, group: str, timeout: float) -> tuple[ToolImplementation, Definition]:
    """Return one FastMCP tool of this process, with the policy of a third-party tool.

    Raises:
        SpecError: *source* is a server, or the tool is invalid; with every problem found.
    """
    from neuroscript.interop.fastmcp import from_fastmcp

    if hasattr(source, "add_tool"):
        raise SpecError("ToolSpec", ["expected one tool; use neuroscript.interop.fastmcp.from_fastmcp for a server"])
    server = from_fastmcp(source, group=group, timeout=timeout)
    (tool,), (definition,) = server.toolset, server.definitions.values()
    return tool, definition


def permissive_policy(tool: ToolImplementation) -> ExecutionPolicy:
    """Return a policy that permits everything a tool needs, for calls through its handle."""
    return ExecutionPolicy(grants=tool.policy.capabilities, preapproved=(tool.name,))
