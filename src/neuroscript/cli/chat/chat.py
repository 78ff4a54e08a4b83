"""``neuroscript chat``: a conversation with a model in one session, at a terminal or from a pipe."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from neuroscript.cli.chat.conversation import (
    answer,
    as_data,
    error_text,
    listener,
    offered_tools,
    open_model,
    print_answer,
)
from neuroscript.cli.chat.input_lines import InputLine, piped_lines, terminal_lines
from neuroscript.cli.chat.listener import OutputClosedEarly
from neuroscript.cli.chat.transcript import write_transcript
from neuroscript.cli.env.engine import MakeEngine, open_engine
from neuroscript.cli.terminal.exit_codes import OK, UsageError, exit_code
from neuroscript.cli.terminal.inputs import STDIN, count_of
from neuroscript.cli.terminal.output import Output
from neuroscript.engine.session import Session
from neuroscript.errors import LLMError
from neuroscript.io.text import is_terminal, quote_untrusted
from neuroscript.llm.clients import Model
from neuroscript.llm.events import Conversation, ConversationError
from neuroscript.llm.turn_record import completed_part, without_system_turn
from neuroscript.runtime.interfaces import Turn
from neuroscript.runtime.replies import Reply, Usage

HELP: Final = """\
/tools      list the tools that the model may call
/usage      show how many tokens were used
/save FILE  write the transcript to a file
/retry      discard the last turn and ask its prompt again
/clear      discard the conversation; variables, handles and approvals remain
/quit       end the chat (or press Ctrl-D)
//…         send a prompt that begins with /
"""


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Chat with a model until the input ends, and return the exit code.

    Raises:
        UsageError: A pattern matches no tool, or the transcript cannot be written.
        SpecError: The engine rejects an option, or the answer type is invalid.
        LLMError: The model is unknown, or there is no key for it.
    """
    attended = is_terminal(sys.stdin)
    options.prompt = None if attended else STDIN
    try:
        model = open_model(options)
    except LLMError as error:
        output.say(error_text(error))
        return exit_code(error)
    with model, open_engine(make_engine, output, options, llm=model) as engine, engine.session() as session:
        chat = Chat(session, model, options, output, attended)
        offered_tools(session, options.tools)
        if attended:
            output.say(f"{model.name}; /help lists the commands, Ctrl-D ends the chat")
        return chat.run(terminal_lines() if attended else piped_lines())


@attrs.define
class Chat:
    """The state of one chat.

    Attributes:
        attended: Whether stdin is a terminal.
        turns: The conversation without system turns; every call in it has its result.
        replies: All replies of the model, including those of discarded turns.
        used: The tokens of all replies, including those of failed turns.
        answer: The last answer; None if the last turn failed.
        prompt: The last prompt, or ``""``.
        before: The number of turns before the last prompt.
        code: The exit code of the first failed turn.
    """

    session: Session
    model: Model
    options: Namespace
    output: Output
    attended: bool
    turns: tuple[Turn, ...] = ()
    replies: tuple[Reply, ...] = ()
    used: Usage = attrs.Factory(Usage)
    answer: Any = None
    prompt: str = ""
    before: int = 0
    code: int = OK

    def run(self, lines: Iterator[InputLine]) -> int:
        """Process every line, and return the exit code."""
        try:
            for line in lines:
                if not self._take(line):
                    break
        finally:
            write_transcript(self.options.transcript, self.conversation)
        if self.options.json:
            self.output.json(as_data(self.conversation))
        return OK if self.attended else self.code

    @property
    def conversation(self) -> Conversation:
        """The conversation with its system turn."""
        system = (Turn("system", self.options.system),) if self.options.system else ()
        return Conversation((*system, *self.turns), self.replies, self.answer)

    def _take(self, line: InputLine) -> bool:
        """Process a line, and return whether the chat continues."""
        text = line.text.strip()
        if line.fault:
            self._fail(line.fault, 2)
        elif text.startswith("/") and not text.startswith("//"):
            return self._command(text)
        elif text:
            self._ask(text.removeprefix("/") if text.startswith("//") else text)
        return True

    def _command(self, text: str) -> bool:
        word, _, rest = text.partition(" ")
        if word == "/quit":
            return False
        if word == "/save":
            self._save(rest.strip())
        elif word in COMMANDS:
            COMMANDS[word](self)
        else:
            self._fail(f"unknown command {quote_untrusted(word)}; /help lists the commands", 2)
        return True

    def _ask(self, prompt: str) -> None:
        """Send one prompt; report every error, and continue with the complete turns."""
        self.prompt, self.before, self.answer = prompt, len(self.turns), None
        hearing = listener(self.options, self.output, self.session, prompt)
        failed: tuple[Turn, ...]
        try:
            conversation = answer(self.session, self.model, prompt, self.options, hearing, self.turns)
        except ConversationError as error:
            self._fail(error_text(error), exit_code(error))
            failed = without_system_turn(error.conversation)[self.before :]
        except OutputClosedEarly as gone:
            raise gone.__cause__ or gone from None
        except KeyboardInterrupt:
            if not self.attended:
                raise
            self.output.say("the turn was interrupted")
            failed = hearing.record.whole
        else:
            self.turns = without_system_turn(conversation)
            self.answer = conversation.exact_answer
            self._count(conversation.replies)
            print_answer(conversation, self.options, self.output)
            return
        self._count(tuple(hearing.record.replies))
        self.turns += completed_part(failed)

    def _count(self, replies: tuple[Reply, ...]) -> None:
        self.replies += replies
        self.used = sum((reply.usage for reply in replies), self.used)

    def _fail(self, sentence: str, code: int) -> None:
        self.output.say(sentence)
        self.code = self.code or code

    def _save(self, file: str) -> None:
        if not file:
            self._fail("expected a file name: /save FILE", 2)
            return
        try:
            write_transcript(file, self.conversation)
        except UsageError as error:
            self._fail(str(error), 2)
        else:
            self.output.say(f"wrote {count_of(len(self.turns), 'turn')}")

    def show_tools(self) -> None:
        """Print the tools that the model may call."""
        infos = offered_tools(self.session, self.options.tools)
        for info in infos:
            self.output.say(f"{info.spec.full_name}  {info.spec.description.partition(chr(10))[0]}")
        if not infos:
            self.output.say("the model may not call any tools; allow some with --tools PATTERN")

    def show_usage(self) -> None:
        """Print how many tokens were used."""
        self.output.say(f"{self.used.input_tokens} tokens in, {self.used.output_tokens} out")

    def retry(self) -> None:
        """Discard the last turn and send its prompt again."""
        if not self.prompt:
            self._fail("there is no prompt to retry", 2)
            return
        self.turns = self.turns[: self.before]
        self._ask(self.prompt)

    def clear(self) -> None:
        """Discard the conversation."""
        self.turns, self.answer, self.prompt, self.before = (), None, "", 0
        self.output.say("the conversation was cleared")

    def help(self) -> None:
        """Print the commands."""
        for each in HELP.splitlines():
            self.output.say(each)


COMMANDS: Final[dict[str, Callable[[Chat], None]]] = {
    "/tools": Chat.show_tools,
    "/usage": Chat.show_usage,
    "/retry": Chat.retry,
    "/clear": Chat.clear,
    "/help": Chat.help,
}
"""The functions of the commands without arguments, except ``/quit``."""
