"""Tools of a session as those of Inspect, whose own check of arguments comes after ours.

Inspect holds what a model sends to the schema before a tool is called. A tool may say before that what its arguments
come to, so that approvers see what it acts on: ours says the exact values, and refuses what is none.

Source: Inspect reference, ``ToolDef`` and ``ToolError``; issue "MCP and the frameworks", adapters.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from neuroscript._imports import missing
from neuroscript.coercion.plain_data import plain
from neuroscript.engine.preflight import exact
from neuroscript.engine.session import Session
from neuroscript.errors import CallError
from neuroscript.llm.offered_tools import Offered, offered
from neuroscript.runtime.interfaces import ToolCall

try:
    from inspect_ai.tool import Tool, ToolDef, ToolError, ToolParam, ToolParams
    from inspect_ai.tool._tool_canonical import set_tool_canonical_arguments
except ImportError as error:
    raise missing("tools for Inspect need inspect-ai", "inspect-ai", error) from None


def to_inspect_ai(session: Session, *, tools: str | Iterable[str] = "*") -> list[Tool]:
    """Return the tools that a session permits, as Inspect's; one that only reads may run beside other calls.

    An error is a ``ToolError``. What Inspect's schema has no word for is not told to
    models; it is asked of the call all the same.

    Args:
        session: An engine, or a session of one, by which all calls are carried out.
        tools: Patterns of canonical names, as in ``math.*``; no other tool can be called.

    Raises:
        SpecError: A pattern is none, or matches no tool that may be called.
        RegistryError: Two tools would have one name.
    """
    return [_lent(each) for each in offered(session, tools, subject="to_inspect_ai")]


def _lent(each: Offered) -> Tool:
    async def call(**kwargs: Any) -> str:  # by this name and type Inspect knows that it is to hand on everything
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
        parallel=each.info.policy.only_looks,
    )
    return definition.as_tool()


def _parameters(each: Offered) -> ToolParams:
    """Return the schema as Inspect has it, in which each parameter has a description."""
    schema = each.schema
    properties = {name: _parameter(name, rule) for name, rule in schema.get("properties", {}).items()}
    return ToolParams(properties=properties, required=schema.get("required", []))


def _parameter(name: str, rule: Any) -> ToolParam:
    try:
        parameter = ToolParam.model_validate(rule)
    except ValueError:  # Inspect has no word for what it asks, such as a schema that is True
        parameter = ToolParam()
    parameter.description = parameter.description or name
    return parameter


def _exact(each: Offered, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the exact values of the arguments that were given; a call that has none is made, and so refused."""
    call = ToolCall(each.info.spec.full_name, arguments)
    try:
        known, values = exact(each.session, call)
    except CallError:
        raise ToolError(each.text(each.execute(arguments))) from None
    named = known.line.tool.spec.by_name(values)
    return {name: plain(named[name]) for name in arguments}
