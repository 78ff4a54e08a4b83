"""``neuroscript ask``: send one prompt to a model, which may call tools, and print its answer."""

from __future__ import annotations

from argparse import Namespace

from neuroscript.cli.chat.conversation import (
    answer,
    as_data,
    error_text,
    listener,
    offered_tools,
    open_model,
    print_answer,
)
from neuroscript.cli.chat.listener import ConversationListener, OutputClosedEarly
from neuroscript.cli.chat.transcript import write_transcript
from neuroscript.cli.env.engine import MakeEngine, open_engine
from neuroscript.cli.terminal.exit_codes import OK, UsageError, exit_code
from neuroscript.cli.terminal.inputs import STDIN, text_of
from neuroscript.cli.terminal.output import Output
from neuroscript.engine.session import Session
from neuroscript.errors import LLMError
from neuroscript.io.text import is_terminal
from neuroscript.llm.clients import Model
from neuroscript.llm.events import Conversation, ConversationError
from neuroscript.runtime.interfaces import Turn


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Ask a model, print its answer, and return the exit code.

    Raises:
        UsageError: The prompt is missing or cannot be read, or a pattern matches no tool.
        SpecError: The engine rejects an option, or the answer type is invalid.
    """
    prompt = _prompt(options)
    try:
        with open_model(options) as model, open_engine(make_engine, output, options, llm=model) as engine:
            offered_tools(engine, options.tools)
            return _print_answer(engine, model, prompt, options, output)
    except LLMError as error:  # the model could not be reached, so there is no conversation yet
        return _failed(error, Conversation((Turn("user", prompt),)), options, output)


def _prompt(options: Namespace) -> str:
    """Return the prompt; if it comes from standard input, tools cannot read from there."""
    import sys

    if options.prompt is None:
        if is_terminal(sys.stdin):
            raise UsageError("expected a prompt: pass it in quotes, or pipe it in (see neuroscript ask --help)")
        options.prompt = STDIN
    text = text_of(STDIN).removesuffix("\n") if options.prompt == STDIN else options.prompt
    if not text.strip():
        raise UsageError("the prompt is empty (see neuroscript ask --help)")
    return text


def _print_answer(engine: Session, model: Model, prompt: str, options: Namespace, output: Output) -> int:
    listening = listener(options, output, engine, prompt)
    try:
        conversation = answer(engine, model, prompt, options, listening)
    except ConversationError as error:
        return _failed(error, listening.record.with_rest(error.conversation), options, output)
    except OutputClosedEarly as gone:
        write_transcript(options.transcript, listening.record.conversation(_system_turns(options)), "output closed")
        raise gone.__cause__ or gone from None
    except KeyboardInterrupt:
        _interrupted(listening, options, output)
        raise
    write_transcript(options.transcript, conversation)
    print_answer(conversation, options, output)
    if options.json:
        output.json(as_data(conversation))
    return OK


def _system_turns(options: Namespace) -> tuple[Turn, ...]:
    return (Turn("system", options.system),) if options.system else ()


def _interrupted(hearing: ConversationListener, options: Namespace, output: Output) -> None:
    conversation = hearing.record.conversation(_system_turns(options))
    write_transcript(options.transcript, conversation, "interrupted")
    if options.json:
        output.json({**as_data(conversation), "error": {"code": "interrupted", "retry": "host", "message": ""}})


def _failed(error: LLMError, conversation: Conversation, options: Namespace, output: Output) -> int:
    output.say(error_text(error))
    output.say_help(error.code)
    write_transcript(options.transcript, conversation, error_text(error))
    if options.json:
        output.json(as_data(conversation, error))
    return exit_code(error)
