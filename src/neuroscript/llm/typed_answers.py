"""One typed answer from a model without tools, for tools and for hosts, from sync and async code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar, overload

from neuroscript.coercion.parameters import require
from neuroscript.llm.driver import Cancelled, request_reply, run_in_thread
from neuroscript.llm.events import Event
from neuroscript.llm.loop import DEFAULT_MAX_CHARS, FORMS, adrive, conversation_in_errors, drive, opening_turns
from neuroscript.llm.steps import AskStep, CallStep, ConversationState
from neuroscript.llm.structured_output import answer_spec
from neuroscript.runtime.host import MODEL
from neuroscript.runtime.interfaces import AnyModel, Turn
from neuroscript.runtime.replies import Reply

T = TypeVar("T")

DEFAULT_ATTEMPTS: Final = 3
"""Default limit on the replies of a model that is asked for a typed answer."""


@overload
def ask(
    llm: AnyModel,
    prompt: str,
    *,
    answer: type[T],
    system: str = "",
    history: Sequence[Turn] = (),
    attempts: int = DEFAULT_ATTEMPTS,
) -> T: ...
@overload
def ask(
    llm: AnyModel,
    prompt: str,
    *,
    answer: None = None,
    system: str = "",
    history: Sequence[Turn] = (),
    attempts: int = DEFAULT_ATTEMPTS,
) -> str: ...
@overload
def ask(
    llm: AnyModel,
    prompt: str,
    *,
    answer: Any,
    system: str = "",
    history: Sequence[Turn] = (),
    attempts: int = DEFAULT_ATTEMPTS,
) -> Any: ...
def ask(
    llm: AnyModel,
    prompt: str,
    *,
    answer: Any = None,
    system: str = "",
    history: Sequence[Turn] = (),
    attempts: int = DEFAULT_ATTEMPTS,
) -> Any:
    """Ask a model without tools and return its answer as the requested type.

    A tool passes ``rt.llm``, so its capabilities and the redaction of secrets apply. Use `converse` if the model may
    call tools.

    Args:
        llm: The model.
        prompt: The user's prompt.
        answer: The type of the answer, as in `converse`: an `ArgType` or its name, an `ArgSpec`, or an annotation such
            as a dataclass or ``list[Item]``. The answer is repaired by this type and, for classes, returned as
            instances. An invalid answer goes back to the model with its problems. None accepts any text. A secret
            answer is not registered for redaction, because there is no session.
        system: Instructions for the model, placed before everything else.
        history: The turns of an earlier conversation to continue.
        attempts: Maximum number of replies.

    Raises:
        ConversationError: If there is no valid answer; it holds the turns so far.
        SpecError: If an argument is invalid.
    """
    state = _initial_state(llm, prompt, answer, system, history, attempts)
    with conversation_in_errors(state):
        return drive(state.steps(), lambda step: _reply(llm, step, _ignore)).answer


@overload
async def aask(
    llm: AnyModel,
    prompt: str,
    *,
    answer: type[T],
    system: str = "",
    history: Sequence[Turn] = (),
    attempts: int = DEFAULT_ATTEMPTS,
) -> T: ...
@overload
async def aask(
    llm: AnyModel,
    prompt: str,
    *,
    answer: None = None,
    system: str = "",
    history: Sequence[Turn] = (),
    attempts: int = DEFAULT_ATTEMPTS,
) -> str: ...
@overload
async def aask(
    llm: AnyModel,
    prompt: str,
    *,
    answer: Any,
    system: str = "",
    history: Sequence[Turn] = (),
    attempts: int = DEFAULT_ATTEMPTS,
) -> Any: ...
async def aask(
    llm: AnyModel,
    prompt: str,
    *,
    answer: Any = None,
    system: str = "",
    history: Sequence[Turn] = (),
    attempts: int = DEFAULT_ATTEMPTS,
) -> Any:
    """Return what `ask` returns, without blocking the event loop.

    The model is asked on a thread. If the caller is cancelled during a request, the request is abandoned and stops at
    the next piece of its reply.
    """
    state = _initial_state(llm, prompt, answer, system, history, attempts)
    is_over = False

    def listen(event: Event) -> None:
        if is_over:
            raise Cancelled

    try:
        with conversation_in_errors(state):
            conversation = await adrive(state.steps(), lambda step: run_in_thread(lambda: _reply(llm, step, listen)))
            return conversation.answer
    finally:
        is_over = True


def _initial_state(
    llm: AnyModel, prompt: str, answer: Any, system: str, history: Sequence[Turn], attempts: int
) -> ConversationState:
    parts = {"prompt": prompt, "answer": answer, "system": system, "history": history}
    forms = {name: (value, FORMS[name]) for name, value in parts.items()}
    require("ask", llm=(llm, MODEL), attempts=(attempts, FORMS["turns"]), **forms)
    spec = None if answer is None else answer_spec(answer)
    turns = [*opening_turns(system, history, spec), Turn("user", prompt)]
    return ConversationState(None, (), turns, attempts, 0, DEFAULT_MAX_CHARS, None, spec)


def _reply(llm: AnyModel, step: AskStep | CallStep, listen: Any) -> Reply:
    assert isinstance(step, AskStep), "without a session, the limit of 0 calls ends the conversation first"
    return request_reply(llm, step, listen, _ignore)


def _ignore(event: object) -> None:
    """Ignore an event, or a failure that the raised error has as its cause."""
