"""Tools of a session as LangChain's; what a model sends comes to the session as it was sent.

Source: LangChain reference, ``BaseTool``; issue "MCP and the frameworks", adapters.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from neuroscript._imports import missing
from neuroscript.engine.session import Session
from neuroscript.llm.offered_tools import Offered, offered
from neuroscript.runtime.interfaces import ToolResult

try:
    from langchain_core.tools import BaseTool, ToolException
    from pydantic import PrivateAttr
except ImportError as error:
    raise missing("tools for LangChain need langchain-core", "langchain", error) from None


def to_langchain(session: Session, *, tools: str | Iterable[str] = "*") -> list[BaseTool]:
    """Return the tools that a session permits, as LangChain's.

    A call that a model makes gives a ``ToolMessage``: its content is what a model reads, its artifact the exact value.
    An error is one with ``status="error"``; with ``handle_tool_error=False`` on a tool it is a ``ToolException``.

    Args:
        session: An engine, or a session of one, by which all calls are carried out.
        tools: Patterns of canonical names, as in ``math.*``; no other tool can be called.

    Raises:
        SpecError: A pattern is none, or matches no tool that may be called.
        RegistryError: Two tools would have one name.
    """
    return [_lent(each) for each in offered(session, tools, subject="to_langchain")]


class _Lent(BaseTool):
    """One tool. Its schema is data, for which LangChain has no check of its own that could come first."""

    _offered: Offered = PrivateAttr()

    def _run(self, /, **arguments: Any) -> tuple[str, Any]:
        return self._told(self._offered.execute(arguments))

    async def _arun(self, /, **arguments: Any) -> tuple[str, Any]:
        return self._told(await self._offered.aexecute(arguments))

    def _told(self, result: ToolResult) -> tuple[str, Any]:
        """Return what a model reads and the value, or raise the error without its cause, which traces would show."""
        text = self._offered.text(result)
        if not result.ok:
            raise ToolException(text)
        return text, result.value


def _lent(each: Offered) -> BaseTool:
    tool = _Lent(
        name=each.name,
        description=each.description,
        args_schema={"properties": {}, **each.schema},  # without any, LangChain's `args` would raise
        response_format="content_and_artifact",
        handle_tool_error=True,
    )
    tool._offered = each
    return tool
