"""Export the tools of a session to LangChain; the session receives the arguments as the model sent them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from neuroscript._imports import missing_extra
from neuroscript.engine.session import Session
from neuroscript.llm.offered_tools import OfferedTool, offer_tools
from neuroscript.runtime.interfaces import ToolResult

try:
    from langchain_core.tools import BaseTool, ToolException
    from pydantic import PrivateAttr
except ImportError as error:
    raise missing_extra("tools for LangChain need langchain-core", "langchain", error) from None


def to_langchain(session: Session, *, tools: str | Iterable[str] = "*") -> list[BaseTool]:
    """Return the tools that a session permits as LangChain tools.

    A call by a model returns a ``ToolMessage``: its content is for the model, its artifact is the exact value. An error
    is a message with ``status="error"``, or a ``ToolException`` if you set ``handle_tool_error=False`` on the tool.

    Args:
        session: An engine or a session; all calls go through it.
        tools: Patterns of canonical names, such as ``math.*``; other tools cannot be called.

    Raises:
        SpecError: A pattern is invalid, or matches no permitted tool.
        RegistryError: Two tools would have the same name.
    """
    return [_export_tool(each) for each in offer_tools(session, tools, subject="to_langchain")]


class _ExportedTool(BaseTool):
    """One tool. Its schema is plain data, which LangChain does not validate before the engine does."""

    _offered: OfferedTool = PrivateAttr()

    def _run(self, /, **arguments: Any) -> tuple[str, Any]:
        return self._content_and_artifact(self._offered.execute(arguments))

    async def _arun(self, /, **arguments: Any) -> tuple[str, Any]:
        return self._content_and_artifact(await self._offered.aexecute(arguments))

    def _content_and_artifact(self, result: ToolResult) -> tuple[str, Any]:
        """Return the string for the model and the value, or raise the error without its cause, which traces show."""
        text = self._offered.text(result)
        if not result.ok:
            raise ToolException(text)
        return text, result.value


def _export_tool(each: OfferedTool) -> BaseTool:
    tool = _ExportedTool(
        name=each.name,
        description=each.description,
        args_schema={"properties": {}, **each.schema},  # without properties, LangChain's `args` raises
        response_format="content_and_artifact",
        handle_tool_error=True,
    )
    tool._offered = each
    return tool
