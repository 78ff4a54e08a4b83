"""Load LangChain tools as a toolset: their schemas become specs, and a policy applies to each call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from neuroscript._imports import missing_extra
from neuroscript.coercion.context import type_name
from neuroscript.errors import SpecError
from neuroscript.formats.json_schema import spec_from_schema
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS, default_policy, passed_arguments, tools_by_name
from neuroscript.interop.framework_tools import failed_tool, plain_value
from neuroscript.interop.langchain.schemas import schemas_of, validation_name, wants_id
from neuroscript.io.text import one_line, quote_untrusted
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import Runtime
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.tools.injection_sources import Resolver, Secret, State, Value, Variable
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import Toolset

try:
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import BaseTool, ToolException
    from langchain_core.utils.pydantic import get_fields
except ImportError as error:
    raise missing_extra("loading LangChain tools needs langchain-core", "langchain", error) from None


def function_of(tool: BaseTool, args: tuple[ArgSpec, ...]) -> Callable[..., Any]:
    """Return the function of a tool; it is a coroutine function if the LangChain tool has one.

    Args:
        args: The arguments of the tool, in order.
    """

    def call(rt: Runtime, *values: Any) -> Any:
        try:
            return _value(tool.invoke(_tool_input(tool, args, values)))
        except ToolException as error:
            raise failed_tool(error) from error

    async def acall(rt: Runtime, *values: Any) -> Any:
        try:
            return _value(await tool.ainvoke(_tool_input(tool, args, values)))
        except ToolException as error:
            raise failed_tool(error) from error

    return acall if _is_async(tool) else call


def _is_async(tool: BaseTool) -> bool:
    if hasattr(tool, "coroutine"):  # a tool made from a function
        return tool.coroutine is not None
    return type(tool)._arun is not BaseTool._arun


def _tool_input(tool: BaseTool, args: tuple[ArgSpec, ...], values: tuple[Any, ...]) -> Any:
    """Return the input for LangChain: the arguments alone, which return the raw value, or a tool call.

    A tool call is needed to tell a handled error from a result, to separate content from an artifact, and to pass an
    id. Arguments that look like a tool call are also sent in one; otherwise LangChain would use the arguments in them.
    """
    handles = tool.handle_tool_error or tool.handle_validation_error
    arguments = passed_arguments(args, values)
    fields: Mapping[str, Any] = {}
    if not isinstance(tool.args_schema, dict):
        schema = tool.get_input_schema()
        fields = get_fields(schema)
        arguments = {validation_name(name, schema): value for name, value in arguments.items()}
    is_plain = not handles and tool.response_format == "content" and arguments.get("type") != "tool_call"
    if is_plain and not any(map(wants_id, fields.values())):
        return arguments
    return {"type": "tool_call", "name": tool.name, "args": arguments, "id": os.urandom(8).hex()}


def _value(answer: Any) -> Any:
    """Return the value of a result; a value that is not plain data becomes the string LangChain would show a model."""
    if isinstance(answer, ToolMessage):
        if answer.status == "error":
            raise failed_tool(answer.text)
        return answer.content
    return plain_value(answer)


try:
    from langchain_core.tools import BaseTool
except ImportError as error:
    raise missing_extra("loading LangChain tools needs langchain-core", "langchain", error) from None


Source = Value | Resolver | Variable | State | Secret


def from_langchain(
    tools: BaseTool | Iterable[BaseTool],
    *,
    group: str,
    policy: ToolPolicy | None = None,
    trusted: bool = False,
    injected: Mapping[str, Source] | None = None,
) -> Toolset:
    """Return LangChain tools as a toolset; tool names are derived from their LangChain names.

    Args:
        tools: One or more ``BaseTool`` objects.
        group: The group of the tools.
        policy: The policy of each tool. By default, a tool needs ``langchain:call:GROUP/NAME`` with its LangChain name
            and an approval of each call unless *trusted*, and is assumed to have every effect.
        trusted: Call the tools without approval.
        injected: The sources of the arguments that LangChain hides from models, by argument name.

    Raises:
        SpecError: With every problem found.
    """
    group = Toolset(group).name
    sources = dict(injected or {})
    faults: list[str] = []
    if isinstance(tools, BaseTool):  # it is iterable, and yields its fields
        tools = (tools,)
    all_tools = list(tools)
    strange = [each for each in all_tools if not isinstance(each, BaseTool)]
    faults.extend(f"tools: expected LangChain tools, got {type_name(each)}" for each in strange)
    found: list[ToolImplementation] = []
    for word, each in tools_by_name(
        ((each.name, each) for each in all_tools if isinstance(each, BaseTool)), faults
    ).items():
        try:
            needs = policy or default_policy("langchain", group, each.name, trusted)
            found.append(_import_tool(each, word, group, needs, sources))
        except SpecError as error:
            faults.extend(f"{quote_untrusted(each.name)}: {problem}" for problem in error.problems)
    used = {name for each in found for name in each.injected}
    faults.extend(
        f"injected: no tool has a hidden argument {quote_untrusted(name)}" for name in sources if name not in used
    )
    if faults:
        raise SpecError(f"from_langchain {group}", faults)
    return Toolset(group, tuple(found))


def _import_tool(
    tool: BaseTool, word: str, group: str, policy: ToolPolicy, sources: Mapping[str, Source]
) -> ToolImplementation:
    """Return one tool, or raise a `SpecError` with every problem found."""
    schema, hidden = schemas_of(tool)
    own_sources = {name: each for name, each in sources.items() if name in hidden}
    lacking = [name for name, is_required in hidden.items() if is_required and name not in own_sources]
    if lacking:
        raise SpecError(word, [f"{each}: the host must supply it; set its source with injected" for each in lacking])
    if own_sources:
        schema["properties"] = {**schema.get("properties", {}), **{name: {} for name in own_sources}}
    spec = spec_from_schema(word, schema, group=group, description=one_line(tool.description, MAX_DESCRIPTION_CHARS))
    return ToolImplementation(spec, function_of(tool, spec.args), policy).with_injected(**own_sources)
