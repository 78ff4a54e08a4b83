"""Export the tools of a session to Inspect.

Inspect validates the arguments of a model against the schema before it calls a tool. Before that validation, each tool
returns the exact values to Inspect, so approvers see what it will act on, and rejects invalid arguments itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from neuroscript._imports import missing_extra
from neuroscript.coercion.plain_data import to_plain
from neuroscript.engine.preflight import bind_call
from neuroscript.engine.session import Session
from neuroscript.errors import CallError
from neuroscript.llm.offered_tools import OfferedTool, offer_tools
from neuroscript.runtime.interfaces import ToolCall

try:
    from inspect_ai.tool import Tool, ToolDef, ToolError, ToolParam, ToolParams
    from inspect_ai.tool._tool_canonical import set_tool_canonical_arguments
except ImportError as error:
    raise missing_extra("tools for Inspect need inspect-ai", "inspect-ai", error) from None


def to_inspect_ai(session: Session, *, tools: str | Iterable[str] = "*") -> list[Tool]:
    """Return the tools that a session permits as Inspect tools; read-only ones may run in parallel.

    An error is raised as a ``ToolError``. Constraints that Inspect's schema cannot express are not shown to models, but
    each call still checks them.

    Args:
        session: An engine or a session; all calls go through it.
        tools: Patterns of canonical names, such as ``math.*``; other tools cannot be called.

    Raises:
        SpecError: A pattern is invalid, or matches no permitted tool.
        RegistryError: Two tools would have the same name.
    """
    return [_export_tool(each) for each in offer_tools(session, tools, subject="to_inspect_ai")]


def _export_tool(each: OfferedTool) -> Tool:
    async def call(**kwargs: Any) -> str:  # Inspect passes all arguments on because of this name and type
        result = await each.aexecute(kwargs)
        if not result.ok:
            raise ToolError(each.text(result))
        return each.text(result)

    set_tool_canonical_arguments(call, partial(_exact, each))
    definition = ToolDef(
        call,
        name=each.name,
        description=each.description or each.name,
        parameters=_parameters(each),
        parallel=each.info.policy.is_read_only,
    )
    return definition.as_tool()


def _parameters(each: OfferedTool) -> ToolParams:
    """Return the schema in Inspect's format, where each parameter has a description."""
    schema = each.schema
    properties = {name: _parameter(name, rule) for name, rule in schema.get("properties", {}).items()}
    return ToolParams(properties=properties, required=schema.get("required", []))


def _parameter(name: str, rule: Any) -> ToolParam:
    try:
        parameter = ToolParam.model_validate(rule)
    except ValueError:  # Inspect cannot represent the rule, for example a schema that is true
        parameter = ToolParam()
    parameter.description = parameter.description or name
    return parameter


def _exact(each: OfferedTool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the exact values of the passed arguments; invalid ones are executed anyway to get the error."""
    call = ToolCall(each.info.spec.full_name, arguments)
    try:
        known, values = bind_call(each.session, call)
    except CallError:
        raise ToolError(each.text(each.execute(arguments))) from None
    named = known.pipeline.tool.spec.by_name(values)
    return {name: to_plain(named[name]) for name in arguments}
