"""Output of a running conversation: text on stdout, calls and retries on stderr; all of it is recorded.

Text from a model is untrusted: control characters in it never reach a terminal.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Final

import attrs

from neuroscript.cli.terminal.output import Output, OutputClosed, OutputError, visible
from neuroscript.cli.terminal.remedies import action
from neuroscript.cli.terminal.spinner import Spinner
from neuroscript.engine.session import Session
from neuroscript.errors import CallError
from neuroscript.llm.events import (
    CallEnded,
    CallStarted,
    Conversation,
    Event,
    ReplyReceived,
    RetryScheduled,
    TextReceived,
)
from neuroscript.llm.loop import DEFAULT_MAX_CHARS
from neuroscript.llm.transcripts import call_line, result_line
from neuroscript.names import from_wire
from neuroscript.runtime.interfaces import ToolCall, ToolResult, Turn
from neuroscript.runtime.redacting_proxies import redacted_turn
from neuroscript.runtime.replies import Reply
from neuroscript.runtime.result_text import shorten

MAX_SHOWN_CHARS: Final = 200
"""Maximum characters of a call, or of its result, in a message."""


class OutputClosedEarly(BaseException):
    """The results cannot be written any more, so the conversation stops; the cause is the output error."""


@attrs.define
class ConversationListener:
    """A listener that prints and records one conversation.

    Attributes:
        output: The output of the command.
        waiting: The spinner.
        shows_text: Whether text is printed as it arrives.
        session: The session whose tools are called.
        turns: The conversation from the prompt on; every call in it has its result.
        replies: The complete replies.
        text: The text of the incomplete reply.
    """

    output: Output
    waiting: Spinner
    shows_text: bool
    session: Session
    turns: list[Turn]
    replies: list[Reply] = attrs.Factory(list)
    text: str = ""
    _open: bool = False
    _pending_turn: Turn | None = None
    _results: dict[int, ToolResult] = attrs.Factory(dict)
    _lock: Any = attrs.Factory(Lock)

    def __call__(self, event: Event) -> None:
        """Print and record one event; this method is thread-safe.

        Raises:
            ReaderGone: The reader of the text has gone.
        """
        with self._lock:
            match event:
                case TextReceived(text):
                    self._say(text)
                case RetryScheduled(retried):
                    self._tell(f"retrying in {retried.seconds:.2g} s ({retried.code})")
                case ReplyReceived(reply):
                    self._replied(reply)
                case CallStarted(call):
                    self._tell(f"calls {self._format_call(call)}")
                case CallEnded(call, result):
                    self._called(call, result)

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

    def end(self) -> None:
        """Stop the spinner and end the current line of text.

        Raises:
            ReaderGone: The reader of the text has gone.
        """
        self.waiting.stop()
        if self._open:
            self._open = False
            self._write("\n")

    def _say(self, text: str) -> None:
        self.text += text
        if self.shows_text and text:
            self.waiting.stop()
            self._open = not text.endswith("\n")
            self._write(visible(text) if self.output.is_terminal else text)

    def _write(self, text: str) -> None:
        try:
            self.output.write(text)
        except (OutputClosed, OutputError) as error:
            self._open = False
            raise OutputClosedEarly from error

    def _tell(self, sentence: str) -> None:
        self.end()
        secrets = self.session.secrets
        line = sentence if secrets is None else secrets.text(sentence)
        self.output.say(line if len(line) <= MAX_SHOWN_CHARS else f"{line[:MAX_SHOWN_CHARS]}…")

    def _advise(self, error: CallError) -> None:
        """Print the option that permits the call, without shortening it."""
        todo = action(error, shows_tracebacks=self.output.shows_tracebacks)
        if todo:
            secrets = self.session.secrets
            self.output.say(todo if secrets is None else secrets.text(todo))

    def _format_call(self, call: ToolCall) -> str:
        """Return a call in one line; only the name if the tool takes secrets, which are not registered yet."""
        info = self.session.infos.get(from_wire(call.name))
        if info is not None and any(arg.secret for arg in info.spec.args):
            return f"{info.spec.full_name} (its arguments are secret)"
        return call_line(call)

    def _replied(self, reply: Reply) -> None:
        self.end()
        self.text = ""
        self.replies.append(reply)
        self._pending_turn, self._results = reply.turn if reply.turn.tool_calls else None, {}
        if self._pending_turn is None:
            self.turns.append(reply.turn)

    def _called(self, call: ToolCall, result: ToolResult) -> None:
        self._tell(result_line(result))
        if result.error is not None:
            self._advise(result.error)
        if self._pending_turn is None:
            return
        self._results[self._call_index(call)] = shorten(result, DEFAULT_MAX_CHARS)
        if len(self._results) == len(self._pending_turn.tool_calls):
            results = tuple(self._results[at] for at in sorted(self._results))
            self.turns += [self._pending_turn, Turn("tool", tool_results=results)]
            self._pending_turn = None
            self.waiting.start()

    def _call_index(self, call: ToolCall) -> int:
        """Return the index of a call that has ended; calls end in any order, and their secrets are redacted."""
        calls = self._pending_turn.tool_calls if self._pending_turn is not None else ()
        left = [at for at in range(len(calls)) if at not in self._results]
        return next((at for at in left if calls[at].id == call.id), left[0])

    def _discreet(self, turn: Turn) -> Turn:
        secrets = self.session.secrets
        return turn if secrets is None else redacted_turn(secrets, turn)
