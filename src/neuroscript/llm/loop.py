"""Conversations in which a model may call the tools of an engine, from sync and async code."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, Final, NamedTuple

from neuroscript.coercion.parameters import (
    COUNT,
    FLAG,
    FUNCTION,
    SECONDS,
    STRING,
    WHOLE,
    as_tuple,
    collection,
    instance,
    optional,
    require,
    sequence,
)
from neuroscript.engine.session import Session
from neuroscript.errors import LLMError
from neuroscript.llm.driver import ConversationDriver, Listener
from neuroscript.llm.events import Conversation, ConversationError
from neuroscript.llm.offered_tools import narrow_session, offered_infos
from neuroscript.llm.plan_first import name_tools
from neuroscript.llm.steps import AskStep, CallStep, ConversationState, Steps
from neuroscript.llm.structured_output import ANSWER, answer_spec, instruction
from neuroscript.llm.tool_search import FoundTools
from neuroscript.runtime.host import MODEL
from neuroscript.runtime.interfaces import AnyModel, Turn
from neuroscript.spec.tool_spec import ToolSpec

DEFAULT_MAX_CHARS: Final = 100_000
"""Default limit on the characters of a result that the model reads."""


class ConversationLimits(NamedTuple):
    """The limits of a conversation; `converse` describes them."""

    turns: int
    calls: int
    seconds: float | None
    chars: int


def converse(
    engine: Session,
    prompt: str,
    *,
    tools: str | Iterable[str] = "*",
    model: AnyModel | None = None,
    system: str = "",
    history: Sequence[Turn] = (),
    answer: Any = None,
    turns: int = 16,
    calls: int = 64,
    seconds: float | None = None,
    chars: int = DEFAULT_MAX_CHARS,
    plan_first: bool = False,
    search_above: int | None = None,
    on_event: Listener | None = None,
) -> Conversation:
    """Ask a model, run the tool calls it requests, and return the conversation when it has answered.

    Each call runs through ``execute`` under the policy of *engine*. The model receives errors with a hint, so that it
    can correct its call. The calls of one turn run at the same time if all their tools are read-only, otherwise in
    order.

    Args:
        engine: An `Engine` or a session of one; its variables, handles, limits and approvals apply.
        prompt: The user's prompt.
        tools: Patterns over canonical names, such as ``fs.*``, for the tools that the model may call. They select from
            the tools that the policy permits; ``()`` selects none.
        model: The model; by default the one that the host provides.
        system: Instructions for the model, placed before everything else.
        history: The turns of an earlier conversation to continue, as in `Conversation.turns`. A turn whose calls do not
            all have results is left out, because no API accepts one.
        answer: The type of the final answer: an `ArgType` or its name, an `ArgSpec`, or an annotation that a parameter
            of a tool may have, such as a dataclass, a pydantic model or ``list[Item]``. The answer is repaired by this
            type and, for classes, returned as instances. An invalid answer goes back to the model with its problems.
            None accepts any text.
        turns: Maximum number of replies.
        calls: Maximum number of calls. If a turn requests more than are left, none of its calls run.
        seconds: Maximum time for the conversation. A call that has begun is awaited.
        chars: Maximum characters of one result that the model reads.
        plan_first: Whether the model first names the tools that it will need, before it has read any result. Each call
            of another tool then needs an approval; without an approver, such tools are not offered.
        search_above: The number of tools above which the model is offered a search, and then also the tools that it has
            found, instead of all tools. None always offers all tools.
        on_event: Receives every piece of text, reply, retry and call. Its exceptions are logged, and the conversation
            continues.

    Raises:
        ConversationError: If there is no answer; it holds the conversation so far.
        SpecError: If no tool matches a pattern, or an argument is invalid.
        LLMError: ``llm.no_model``, if neither *model* nor the host provides a model.
    """
    limits = ConversationLimits(turns, calls, seconds, chars)
    with _start(engine, prompt, tools, model, system, history, answer, limits, plan_first, search_above, on_event) as (
        steps,
        driver,
    ):
        return drive(steps, lambda step: driver.ask(step) if isinstance(step, AskStep) else driver.run(step))


async def aconverse(
    engine: Session,
    prompt: str,
    *,
    tools: str | Iterable[str] = "*",
    model: AnyModel | None = None,
    system: str = "",
    history: Sequence[Turn] = (),
    answer: Any = None,
    turns: int = 16,
    calls: int = 64,
    seconds: float | None = None,
    chars: int = DEFAULT_MAX_CHARS,
    plan_first: bool = False,
    search_above: int | None = None,
    on_event: Listener | None = None,
) -> Conversation:
    """Return what `converse` returns, without blocking the event loop.

    The model is asked on a thread. If the caller is cancelled during a request, the request is abandoned and stops at
    the next piece of its reply. *on_event* is called on the event loop.
    """
    limits = ConversationLimits(turns, calls, seconds, chars)
    with _start(engine, prompt, tools, model, system, history, answer, limits, plan_first, search_above, on_event) as (
        steps,
        driver,
    ):
        return await adrive(steps, lambda step: driver.aask(step) if isinstance(step, AskStep) else driver.arun(step))


def drive(steps: Steps, execute: Callable[[AskStep | CallStep], Any]) -> Conversation:
    """Pass each step to *execute*, send its outcome back, and return the conversation."""
    step = next(steps)
    while True:
        outcome = execute(step)
        try:
            step = steps.send(outcome)
        except StopIteration as end:
            return _result(end)


async def adrive(steps: Steps, execute: Callable[[AskStep | CallStep], Awaitable[Any]]) -> Conversation:
    """Do what `drive` does, and await each outcome."""
    step = next(steps)
    while True:
        outcome = await execute(step)
        try:
            step = steps.send(outcome)
        except StopIteration as end:
            return _result(end)


def _result(end: StopIteration) -> Conversation:
    conversation: Conversation = end.value
    return conversation


@contextmanager
def _start(
    engine: Session,
    prompt: str,
    tools: str | Iterable[str],
    model: AnyModel | None,
    system: str,
    history: Sequence[Turn],
    answer: Any,
    limits: ConversationLimits,
    plan_first: bool,
    search_above: int | None,
    on_event: Listener | None,
) -> Iterator[tuple[Steps, ConversationDriver]]:
    """Check the arguments, and provide the steps of a conversation and the driver that carries them out.

    An error that ends the conversation receives the conversation so far. The listener is not called afterwards.
    """
    parts = {"engine": engine, "prompt": prompt, "system": system, "model": model, "on_event": on_event}
    parts |= {
        **limits._asdict(),
        "history": history,
        "answer": answer,
        "plan_first": plan_first,
        "search_above": search_above,
    }
    tools = (tools,) if isinstance(tools, str) else as_tuple(tools)
    require("converse", tools=(tools, FORMS["tools"]), **{name: (each, FORMS[name]) for name, each in parts.items()})
    session = narrow_session(engine, tools, "converse")
    _add_words(session, prompt, system, history)
    state = _initial_state(session, prompt, system, history, answer, limits)
    driver = ConversationDriver(session, _model(engine, model), on_event)
    try:
        with conversation_in_errors(state):
            yield _steps(state, driver, plan_first, search_above), driver
    finally:
        driver.is_over = True


def _steps(state: ConversationState, driver: ConversationDriver, plan_first: bool, search_above: int | None) -> Steps:
    """Yield the steps of a conversation, the first of which may name its tools, and return the conversation."""
    if plan_first:
        yield from name_tools(state, driver)
    if search_above is not None and len(state.tools) > search_above:
        state.search = driver.search = FoundTools.of(state.tools, state.turns)
    return (yield from state.steps())


@contextmanager
def conversation_in_errors(state: ConversationState) -> Iterator[None]:
    """Raise each `LLMError` as a `ConversationError` with the conversation so far."""
    try:
        yield
    except LLMError as error:
        conversation = state.conversation()
        raise ConversationError(
            error.text, code=error.code, retry=error.retry, conversation=conversation
        ) from error.__cause__


def _model(engine: Session, model: AnyModel | None) -> AnyModel:
    found = engine.host.llm if model is None else model
    if found is None:
        raise LLMError("no model to ask: pass one, or let the host provide one", code="llm.no_model")
    return found


def _add_words(session: Session, prompt: str, system: str, history: Sequence[Turn]) -> None:
    """Tell a session that tracks labels what the user has said, and what labelled results the model will read again."""
    flow = session.memory.flow
    if flow is None:
        return
    session.user_said([system, prompt, *(turn.content for turn in history if turn.role == "user")])
    for result in (result for turn in history for result in turn.tool_results if result.labels):
        value = result.value if result.error is None else str(result.error)
        if not flow.texts.search([value]).keys() >= set(result.labels):
            session.add_labelled(value, result.labels, origin=result.tool)


def _initial_state(
    session: Session,
    prompt: str,
    system: str,
    history: Sequence[Turn],
    answer: Any,
    limits: ConversationLimits,
) -> ConversationState:
    """Return the state of a conversation before its first step.

    Raises:
        SpecError: With every problem.
    """
    spec = None if answer is None else answer_spec(answer)
    return ConversationState(
        session,
        tuple(info.spec for info in offered_infos(session)),
        [*opening_turns(system, history, spec), Turn("user", prompt)],
        limits.turns,
        limits.calls,
        limits.chars,
        None if limits.seconds is None else time.monotonic() + limits.seconds,
        spec,
    )


def opening_turns(system: str, history: Sequence[Turn], answer: ToolSpec | None) -> list[Turn]:
    """Return the turns before the prompt, with at most one system turn, which comes first."""
    instructions = system if answer is None else "\n\n".join(filter(None, (system, instruction(answer))))
    before = _answered(history)
    if not instructions:
        return before
    return [Turn("system", instructions), *(turn for turn in before if turn.role != "system")]


def _answered(history: Sequence[Turn]) -> list[Turn]:
    """Return the turns without those that lack results for some calls, which a failed conversation can leave behind."""
    return [
        turn
        for at, turn in enumerate(history, 1)
        if not turn.tool_calls or len(turn.tool_calls) <= _results(history[at:])
    ]


def _results(turns: Sequence[Turn]) -> int:
    return sum(len(turn.tool_results) for turn in takewhile(lambda turn: turn.tool_results, turns))


# The expected form of each parameter

FORMS: Final = {
    "engine": instance(Session, "an Engine is one"),
    "prompt": STRING,
    "tools": collection(STRING, "patterns"),
    "model": optional(MODEL),
    "system": STRING,
    "history": sequence(instance(Turn), "Turns"),
    "answer": optional(ANSWER),
    "turns": COUNT,
    "calls": COUNT,
    "seconds": optional(SECONDS),
    "chars": COUNT,
    "plan_first": FLAG,
    "search_above": optional(WHOLE),
    "on_event": optional(FUNCTION),
}
