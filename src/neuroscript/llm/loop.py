"""A conversation in which a model may call the tools of an engine, from sync code and from async code.

Source: issue "Models", the loop; contract sections 2 and 6.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Final

from neuroscript.coercion.constraints import TYPE
from neuroscript.coercion.parameters import (
    COUNT,
    FUNCTION,
    SECONDS,
    STRING,
    as_tuple,
    collection,
    instance,
    optional,
    require,
    sequence,
)
from neuroscript.coercion.types import ArgType
from neuroscript.engine.session import Session
from neuroscript.errors import LLMError
from neuroscript.llm.driver import Doer, Listener
from neuroscript.llm.events import Conversation, ConversationError
from neuroscript.llm.offered_tools import narrowed
from neuroscript.llm.steps import Ask, Talk
from neuroscript.llm.structured_output import answer_spec, instruction
from neuroscript.runtime.host import MODEL
from neuroscript.runtime.interfaces import LLM, Turn
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec

CHARS: Final = 100_000
"""How many characters a model reads of one result, where a host says nothing else."""


def converse(
    engine: Session,
    prompt: str,
    *,
    tools: str | Iterable[str] = "*",
    model: LLM | None = None,
    system: str = "",
    history: Sequence[Turn] = (),
    answer: ArgType | str | ArgSpec | None = None,
    turns: int = 16,
    calls: int = 64,
    seconds: float | None = None,
    chars: int = CHARS,
    on_event: Listener | None = None,
) -> Conversation:
    """Ask a model, make the calls that it asks for, and return the conversation when it has answered.

    Every call is made by ``execute``, under the policy of *engine*; the model is told of each error in words that let
    it mend its call. The calls of one turn run together where all of their tools only look, and else in order.

    Args:
        engine: An `Engine`, or a session of one; variables, handles, limits and approvals are its own.
        prompt: What the model is asked.
        tools: Patterns over canonical names, such as ``fs.*``: which tools the model may call, of those that may be
            called at all; ``()`` is none.
        model: Who is asked; by default the model that the host lends.
        system: How the model is to answer; it stands before everything else.
        history: Turns of a conversation that goes on, as `Conversation.turns` gives them; a turn that asks for calls
            without all of their results behind it is left out, for no API takes one.
        answer: The type of the last answer, or an `ArgSpec`; an answer that does not fit goes back to the model with
            its problems. None is a text, as it comes.
        turns: How many replies are asked for, at most.
        calls: How many calls are made, at most; a turn that asks for more than are left has none of its calls made.
        seconds: How long all of it may take; what has begun is waited for.
        chars: How many characters the model reads of one result.
        on_event: Told of every piece of text, reply, retry and call; what it raises is logged, and the conversation
            goes on.

    Raises:
        ConversationError: It came to no answer; all that was said and done is in it.
        SpecError: No tool matches a pattern, or a limit is none.
        LLMError: ``llm.none``, where neither *model* nor the host gives a model.
    """
    parts = {"engine": engine, "prompt": prompt, "system": system, "model": model, "on_event": on_event}
    parts |= {"turns": turns, "calls": calls, "seconds": seconds, "chars": chars, "history": history, "answer": answer}
    tools = (tools,) if isinstance(tools, str) else as_tuple(tools)
    require("converse", tools=(tools, FORMS["tools"]), **{name: (each, FORMS[name]) for name, each in parts.items()})
    talk = _begun(engine, prompt, tools, system, history, answer, (turns, calls, seconds, chars))
    doer = Doer(talk.session, _model(engine, model), on_event)
    with _kept(talk, doer):
        steps = talk.steps()
        asked = next(steps)
        while True:
            outcome = doer.ask(asked) if isinstance(asked, Ask) else doer.run(asked)
            try:
                asked = steps.send(outcome)
            except StopIteration as done:
                return _conversation(done)


async def aconverse(
    engine: Session,
    prompt: str,
    *,
    tools: str | Iterable[str] = "*",
    model: LLM | None = None,
    system: str = "",
    history: Sequence[Turn] = (),
    answer: ArgType | str | ArgSpec | None = None,
    turns: int = 16,
    calls: int = 64,
    seconds: float | None = None,
    chars: int = CHARS,
    on_event: Listener | None = None,
) -> Conversation:
    """Return what `converse` returns, without holding up the loop that awaits it.

    The model is asked on a thread; one that is being asked when the caller gives up is left behind, and is read no
    further than to the next piece of its reply. *on_event* is called on the loop.
    """
    parts = {"engine": engine, "prompt": prompt, "system": system, "model": model, "on_event": on_event}
    parts |= {"turns": turns, "calls": calls, "seconds": seconds, "chars": chars, "history": history, "answer": answer}
    tools = (tools,) if isinstance(tools, str) else as_tuple(tools)
    require("converse", tools=(tools, FORMS["tools"]), **{name: (each, FORMS[name]) for name, each in parts.items()})
    talk = _begun(engine, prompt, tools, system, history, answer, (turns, calls, seconds, chars))
    doer = Doer(talk.session, _model(engine, model), on_event)
    with _kept(talk, doer):
        steps = talk.steps()
        asked = next(steps)
        while True:
            outcome = await (doer.aask(asked) if isinstance(asked, Ask) else doer.arun(asked))
            try:
                asked = steps.send(outcome)
            except StopIteration as done:
                return _conversation(done)


def _conversation(done: StopIteration) -> Conversation:
    conversation: Conversation = done.value
    return conversation


@contextmanager
def _kept(talk: Talk, doer: Doer) -> Iterator[None]:
    """Keep what was said and done in the error by which a conversation ends; nobody is told anything after its end."""
    try:
        yield
    except LLMError as error:
        conversation = talk.conversation()
        raise ConversationError(
            error.text, code=error.code, retry=error.retry, conversation=conversation
        ) from error.__cause__
    finally:
        doer.is_over = True


def _model(engine: Session, model: LLM | None) -> LLM:
    found = engine.host.llm if model is None else model
    if found is None:
        raise LLMError("there is no model to ask: give one, or have the host lend one", code="llm.none")
    return found


def _begun(
    engine: Session,
    prompt: str,
    tools: tuple[str, ...],
    system: str,
    history: Sequence[Turn],
    answer: ArgType | str | ArgSpec | None,
    limits: tuple[int, int, float | None, int],
) -> Talk:
    """Return a conversation at its beginning.

    Raises:
        SpecError: With everything that is wrong with it.
    """
    turns, calls, seconds, chars = limits
    session = narrowed(engine, tools, "converse")
    spec = None if answer is None else answer_spec(answer)
    return Talk(
        session,
        tuple(info.spec for info in session.infos.values()),
        [*_opening(system, history, spec), Turn("user", prompt)],
        turns,
        calls,
        chars,
        None if seconds is None else time.monotonic() + seconds,
        spec,
    )


def _opening(system: str, history: Sequence[Turn], answer: ToolSpec | None) -> list[Turn]:
    """Return the turns before the prompt; there is one turn of the system at most, and it comes first."""
    told = system if answer is None else "\n\n".join(filter(None, (system, instruction(answer))))
    before = _answered(history)
    if not told:
        return before
    return [Turn("system", told), *(turn for turn in before if turn.role != "system")]


def _answered(history: Sequence[Turn]) -> list[Turn]:
    """Return the turns without those whose calls have not all been made, as where a conversation failed."""
    return [
        turn
        for at, turn in enumerate(history, 1)
        if not turn.tool_calls or len(turn.tool_calls) <= _results(history[at:])
    ]


def _results(turns: Sequence[Turn]) -> int:
    return sum(len(turn.tool_results) for turn in takewhile(lambda turn: turn.tool_results, turns))


# What each parameter has to be

FORMS: Final = {
    "engine": instance(Session, "an Engine is one"),
    "prompt": STRING,
    "tools": collection(STRING, "patterns"),
    "model": optional(MODEL),
    "system": STRING,
    "history": sequence(instance(Turn), "Turns"),
    "answer": optional(TYPE),
    "turns": COUNT,
    "calls": COUNT,
    "seconds": optional(SECONDS),
    "chars": COUNT,
    "on_event": optional(FUNCTION),
}
