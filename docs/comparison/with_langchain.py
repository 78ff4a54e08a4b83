"""Call tools through an agent of LangChain, whose model follows a script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain.chat_models import init_chat_model
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool
from missing import refuse_if_defined


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def agent_of(tools: list[Any], name: str, arguments: dict[str, Any], **options: Any) -> Any:
    """Return an agent whose model makes one call."""
    first = AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "c1"}])
    return create_agent(Scripted(messages=iter([first, AIMessage("done")])), tools, **options)


def ask(agent: Any) -> str | None:
    """Run an agent, and return the error that the model receives."""
    messages = agent.invoke({"messages": [("user", "Call the tool.")]})["messages"]
    (reply,) = (each for each in messages if isinstance(each, ToolMessage))
    return str(reply.content) if reply.status == "error" else None


def call(tool: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    return ask(agent_of([tool], tool.__name__, arguments))


def call_with_rule(tool: Callable[..., Any], arguments: dict[str, Any]) -> list[Any]:
    seen: list[Any] = []

    @wrap_tool_call
    def rule(request: Any, handler: Any) -> Any:
        seen.append(request.tool_call["args"]["account"])
        return handler(request)

    ask(agent_of([tool], tool.__name__, arguments, middleware=[rule]))
    return seen


def call_nested(inner: Callable[..., Any]) -> None:
    tool = StructuredTool.from_function(inner)

    def outer() -> str:
        """Call the other tool."""
        return str(tool.invoke({}))

    @wrap_tool_call
    def deny(request: Any, handler: Any) -> Any:
        if request.tool_call["name"] == "inner":
            return ToolMessage("denied", tool_call_id=request.tool_call["id"], status="error")
        return handler(request)

    ask(agent_of([tool, outer], "outer", {}, middleware=[deny]))


def call_limited(tool: Callable[..., Any], seconds: float) -> None:
    agent = agent_of([tool], tool.__name__, {})
    agent.step_timeout = seconds
    try:
        ask(agent)
    except TimeoutError:
        return
    raise AssertionError("the call was not limited")


def edited_log(tool: Callable[..., Any], directory: Path) -> bool:
    refuse_if_defined("langchain", "audit_?log|hash_?chain|tamper", "no log")
    raise AssertionError


def served() -> list[str]:
    refuse_if_defined("langchain_core", "(?:to|as|serve)_mcp", "no")
    raise AssertionError


def has_provider(name: str) -> bool:
    provider = {"azure": "azure_openai", "google": "google_genai", "mistral": "mistralai"}.get(name, name)
    try:
        init_chat_model("a-model", model_provider=provider)
    except ImportError:  # its package is not installed
        return True
    except ValueError:
        return False
    return True
