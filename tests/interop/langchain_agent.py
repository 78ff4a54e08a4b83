"""A scripted LangChain model, and the agent loop in which it calls tools."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import get_executor_for_config
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool


class Scripted(FakeMessagesListChatModel):
    """A model that replays a script, turn by turn."""

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[Any, Any]:
        """Return the model with the tool definitions that a real model receives."""
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools], **options)


def asking(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    """Return a turn with tool calls, whose ids are ``c1``, ``c2`` …"""
    made = [ToolCall(name=name, args=given, id=f"c{at}") for at, (name, given) in enumerate(calls, 1)]
    return AIMessage("", tool_calls=made)


def run(tools: Iterable[BaseTool], *turns: BaseMessage) -> list[ToolMessage]:
    """Return what a scripted model reads for its calls; calls of one turn run on threads, as in agents."""
    by_name = {each.name: each for each in tools}
    model = Scripted(responses=[*turns, AIMessage("done")]).bind_tools([*by_name.values()])
    messages: list[BaseMessage] = [HumanMessage("go")]
    while True:
        reply = model.invoke(messages)
        messages.append(reply)
        if not reply.tool_calls:
            return [each for each in messages if isinstance(each, ToolMessage)]
        with get_executor_for_config({}) as threads:
            messages.extend(threads.map(lambda call: _answer(by_name, call), reply.tool_calls))


async def arun(tools: Iterable[BaseTool], *turns: BaseMessage) -> list[ToolMessage]:
    """Return what `run` returns; the calls of one turn run in one event loop."""
    by_name = {each.name: each for each in tools}
    model = Scripted(responses=[*turns, AIMessage("done")]).bind_tools([*by_name.values()])
    messages: list[BaseMessage] = [HumanMessage("go")]
    while True:
        reply = await model.ainvoke(messages)
        messages.append(reply)
        if not reply.tool_calls:
            return [each for each in messages if isinstance(each, ToolMessage)]
        messages.extend(await asyncio.gather(*(by_name[call["name"]].ainvoke(call) for call in reply.tool_calls)))


def _answer(by_name: dict[str, BaseTool], call: ToolCall) -> Any:
    if call["name"] not in by_name:
        text = f"Error: {call['name']} is not a valid tool, try one of [{', '.join(by_name)}]."
        return ToolMessage(text, tool_call_id=call["id"], status="error")
    return by_name[call["name"]].invoke(call)
