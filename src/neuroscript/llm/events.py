"""A conversation in which a model called tools: what was said and called, how it ended, what is told meanwhile.

Source: issue "Models: clients, the loop in which a model calls tools, and every model API's own shapes".
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from neuroscript.coercion.parameters import STRING, instance, one_of, require, require_fields, sequence
from neuroscript.errors import RETRIES, LLMError, Retry
from neuroscript.runtime.interfaces import ToolCall, ToolResult, Turn
from neuroscript.runtime.replies import Reply, Retried, Usage

RETRY: Final = one_of(*RETRIES)
CALL: Final = instance(ToolCall)
TURNS: Final = sequence(instance(Turn), "Turns")
REPLIES: Final = sequence(instance(Reply), "Replies")


@attrs.frozen
class Conversation:
    """What was said and done, from the system's turn to the last one.

    Attributes:
        turns: All turns, those of the history too; the results in them are what the model read.
        replies: What the model answered, in order; their turns stand in *turns* too.
        answer: The last answer, a text or the exact value that was asked for; None where it did not come to one.
    """

    turns: tuple[Turn, ...]
    replies: tuple[Reply, ...] = ()
    answer: Any = None

    def __attrs_post_init__(self) -> None:
        require_fields("conversation", self, turns=TURNS, replies=REPLIES)

    @property
    def usage(self) -> Usage:
        """How many tokens all replies took together, by the model's own count."""
        return sum((reply.usage for reply in self.replies), Usage())

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """What came of each call, in order."""
        return tuple(result for turn in self.turns for result in turn.tool_results)


class ConversationError(LLMError):
    """A conversation did not come to its answer; what was said and done until then is kept.

    Attributes:
        conversation: All of it.
    """

    def __init__(self, text: str, *, code: str, retry: Retry, conversation: Conversation) -> None:
        parts = {"retry": (retry, RETRY), "conversation": (conversation, instance(Conversation))}
        require("ConversationError", **parts)
        super().__init__(text, code=code, retry=retry)
        self.conversation = conversation


@attrs.frozen
class Said:
    """A piece of text, as it came from the model."""

    text: str

    def __attrs_post_init__(self) -> None:
        require_fields("said", self, text=STRING)


@attrs.frozen
class Retrying:
    """A request is made again, after some seconds."""

    retried: Retried

    def __attrs_post_init__(self) -> None:
        require_fields("retrying", self, retried=instance(Retried))


@attrs.frozen
class Replied:
    """A reply has come, whole."""

    reply: Reply

    def __attrs_post_init__(self) -> None:
        require_fields("replied", self, reply=instance(Reply))


@attrs.frozen
class Calling:
    """A call that the model asked for begins; nothing of it has been looked at, so its arguments may hold secrets."""

    call: ToolCall

    def __attrs_post_init__(self) -> None:
        require_fields("calling", self, call=CALL)


@attrs.frozen
class Called:
    """A call has ended; what its tool calls secret stands neither in the call nor in the result."""

    call: ToolCall
    result: ToolResult

    def __attrs_post_init__(self) -> None:
        require_fields("called", self, call=CALL, result=instance(ToolResult))


@attrs.frozen
class Gave:
    """A call gave an item of its stream, in which no secret stands; the call is as it began."""

    call: ToolCall
    item: Any

    def __attrs_post_init__(self) -> None:
        require_fields("gave", self, call=CALL)


Event = Said | Retrying | Replied | Calling | Gave | Called
"""What a host is told while a conversation goes on."""
