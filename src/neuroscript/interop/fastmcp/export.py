"""Export the tools of a session to FastMCP servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from logging import WARNING
from typing import Any

from neuroscript._imports import missing_extra
from neuroscript.coercion.parameters import require
from neuroscript.engine.session import Session
from neuroscript.interop.mcp.schema import (
    annotations_of,
    arguments_schema,
    definition_of,
    description_of,
    is_wrapped,
    output_schema,
    title_of,
)
from neuroscript.interop.mcp.server.results import to_result
from neuroscript.llm.offered_tools import OfferedTool, offer_tools
from neuroscript.runtime.interfaces import ToolResult
from neuroscript.runtime.wire_names import NAMES, NameStyle

try:
    from fastmcp.exceptions import ToolError
    from fastmcp.tools import Tool
    from fastmcp.tools.base import ToolResult as Answer
    from mcp_types import CallToolResult, Icon, ToolAnnotations
    from pydantic import PrivateAttr
except ImportError as error:
    raise missing_extra("tools for FastMCP need it", "fastmcp", error) from None


class EngineTool(Tool):
    """A tool of an engine as a FastMCP tool; only the engine coerces its arguments."""

    _offered: OfferedTool = PrivateAttr()
    _structure: Callable[[ToolResult], dict[str, Any]] = PrivateAttr()

    async def run(self, arguments: dict[str, Any]) -> Answer:
        """Make a call and return its result; cancelling this coroutine cancels the call.

        Raises:
            ToolError: With the message for the model.
        """
        result = await self._offered.aexecute(arguments)
        if not result.ok:
            raise ToolError(self._offered.text(result), log_level=WARNING)
        return Answer.from_mcp_result(CallToolResult.model_validate(self._structure(result)))


def engine_tool(
    offer: OfferedTool, schema: dict[str, Any] | None, structure: Callable[[ToolResult], dict[str, Any]]
) -> Tool:
    """Return a FastMCP tool, with the schema of its result and the function that converts a result to MCP data."""
    spec = offer.info.spec
    hints = annotations_of(spec, offer.info.policy)
    definition = definition_of(spec)
    made = EngineTool(
        name=offer.name,
        title=title_of(spec),
        description=description_of(spec) or None,
        parameters=dict(arguments_schema(spec)),
        output_schema=schema,
        annotations=ToolAnnotations.model_validate(dict(hints)) if hints else None,
        icons=[Icon.model_validate(each) for each in definition.get("icons", ())] or None,
        meta=definition.get("_meta"),
    )
    made._offered, made._structure = offer, structure
    return made


def structured_output(offer: OfferedTool) -> tuple[dict[str, Any] | None, Callable[[ToolResult], dict[str, Any]]]:
    """Return the output schema of a tool, and the function that converts a result to the form FastMCP clients read."""
    spec = offer.info.spec
    schema = output_schema(spec)
    if schema is None or not is_wrapped(spec):
        return schema and dict(schema), lambda result: to_result(result, spec, offer.names)
    mark = {"_meta": {"fastmcp": {"wrap_result": True}}}
    return {**schema, "x-fastmcp-wrap-result": True}, lambda result: to_result(result, spec, offer.names) | mark


def to_fastmcp(session: Session, *, tools: str | Iterable[str] = "*", names: NameStyle = "grouped") -> list[Tool]:
    """Return the tools of a session for ``server.add_tool``; its policy applies, and all clients share the session.

    Args:
        session: An engine or a session; all calls go through it.
        tools: Patterns of canonical names, such as ``math.*``; other tools cannot be called.
        names: ``grouped`` for names such as ``math__add``, or ``bare`` for ``add`` where no other tool has this name.

    Raises:
        SpecError: A pattern is invalid, or matches no permitted tool.
        RegistryError: Two tools would have the same name.
    """
    require("to_fastmcp", names=(names, NAMES))
    offered = offer_tools(session, tools, subject="to_fastmcp", style=names)
    return [engine_tool(each, *structured_output(each)) for each in offered]
