"""OpenAI's Chat Completions and Responses: converts tools, turns and results, and reads calls and replies.

Names load lazily, so that reading a call does not load the schema code. No SDK is imported; SDK objects and plain data
are both accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.llm.wire.openai.calls import read_call, read_chat_call, read_responses_call
    from neuroscript.llm.wire.openai.chat import CHAT, to_messages
    from neuroscript.llm.wire.openai.chat_replies import read_chat
    from neuroscript.llm.wire.openai.chat_stream import ChatAssembler
    from neuroscript.llm.wire.openai.replies import read_calls
    from neuroscript.llm.wire.openai.responses import RESPONSES, to_items
    from neuroscript.llm.wire.openai.responses_replies import read_responses
    from neuroscript.llm.wire.openai.responses_stream import ResponsesAssembler
    from neuroscript.llm.wire.openai.strict import strict_schema
    from neuroscript.llm.wire.openai.tools import to_tools

__all__ = [
    "CHAT",
    "RESPONSES",
    "ChatAssembler",
    "ResponsesAssembler",
    "read_call",
    "read_calls",
    "read_chat",
    "read_chat_call",
    "read_responses",
    "read_responses_call",
    "strict_schema",
    "to_items",
    "to_messages",
    "to_tools",
]

__getattr__ = lazy_getattr(
    __name__,
    {
        "calls": "read_call read_chat_call read_responses_call",
        "chat": "CHAT to_messages",
        "chat_replies": "read_chat",
        "chat_stream": "ChatAssembler",
        "replies": "read_calls",
        "responses": "RESPONSES to_items",
        "responses_replies": "read_responses",
        "responses_stream": "ResponsesAssembler",
        "strict": "strict_schema",
        "tools": "to_tools",
    },
)
