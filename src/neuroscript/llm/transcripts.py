"""Readable transcripts of conversations: one line for each turn, call, repair, refusal and retry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from neuroscript.coercion.parameters import instance, require
from neuroscript.coercion.plain_data import to_plain
from neuroscript.io.text import escape
from neuroscript.llm.events import Conversation
from neuroscript.runtime.interfaces import ToolCall, ToolResult, Turn
from neuroscript.runtime.replies import Reply
from neuroscript.runtime.result_text import result_text
from neuroscript.tools.serialization import result_to_data


def transcript(conversation: Conversation) -> str:
    """Return a conversation as lines without terminal control sequences.

    The lines contain everything that was said, and the arguments and results of the calls.

    >>> from neuroscript import Turn
    >>> print(transcript(Conversation((Turn("user", "Hello?"), Turn("assistant", "Hello.")))))
    user: Hello?
    assistant: Hello.
    """
    require("transcript", conversation=(conversation, instance(Conversation)))
    return "\n".join(line for turn, reply in _with_replies(conversation) for line in _lines(turn, reply))


def _with_replies(conversation: Conversation) -> Iterator[tuple[Turn, Reply | None]]:
    """Yield each turn with its reply; turns of the history and incomplete turns have none."""
    replies = [*conversation.replies]
    for turn in conversation.turns:
        at = next((at for at, reply in enumerate(replies) if turn.role == "assistant" and reply.turn == turn), -1)
        yield turn, replies[at] if at >= 0 else None
        replies = replies[at + 1 :]


def _lines(turn: Turn, reply: Reply | None) -> Iterator[str]:
    for retried in reply.retries if reply else ():
        yield f"{turn.role}: retried after {retried.seconds:.2g} s ({retried.code})"
    if turn.content or not (turn.tool_calls or turn.tool_results):
        yield f"{turn.role}: {_indented(turn.content)}"
    yield from (f"{turn.role}: calls {call_line(call)}" for call in turn.tool_calls)
    yield from (f"{turn.role}: {result_line(result)}" for result in turn.tool_results)


def call_line(call: ToolCall) -> str:
    """Return a call on one line, as the model wrote it."""
    return f"{escape(call.name)} {arguments_line(call)}"


def arguments_line(call: ToolCall) -> str:
    """Return the arguments of a call on one line, as the model wrote them."""
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(to_plain(call.arguments), default=str)
    return escape(arguments)


def result_line(result: ToolResult) -> str:
    """Return the result of a call on one line, with its repairs."""
    repairs = ", ".join(f"{each.where}: {each.got} -> {each.became}" for each in result.repairs)
    return escape(f"{result.tool}: {result_text(result)}" + (f" (repaired {repairs})" if repairs else ""))


def _indented(text: str) -> str:
    return "\n  ".join(map(escape, text.splitlines()))


def conversation_to_data(conversation: Conversation) -> dict[str, Any]:
    """Return the turns, tokens, retries and answer of a conversation as JSON-compatible data."""
    usage = conversation.usage
    return {
        "answer": to_plain(conversation.exact_answer),
        "turns": [_turn_to_data(turn) for turn in conversation.turns],
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
        "retries": [
            {"code": each.code, "seconds": each.seconds} for reply in conversation.replies for each in reply.retries
        ],
    }


def _turn_to_data(turn: Turn) -> dict[str, Any]:
    data: dict[str, Any] = {"role": turn.role, "content": turn.content}
    if turn.tool_calls:
        data["tool_calls"] = _calls_to_data(turn.tool_calls)
    if turn.tool_results:
        data["tool_results"] = [result_to_data(each) for each in turn.tool_results]
    return data


def _calls_to_data(calls: Iterable[ToolCall]) -> list[dict[str, Any]]:
    return [{"id": call.id, "name": call.name, "arguments": to_plain(call.arguments)} for call in calls]
