"""One call of a tool of LangChain: exact values out, and what came of them in.

Source: LangChain reference, ``BaseTool.invoke`` and ``ToolMessage``; contract sections 3 and 6.

LangChain's tools as a set of ours: their schemas are our contract, and a policy decides about each call.

Source: LangChain reference, ``BaseTool``; issue "MCP and the frameworks", in; contract section 5.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from neuroscript._imports import missing
from neuroscript.coercion.constraints import coerce
from neuroscript.coercion.context import type_name
from neuroscript.coercion.types import ArgType
from neuroscript.errors import CoercionError, SpecError, ToolFailed
from neuroscript.formats.json_schema import spec_from_schema
from neuroscript.interop.foreign import LONGEST, by_word, given, unknown_needs
from neuroscript.interop.langchain.schemas import schemas_of, taken_as, wants_id
from neuroscript.io.text import one_line, shown
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
    raise missing("taking tools of LangChain needs langchain-core", "langchain", error) from None


def function_of(tool: BaseTool, args: tuple[ArgSpec, ...]) -> Callable[..., Any]:
    """Return the function of a tool, a coroutine function where LangChain's tool has one of its own.

    Args:
        args: Its arguments, in order.
    """

    def call(rt: Runtime, *values: Any) -> Any:
        try:
            return _value(tool.invoke(_sent(tool, args, values)))
        except ToolException as error:
            raise _failed(error) from error

    async def acall(rt: Runtime, *values: Any) -> Any:
        try:
            return _value(await tool.ainvoke(_sent(tool, args, values)))
        except ToolException as error:
            raise _failed(error) from error

    return acall if _is_async(tool) else call


def _is_async(tool: BaseTool) -> bool:
    if hasattr(tool, "coroutine"):  # that of a function
        return tool.coroutine is not None
    return type(tool)._arun is not BaseTool._arun


def _sent(tool: BaseTool, args: tuple[ArgSpec, ...], values: tuple[Any, ...]) -> Any:
    """Return what LangChain is given: the arguments alone, for that gives the very value, or a call.

    Only a call tells an error that the tool handles itself from a result, gives content apart from an artifact, and has
    an id. Arguments that look like a call are sent in one too, for LangChain would take those inside for the arguments.
    """
    handles = tool.handle_tool_error or tool.handle_validation_error
    arguments = given(args, values)
    fields: Mapping[str, Any] = {}
    if not isinstance(tool.args_schema, dict):
        schema = tool.get_input_schema()
        fields = get_fields(schema)
        arguments = {taken_as(name, schema): value for name, value in arguments.items()}
    is_plain = not handles and tool.response_format == "content" and arguments.get("type") != "tool_call"
    if is_plain and not any(map(wants_id, fields.values())):
        return arguments
    return {"type": "tool_call", "name": tool.name, "args": arguments, "id": os.urandom(8).hex()}


def _value(answer: Any) -> Any:
    """Return the value of an answer; what is no plain value is told as LangChain would tell a model, as text."""
    if isinstance(answer, ToolMessage):
        if answer.status == "error":
            raise _failed(answer.text)
        return answer.content
    try:
        return coerce(answer, ArgType.ANY)
    except CoercionError:
        return str(answer)


def _failed(said: object) -> ToolFailed:
    return ToolFailed(one_line(str(said), LONGEST) or "the tool says nothing", retry="model")


try:
    from langchain_core.tools import BaseTool
except ImportError as error:
    raise missing("taking tools of LangChain needs langchain-core", "langchain", error) from None


Source = Value | Resolver | Variable | State | Secret


def from_langchain(
    tools: BaseTool | Iterable[BaseTool],
    *,
    group: str,
    policy: ToolPolicy | None = None,
    trusted: bool = False,
    injected: Mapping[str, Source] | None = None,
) -> Toolset:
    """Return LangChain's tools as a set of ours, called by the words that their names make.

    Args:
        tools: Whatever is a ``BaseTool``, one or several.
        group: The group of the tools.
        policy: What each of them needs, in place of ``langchain:call:GROUP/NAME`` with LangChain's name of it, an
            approval of each call unless *trusted*, and the effects of a tool that may do anything.
        trusted: Whether they are called without an approval of each call.
        injected: By name of an argument that LangChain hides from models where its value comes from.

    Raises:
        SpecError: With everything that is wrong with them.
    """
    group = Toolset(group).name
    sources = dict(injected or {})
    faults: list[str] = []
    if isinstance(tools, BaseTool):  # it can be iterated, and yields its fields
        tools = (tools,)
    given = list(tools)
    strange = [each for each in given if not isinstance(each, BaseTool)]
    faults.extend(f"tools: expected LangChain's tools, got {type_name(each)}" for each in strange)
    found: list[ToolImplementation] = []
    for word, each in by_word(((each.name, each) for each in given if isinstance(each, BaseTool)), faults).items():
        try:
            needs = policy or unknown_needs("langchain", group, each.name, trusted)
            found.append(_taken(each, word, group, needs, sources))
        except SpecError as error:
            faults.extend(f"{shown(each.name)}: {problem}" for problem in error.problems)
    used = {name for each in found for name in each.injected}
    faults.extend(f"injected: no tool hides an argument called {shown(name)}" for name in sources if name not in used)
    if faults:
        raise SpecError(f"from_langchain {group}", faults)
    return Toolset(group, tuple(found))


def _taken(
    tool: BaseTool, word: str, group: str, policy: ToolPolicy, sources: Mapping[str, Source]
) -> ToolImplementation:
    """Return one tool, or raise a `SpecError` with everything about it that can not be taken."""
    schema, hidden = schemas_of(tool)
    mine = {name: each for name, each in sources.items() if name in hidden}
    lacking = [name for name, is_required in hidden.items() if is_required and name not in mine]
    if lacking:
        raise SpecError(word, [f"{each}: a host has to give it; say from where with injected" for each in lacking])
    if mine:
        schema["properties"] = {**schema.get("properties", {}), **{name: {} for name in mine}}
    spec = spec_from_schema(word, schema, group=group, description=one_line(tool.description, LONGEST))
    return ToolImplementation(spec, function_of(tool, spec.args), policy).injecting(**mine)
