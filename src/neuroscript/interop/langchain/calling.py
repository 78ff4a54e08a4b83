"""One call of a tool of LangChain: exact values out, and what came of them in.

Source: LangChain reference, ``BaseTool.invoke`` and ``ToolMessage``; contract sections 3 and 6.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from neuroscript.argtypes import ArgType
from neuroscript.coercion import coerce
from neuroscript.display import one_line
from neuroscript.errors import CoercionError, ToolFailed
from neuroscript.extras import missing
from neuroscript.interop.foreigntext import LONGEST
from neuroscript.interop.foreigntools import given
from neuroscript.interop.langchain.schemas import taken_as, wants_id
from neuroscript.runtime import Runtime
from neuroscript.spec import ArgSpec

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
