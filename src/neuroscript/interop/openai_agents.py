"""Export the tools of a session to the OpenAI Agents SDK, which passes the arguments on as the model wrote them."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from neuroscript._imports import missing_extra
from neuroscript.engine.session import Session
from neuroscript.interop.media import media_type
from neuroscript.llm.offered_tools import OfferedTool, offer_tools
from neuroscript.llm.wire.images import data_url, texts_and_images
from neuroscript.llm.wire.openai.tools import to_tools

try:
    from agents import FunctionTool, ToolOutputImage, ToolOutputText
    from agents.tool_context import ToolContext
except ImportError as error:
    raise missing_extra("tools for the OpenAI Agents SDK need it", "openai-agents", error) from None


def to_openai_agents(session: Session, *, tools: str | Iterable[str] = "*") -> list[Any]:
    """Return the tools that a session permits now as `FunctionTool` objects; its policy, limits and audit log apply.

    Strict mode is requested for each tool that supports it; see `neuroscript.llm.wire.openai.strict_schema`.

    Args:
        session: An engine or a session; all calls go through it.
        tools: Patterns of canonical names, such as ``math.*``; other tools cannot be called.

    Raises:
        SpecError: One of *tools* is not a pattern, or matches no permitted tool.
        RegistryError: Two tools would have the same name.
    """
    return [_tool(each) for each in offer_tools(session, tools, subject="to_openai_agents")]


def _tool(tool: OfferedTool) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        """Return the result, or the error as a string: a raised error would end the run."""
        result = await tool.aexecute(arguments, context.tool_call_id)
        value = result.value
        if parts := texts_and_images(result):
            return [
                ToolOutputText(text=each) if isinstance(each, str) else _image(each.media_type, each.data)
                for each in parts
            ]
        kind = media_type(value)
        if not kind.startswith("image/"):
            return tool.text(result)
        return _image(kind, value)

    (definition,) = to_tools([tool.info], api="responses", names=tool.names)
    return FunctionTool(
        name=definition["name"],
        description=definition.get("description", ""),
        params_json_schema=deepcopy(definition["parameters"]),
        on_invoke_tool=invoke,
        strict_json_schema=definition["strict"],
    )


def _image(kind: str, data: bytes) -> ToolOutputImage:
    return ToolOutputImage(image_url=data_url(kind, data))
