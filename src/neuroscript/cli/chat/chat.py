"""``neuroscript chat``: a conversation at a terminal, or of the lines of a pipe, in one session.

Source: issue "Models", ``chat``.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from neuroscript.cli.chat.conversation import answered, as_data, listener, offered, reached, tell_answer, told_error
from neuroscript.cli.chat.input_lines import Typed, piped, typed
from neuroscript.cli.chat.listener import ReaderGone
from neuroscript.cli.chat.transcript import keep
from neuroscript.cli.env.engine import MakeEngine, opened
from neuroscript.cli.terminal.exit_codes import OK, UsageError, exit_code
from neuroscript.cli.terminal.inputs import STDIN, counted
from neuroscript.cli.terminal.output import Output
from neuroscript.engine.session import Session
from neuroscript.errors import LLMError
from neuroscript.io.text import is_terminal, shown
from neuroscript.llm.clients import Model
from neuroscript.llm.events import Conversation, ConversationError
from neuroscript.runtime.interfaces import Turn
from neuroscript.runtime.replies import Reply, Usage

HELP: Final = """\
/tools      the tools that the model may call
/usage      how many tokens it took so far
/save FILE  write down what was said and done
/retry      ask the last prompt again, as if it had not been asked
/clear      forget what was said; variables, handles and approvals stay
/quit       end the chat, as Ctrl-D does
//…         a prompt that begins with /
"""


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Talk with a model until the input ends, and return the exit code.

    Raises:
        UsageError: A pattern matches no tool, or what was said can not be written down.
        SpecError: An option is none that the engine takes, or the answers are to be of no type.
        LLMError: There is no such model, or no key for it.
    """
    attended = is_terminal(sys.stdin)
    options.prompt = None if attended else STDIN
    try:
        model = reached(options)
    except LLMError as error:
        output.say(told_error(error))
        return exit_code(error)
    with model, opened(make_engine, output, options, llm=model) as engine, engine.session() as session:
        chat = Chat(session, model, options, output, attended)
        offered(session, options.tools)
        if attended:
            output.say(f"{model.name}; /help tells of the commands, Ctrl-D ends")
        return chat.run(typed() if attended else piped())


@attrs.define
class Chat:
    """One chat as far as it has come.

    Attributes:
        attended: Whether somebody types it.
        turns: What was said, without the turns of the system; it has each call with its result, or not at all.
        replies: Each reply of a turn that is kept, or was.
        used: The tokens of all replies, those of turns that failed too.
        answer: The last answer, None where the last turn failed.
        prompt: The last prompt, or ``""``.
        before: How many turns there were before it.
        code: The exit code of the first turn that failed.
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

    def run(self, lines: Iterator[Typed]) -> int:
        """Take each line until there is none, and return the exit code."""
        try:
            for line in lines:
                if not self._take(line):
                    break
        finally:
            keep(self.options.transcript, self.conversation)
        if self.options.json:
            self.output.json(as_data(self.conversation))
        return OK if self.attended else self.code

    @property
    def conversation(self) -> Conversation:
        """All that was said and is kept."""
        system = (Turn("system", self.options.system),) if self.options.system else ()
        return Conversation((*system, *self.turns), self.replies, self.answer)

    def _take(self, line: Typed) -> bool:
        """Carry out a line, and tell whether the chat goes on."""
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
            self._fail(f"there is no command {shown(word)}; /help tells which there are", 2)
        return True

    def _ask(self, prompt: str) -> None:
        """Ask one prompt; whatever goes wrong is told, and the chat goes on with the turns that are whole."""
        self.prompt, self.before, self.answer = prompt, len(self.turns), None
        hearing = listener(self.options, self.output, self.session, prompt)
        failed: tuple[Turn, ...]
        try:
            conversation = answered(self.session, self.model, prompt, self.options, hearing, self.turns)
        except ConversationError as error:
            self._fail(told_error(error), exit_code(error))
            failed = _said(error.conversation)[self.before :]
        except ReaderGone as gone:
            raise gone.__cause__ or gone from None
        except KeyboardInterrupt:
            if not self.attended:
                raise
            self.output.say("this turn was interrupted")
            failed = hearing.whole
        else:
            self.turns = _said(conversation)
            self.answer = conversation.answer
            self._count(conversation.replies)
            tell_answer(conversation, self.options, self.output)
            return
        self._count(tuple(hearing.replies))
        self.turns += _whole(failed)

    def _count(self, replies: tuple[Reply, ...]) -> None:
        self.replies += replies
        self.used = sum((reply.usage for reply in replies), self.used)

    def _fail(self, sentence: str, code: int) -> None:
        self.output.say(sentence)
        self.code = self.code or code

    def _save(self, file: str) -> None:
        if not file:
            self._fail("/save needs the name of a file", 2)
            return
        try:
            keep(file, self.conversation)
        except UsageError as error:
            self._fail(str(error), 2)
        else:
            self.output.say(f"wrote {counted(len(self.turns), 'turn')}")

    def show_tools(self) -> None:
        """Say which tools the model may call."""
        infos = offered(self.session, self.options.tools)
        for info in infos:
            self.output.say(f"{info.spec.full_name}  {info.spec.description.partition(chr(10))[0]}")
        if not infos:
            self.output.say("the model may call no tool; --tools names some")

    def show_usage(self) -> None:
        """Say how many tokens were used."""
        self.output.say(f"{self.used.input_tokens} tokens in, {self.used.output_tokens} out")

    def retry(self) -> None:
        """Ask the last prompt again; what came of it is forgotten."""
        if not self.prompt:
            self._fail("nothing was asked yet", 2)
            return
        self.turns = self.turns[: self.before]
        self._ask(self.prompt)

    def clear(self) -> None:
        """Forget what was said."""
        self.turns, self.answer, self.prompt, self.before = (), None, "", 0
        self.output.say("what was said is forgotten")

    def help(self) -> None:
        """Say which commands there are."""
        for each in HELP.splitlines():
            self.output.say(each)


def _said(conversation: Conversation) -> tuple[Turn, ...]:
    """Return the turns of a conversation but that of the system, which stands before each prompt anew."""
    return tuple(turn for turn in conversation.turns if turn.role != "system")


def _whole(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Return what a turn that failed leaves behind: calls that were made, with their results, and what led to them.

    What they did is done, so the model has to know of it; a prompt of which nothing came is left out, and so is a
    last answer that was no good.
    """
    last = max((at for at, turn in enumerate(turns) if turn.tool_results), default=-1)
    return turns[: last + 1]


COMMANDS: Final[dict[str, Callable[[Chat], None]]] = {
    "/tools": Chat.show_tools,
    "/usage": Chat.show_usage,
    "/retry": Chat.retry,
    "/clear": Chat.clear,
    "/help": Chat.help,
}
"""What carries out each command that takes no words; all but ``/quit`` and ``/save``."""
