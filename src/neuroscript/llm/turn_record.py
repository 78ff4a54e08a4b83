"""The record of a running turn, from its events: what remains of the conversation if the turn is interrupted."""

from __future__ import annotations

import attrs

from neuroscript.engine.session import Session
from neuroscript.llm.events import CallEnded, Conversation, Event, ReplyReceived, TextReceived
from neuroscript.llm.loop import DEFAULT_MAX_CHARS
from neuroscript.runtime.interfaces import ToolCall, ToolResult, Turn
from neuroscript.runtime.redacting_proxies import redacted_turn
from neuroscript.runtime.replies import Reply
from neuroscript.runtime.result_text import shorten


@attrs.define
class TurnRecord:
    """Everything that a turn has completed so far. It is not thread-safe; pass one event at a time.

    Attributes:
        session: The session whose tools are called.
        turns: The conversation from the prompt on; every call in it has its result.
        replies: The complete replies.
        text: The text of the incomplete reply.
    """

    session: Session
    turns: list[Turn]
    replies: list[Reply] = attrs.Factory(list)
    text: str = ""
    _pending_turn: Turn | None = None
    _results: dict[int, ToolResult] = attrs.Factory(dict)

    def add(self, event: Event) -> bool:
        """Record an event, and return whether it has completed the calls of a reply."""
        match event:
            case TextReceived(text):
                self.text += text
            case ReplyReceived(reply):
                self._replied(reply)
            case CallEnded(call, result):
                return self._called(call, result)
        return False

    @property
    def whole(self) -> tuple[Turn, ...]:
        """The turns with secrets redacted."""
        return tuple(map(self._discreet, self.turns))

    def conversation(self, before: tuple[Turn, ...] = ()) -> Conversation:
        """Return the conversation after the turns *before*, including the text of the incomplete reply."""
        return self.with_rest(Conversation((*before, *self.whole), tuple(self.replies)))

    def with_rest(self, conversation: Conversation) -> Conversation:
        """Return a conversation with the text of the incomplete reply."""
        if not self.text:
            return conversation
        rest = self._discreet(Turn("assistant", self.text))
        return attrs.evolve(conversation, turns=(*conversation.turns, rest))

    def _replied(self, reply: Reply) -> None:
        self.text = ""
        self.replies.append(reply)
        self._pending_turn, self._results = reply.turn if reply.turn.tool_calls else None, {}
        if self._pending_turn is None:
            self.turns.append(reply.turn)

    def _called(self, call: ToolCall, result: ToolResult) -> bool:
        if self._pending_turn is None:
            return False
        self._results[self._call_index(call)] = shorten(result, DEFAULT_MAX_CHARS)
        if len(self._results) < len(self._pending_turn.tool_calls):
            return False
        results = tuple(self._results[at] for at in sorted(self._results))
        self.turns += [self._pending_turn, Turn("tool", tool_results=results)]
        self._pending_turn = None
        return True

    def _call_index(self, call: ToolCall) -> int:
        """Return the index of a call that has ended; calls end in any order, and their secrets are redacted."""
        calls = self._pending_turn.tool_calls if self._pending_turn is not None else ()
        left = [at for at in range(len(calls)) if at not in self._results]
        return next((at for at in left if calls[at].id == call.id), left[0])

    def _discreet(self, turn: Turn) -> Turn:
        secrets = self.session.secrets
        return turn if secrets is None else redacted_turn(secrets, turn)


def without_system_turn(conversation: Conversation) -> tuple[Turn, ...]:
    """Return the turns of a conversation without the system turn, which every prompt adds again."""
    return tuple(turn for turn in conversation.turns if turn.role != "system")


def completed_part(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Return the part of a failed turn up to its last completed call.

    The model must know the calls because their effects remain. A prompt without calls is dropped, and so is an invalid
    answer at the end.
    """
    last = max((at for at, turn in enumerate(turns) if turn.tool_results), default=-1)
    return turns[: last + 1]
