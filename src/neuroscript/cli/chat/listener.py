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
from neuroscript.llm.events import CallEnded, CallStarted, Event, ReplyReceived, RetryScheduled, TextReceived
from neuroscript.llm.transcripts import call_line, result_line
from neuroscript.llm.turn_record import TurnRecord
from neuroscript.names import from_wire
from neuroscript.runtime.interfaces import ToolCall

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
        record: What is recorded.
    """

    output: Output
    waiting: Spinner
    shows_text: bool
    record: TurnRecord
    _open: bool = False
    _lock: Any = attrs.Factory(Lock)

    def __call__(self, event: Event) -> None:
        """Print and record one event; this method is thread-safe.

        Raises:
            ReaderGone: The reader of the text has gone.
        """
        with self._lock:
            is_complete = self.record.add(event)
            match event:
                case TextReceived(text):
                    self._say(text)
                case RetryScheduled(retried):
                    self._tell(f"retrying in {retried.seconds:.2g} s ({retried.code})")
                case ReplyReceived():
                    self.end()
                case CallStarted(call):
                    self._tell(f"calls {self._format_call(call)}")
                case CallEnded(_, result):
                    self._tell(result_line(result))
                    if result.error is not None:
                        self._advise(result.error)
                    if is_complete:
                        self.waiting.start()

    @property
    def session(self) -> Session:
        """The session whose tools are called."""
        return self.record.session

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
