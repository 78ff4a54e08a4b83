"""Our tools for agents of the OpenAI Agents SDK, which hands their arguments over as the model wrote them.

Source: issue "MCP and the frameworks", frameworks out; OpenAI Agents SDK, "Tools", custom function tools.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from neuroscript._imports import missing
from neuroscript.engine.session import Session
from neuroscript.interop.media import media_type
from neuroscript.llm.offered_tools import Offered, offered
from neuroscript.llm.wire.openai.tools import to_tools

try:
    from agents import FunctionTool, ToolOutputImage
    from agents.tool_context import ToolContext
except ImportError as error:
    raise missing("tools for the OpenAI Agents SDK need it", "openai-agents", error) from None


def to_openai_agents(session: Session, *, tools: str | Iterable[str] = "*") -> list[FunctionTool]:
    """Return function tools for agents, of the tools that a session permits now; its policy, limits and trail hold.

    Strict mode is asked for where a tool can be told so, as `strict_schema` of `neuroscript.llm.wire.openai` says.

    Args:
        session: An engine, or a session of one, by which all calls are carried out.
        tools: Patterns of canonical names, as in ``math.*``; no other tool can be called.

    Raises:
        SpecError: One of *tools* is no pattern, or matches no tool that may be called.
        RegistryError: Two tools would have one name.
    """
    return [_tool(each) for each in offered(session, tools, subject="to_openai_agents")]


def _tool(tool: Offered) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> str | ToolOutputImage:
        """Return the result of a call, or the error for the model to read: raised, it would end the run."""
        result = await tool.aexecute(arguments, context.tool_call_id)
        value = result.value
        kind = media_type(value)
        if not kind.startswith("image/"):
            return tool.text(result)
        return ToolOutputImage(image_url=f"data:{kind};base64,{b2a_base64(value, newline=False).decode('ascii')}")

    (told,) = to_tools([tool.info], api="responses", names=tool.names)
    return FunctionTool(
        name=told["name"],
        description=told.get("description", ""),
        params_json_schema=deepcopy(told["parameters"]),
        on_invoke_tool=invoke,
        strict_json_schema=told["strict"],
    )
