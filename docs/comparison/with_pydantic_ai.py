"""Call tools through an agent of pydantic-ai, whose model follows a script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from missing import refuse_if_defined
from pydantic_ai import Agent, ModelResponse, ModelRetry, RunContext, TextPart, Tool, ToolCallPart
from pydantic_ai.capabilities import Hooks
from pydantic_ai.messages import ModelRequest, RetryPromptPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.providers import infer_provider_class


def ask(tools: list[Any], name: str, arguments: dict[str, Any], **options: Any) -> str | None:
    """Run an agent whose model makes one call, and return the error that the model receives."""
    turns = [ModelResponse(parts=[ToolCallPart(name, arguments)]), ModelResponse(parts=[TextPart("done")])]
    agent = Agent(FunctionModel(lambda messages, info: turns.pop(0)), tools=tools, **options)
    messages = agent.run_sync("Call the tool.").all_messages()
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    replies = [part for part in parts if isinstance(part, (RetryPromptPart, ToolReturnPart))]
    assert len(replies) == 1
    (reply,) = replies
    if isinstance(reply, RetryPromptPart):
        return reply.model_response()
    return None if reply.outcome == "success" else reply.model_response_str()


def call(tool: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    return ask([tool], tool.__name__, arguments)


def call_with_rule(tool: Callable[..., Any], arguments: dict[str, Any]) -> list[Any]:
    hooks = Hooks()
    seen: list[Any] = []

    @hooks.on.before_tool_execute
    def rule(ctx: Any, *, call: Any, tool_def: Any, args: dict[str, Any]) -> dict[str, Any]:
        seen.append(args["account"])
        return args

    ask([tool], tool.__name__, arguments, capabilities=[hooks])
    return seen


def call_nested(inner: Callable[..., Any]) -> None:
    hooks = Hooks()

    @hooks.on.before_tool_execute
    def deny(ctx: Any, *, call: Any, tool_def: Any, args: dict[str, Any]) -> dict[str, Any]:
        if call.tool_name == "inner":
            raise ModelRetry("denied")
        return args

    async def outer(ctx: RunContext[None]) -> str:
        """Call the other tool."""
        assert ctx.tool_manager is not None
        return str(await ctx.tool_manager.handle_call(ToolCallPart("inner", {})))

    ask([inner, outer], "outer", {}, capabilities=[hooks])


def call_limited(tool: Callable[..., Any], seconds: float) -> None:
    assert ask([Tool(tool, timeout=seconds)], tool.__name__, {}) is not None, "the call was not limited"


def edited_log(tool: Callable[..., Any], directory: Path) -> bool:
    refuse_if_defined("pydantic_ai", "audit_?log|hash_?chain|tamper", "no log")
    raise AssertionError


def served() -> list[str]:
    refuse_if_defined("pydantic_ai", "(?:to|as|serve)_mcp", "no")
    raise AssertionError


def has_provider(name: str) -> bool:
    try:
        infer_provider_class(name)
    except ImportError:  # its SDK is not installed
        return True
    except ValueError:
        return False
    return True
