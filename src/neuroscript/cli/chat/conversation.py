"""What ``ask`` and ``chat`` share: the model that the words name, the tools that it may call, and one answer of it.

Source: issue "Models", ``ask`` and ``chat``.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from neuroscript.cli.chat.listener import Hearing
from neuroscript.cli.chat.models import MODEL, own_key
from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.cli.terminal.output import Output, reason_of
from neuroscript.cli.terminal.spinner import Waiting
from neuroscript.coercion.plain_data import plain
from neuroscript.engine.session import Session
from neuroscript.errors import LLMError
from neuroscript.io.text import shown
from neuroscript.llm.clients import Model, model
from neuroscript.llm.events import Conversation
from neuroscript.llm.loop import converse
from neuroscript.llm.offered_tools import unmatched
from neuroscript.llm.structured_output import answer_spec
from neuroscript.llm.transcripts import conversation_to_data
from neuroscript.runtime.interfaces import ToolInfo, Turn


def reached(options: Namespace) -> Model:
    """Return the model that the words, or the environment, name; nothing is asked of it yet.

    Raises:
        UsageError: The directory in which ``llm`` keeps its settings can not be used.
        LLMError: There is none of that name, no key for it, or a package is missing.
        SpecError: What it is to answer is no type.
    """
    if options.answer is not None:
        answer_spec(options.answer)
    within: dict[str, Any] = {}
    if options.timeout is not None:
        within = {"timeout": min(60.0, options.timeout), "longest": options.timeout}
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
        raise UsageError(f"can not use the directory of llm: {reason_of(error)}") from None


def _default() -> str:
    """Return the model that ``llm`` asks where nobody names one."""
    from neuroscript.llm.library import package

    name: str = package().get_default_model()
    return name


def offered(session: Session, patterns: Sequence[str]) -> list[ToolInfo]:
    """Return the tools that a model may call.

    Raises:
        UsageError: A pattern matches none that may be called.
        SpecError: It is none.
    """
    allowing = session.policy.narrowed(allow=patterns)
    for pattern in unmatched(session, patterns):
        raise UsageError(f"--tools {shown(pattern)} matches no tool that may be called here")
    return [info for name, info in session.infos.items() if allowing.allowing(name)]


def listener(options: Namespace, output: Output, session: Session, prompt: str) -> Hearing:
    """Return what tells of the answer to a prompt while it comes."""
    shows = not options.json and options.answer is None
    return Hearing(output, Waiting(not options.json), shows, session, [Turn("user", prompt)])


def answered(
    session: Session, asked: Model, prompt: str, options: Namespace, hearing: Hearing, history: Sequence[Turn] = ()
) -> Conversation:
    """Return the conversation when the model has answered a prompt, and end what is shown meanwhile.

    Raises:
        ConversationError: It came to no answer.
        ReaderGone: Nobody reads its text any more.
        KeyboardInterrupt: Somebody ended it.
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
                answer=options.answer,
                turns=options.turns,
                calls=options.calls,
                seconds=options.timeout,
                on_event=hearing,
            )
    finally:
        hearing.end()


def tell_answer(conversation: Conversation, options: Namespace, output: Output) -> None:
    """Write the exact value of an answer, where one was asked for; a text has been written as it came."""
    if options.answer is None or options.json:
        return
    if isinstance(conversation.answer, str):
        output.text(conversation.answer)
    else:
        output.json(plain(conversation.answer))


def told_error(error: LLMError) -> str:
    """Return what is said of a model's error: what happened, its code, and who can change that."""
    return f"{error} ({error.code}, retry: {error.retry})"


def as_data(conversation: Conversation, error: LLMError | None = None) -> Mapping[str, Any]:
    """Return a conversation, and how it failed if it did, as plain data."""
    failed = {} if error is None else {"error": {"code": error.code, "retry": error.retry, "message": error.text}}
    return {**conversation_to_data(conversation), **failed}
