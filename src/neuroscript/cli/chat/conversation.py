"""Code shared by ``ask`` and ``chat``: the model of the options, the tools that it may call, and one answer."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from neuroscript.cli.chat.listener import ConversationListener
from neuroscript.cli.chat.models import MODEL, own_key
from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.cli.terminal.output import Output, reason_of
from neuroscript.cli.terminal.spinner import Spinner
from neuroscript.coercion.plain_data import to_plain
from neuroscript.engine.session import Session
from neuroscript.errors import LLMError
from neuroscript.io.text import quote_untrusted
from neuroscript.llm.clients import Model, model
from neuroscript.llm.events import Conversation
from neuroscript.llm.library import package
from neuroscript.llm.loop import converse
from neuroscript.llm.offered_tools import offered_infos, unmatched_patterns
from neuroscript.llm.structured_output import answer_spec
from neuroscript.llm.transcripts import conversation_to_data
from neuroscript.llm.turn_record import TurnRecord
from neuroscript.runtime.interfaces import ToolInfo, Turn


def open_model(options: Namespace) -> Model:
    """Return the model that the options or the environment select, without sending a request.

    Raises:
        UsageError: The directory in which ``llm`` stores its settings cannot be used.
        LLMError: The model is unknown, there is no key for it, or a package is missing.
        SpecError: The answer type is invalid.
    """
    if options.answer_type is not None:
        answer_spec(options.answer_type)
    within: dict[str, Any] = {}
    if options.timeout is not None:
        within = {"timeout": min(60.0, options.timeout), "total_timeout": options.timeout}
    try:
        return model(
            options.model or os.environ.get(MODEL) or _default(),
            base_url=options.base_url or "",
            key=own_key(options.base_url),
            api=options.api,
            stream=not options.no_stream,
            **within,
        )
    except OSError as error:
        raise UsageError(f"cannot use the settings directory of llm: {reason_of(error)}") from None


def _default() -> str:
    """Return the default model of ``llm``."""
    name: str = package().get_default_model()
    return name


def offered_tools(session: Session, patterns: Sequence[str]) -> list[ToolInfo]:
    """Return the tools that a model may call.

    Raises:
        UsageError: A pattern matches no tool that may be called.
        SpecError: A pattern is invalid.
    """
    allowing = session.policy.narrowed(allow=patterns)
    for pattern in unmatched_patterns(session, patterns):
        raise UsageError(f"--tools {quote_untrusted(pattern)} matches no tool that may be called here")
    return [info for info in offered_infos(session) if allowing.allowing(info.spec.full_name)]


def listener(options: Namespace, output: Output, session: Session, prompt: str) -> ConversationListener:
    """Return a listener that prints the answer to a prompt as it arrives."""
    shows = not options.json and options.answer_type is None
    return ConversationListener(output, Spinner(not options.json), shows, TurnRecord(session, [Turn("user", prompt)]))


def answer(
    session: Session,
    asked: Model,
    prompt: str,
    options: Namespace,
    hearing: ConversationListener,
    history: Sequence[Turn] = (),
) -> Conversation:
    """Send a prompt and return the conversation with the answer, showing progress meanwhile.

    Raises:
        ConversationError: There is no answer.
        ReaderGone: The reader of the text has gone.
        KeyboardInterrupt: The user interrupted it.
    """
    hearing.waiting.start()
    try:
        with hearing.output.tools_aside():
            return converse(
                session,
                prompt,
                tools=options.tools,
                model=asked,
                system=options.system,
                history=history,
                answer=options.answer_type,
                turns=options.max_turns,
                calls=options.max_calls,
                seconds=options.timeout,
                search_above=options.search_above,
                on_event=hearing,
            )
    finally:
        hearing.end()


def print_answer(conversation: Conversation, options: Namespace, output: Output) -> None:
    """Print the value of a typed answer; an untyped answer has been printed as it arrived."""
    if options.answer_type is None or options.json:
        return
    if isinstance(conversation.exact_answer, str):
        output.text(conversation.exact_answer)
    else:
        output.json(to_plain(conversation.exact_answer))


def error_text(error: LLMError) -> str:
    """Return the message of a model error, with its code and its retry hint."""
    return f"{error} ({error.code}, retry: {error.retry})"


def as_data(conversation: Conversation, error: LLMError | None = None) -> Mapping[str, Any]:
    """Return a conversation, and its error if there is one, as plain data."""
    failed = {} if error is None else {"error": {"code": error.code, "retry": error.retry, "message": error.text}}
    return {**conversation_to_data(conversation), **failed}
