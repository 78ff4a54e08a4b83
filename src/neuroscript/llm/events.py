"""The result of a conversation, its error, and the events that a host receives while it runs."""

from __future__ import annotations

from typing import Any, Final

import attrs

from neuroscript.coercion.parameters import STRING, instance, one_of, require, require_fields, sequence
from neuroscript.errors import RETRIES, LLMError, Retry
from neuroscript.runtime.interfaces import ToolCall, ToolResult, Turn
from neuroscript.runtime.replies import Reply, RetriedRequest, Usage

RETRY: Final = one_of(*RETRIES)
CALL: Final = instance(ToolCall)
TURNS: Final = sequence(instance(Turn), "Turns")
REPLIES: Final = sequence(instance(Reply), "Replies")


@attrs.frozen
class Conversation:
    """The turns of a conversation, starting with the system turn.

    Attributes:
        turns: All turns, including the history. The results in them are what the model read.
        replies: The model's replies in order; their turns are in *turns* too.
        answer: The final answer: a string, or the exact value or the instance that was requested. None if the
            conversation did not reach one.
        exact_answer: The exact value of the answer, also if *answer* is an instance of a class.
    """

    turns: tuple[Turn, ...]
    replies: tuple[Reply, ...] = ()
    answer: Any = None
    exact_answer: Any = attrs.field(default=attrs.Factory(lambda self: self.answer, takes_self=True), repr=False)

    def __attrs_post_init__(self) -> None:
        require_fields("conversation", self, turns=TURNS, replies=REPLIES)

    @property
    def usage(self) -> Usage:
        """The tokens of all replies together, as the model counted them."""
        return sum((reply.usage for reply in self.replies), Usage())

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The result of each call, in order."""
        return tuple(result for turn in self.turns for result in turn.tool_results)


class ConversationError(LLMError):
    """A conversation that ended without an answer.

    Attributes:
        conversation: Everything up to that point.
    """

    def __init__(self, text: str, *, code: str, retry: Retry, conversation: Conversation) -> None:
        parts = {"retry": (retry, RETRY), "conversation": (conversation, instance(Conversation))}
        require("ConversationError", **parts)
        super().__init__(text, code=code, retry=retry)
        self.conversation = conversation


@attrs.frozen
class TextReceived:
    """A piece of the model's text, as it arrived."""

    text: str

    def __attrs_post_init__(self) -> None:
        require_fields("text received", self, text=STRING)


@attrs.frozen
class RetryScheduled:
    """A request will be repeated after a wait."""

    retried: RetriedRequest

    def __attrs_post_init__(self) -> None:
        require_fields("retry scheduled", self, retried=instance(RetriedRequest))


@attrs.frozen
class ReplyReceived:
    """A complete reply has arrived."""

    reply: Reply

    def __attrs_post_init__(self) -> None:
        require_fields("reply received", self, reply=instance(Reply))


@attrs.frozen
class CallStarted:
    """A call that the model requested begins.

    The call has not been checked yet, so its arguments may contain secrets.
    """

    call: ToolCall

    def __attrs_post_init__(self) -> None:
        require_fields("call started", self, call=CALL)


@attrs.frozen
class CallEnded:
    """A call has ended. Secrets are redacted from both the call and the result."""

    call: ToolCall
    result: ToolResult

    def __attrs_post_init__(self) -> None:
        require_fields("call ended", self, call=CALL, result=instance(ToolResult))


@attrs.frozen
class ItemProduced:
    """A call produced a stream item. Secrets are redacted from the item; the call is as it began."""

    call: ToolCall
    item: Any

    def __attrs_post_init__(self) -> None:
        require_fields("item produced", self, call=CALL)


Event = TextReceived | RetryScheduled | ReplyReceived | CallStarted | ItemProduced | CallEnded
"""An event that a host receives during a conversation."""
