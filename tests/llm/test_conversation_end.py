"""The end of a conversation: limits, errors, interrupts and closed sessions."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from tests.llm.scripted_models import Script, Streaming, approving, asks, made, says

from neuroscript import (
    ArgType,
    Engine,
    ExecutionPolicy,
    Host,
    LLMError,
    PolicyError,
    ToolPolicy,
    Toolset,
    ToolSpec,
    Turn,
)
from neuroscript.approval.request import Approval
from neuroscript.llm import (
    ConversationError,
    aconverse,
)
from neuroscript.runtime.replies import Reply


@attrs.frozen
class Stopping:
    """A model whose only reply has a given stop reason."""

    stop: Any

    def reply(self, turns: Any, tools: Any = (), on_text: Any = None, on_retry: Any = None) -> Reply:
        return Reply(Turn("assistant", "Well"), self.stop)


def test_limits_on_turns_and_calls_end_conversation(talk: Any) -> None:
    """Exactly the permitted number of turns and calls is made, and the error holds all of them."""
    log: list[str] = []
    with pytest.raises(ConversationError) as turns:
        talk(made(), "Go.", model=Script([asks(("t.look", ["a"]))] * 9), turns=3)
    with pytest.raises(ConversationError) as calls:
        talk(made(log=log), "Go.", model=Script([asks(("t.note", ["a"]), ("t.note", ["b"]))] * 9), calls=5)

    assert (turns.value.code, turns.value.retry) == ("llm.turn_limit", "host")
    assert turns.value.text == "the model did not finish within 3 turns"
    assert len(turns.value.conversation.replies) == len(turns.value.conversation.results) == 3
    assert (calls.value.code, calls.value.retry) == ("llm.call_limit", "host")
    assert calls.value.text == "the model requested more than 5 calls"
    assert (len(log), len(calls.value.conversation.results)) == (4, 4)


def test_conversation_ends_at_time_limit(talk: Any) -> None:
    """A call has no more time than the conversation, and no request follows."""
    toolset = Toolset("s")
    toolset.add(
        ToolSpec("sleep", "s", return_type=ArgType.NIL), lambda rt: time.sleep(0.4), policy=ToolPolicy(blocking=True)
    )
    model = Script([asks(("s.sleep", ())), says("never asked")])

    with Engine(toolsets=[toolset], plugins="none") as engine, pytest.raises(ConversationError) as caught:
        talk(engine, "Go.", model=model, seconds=0.1)

    assert (caught.value.code, caught.value.retry) == ("llm.time_limit", "host")
    errors = [result.error for result in caught.value.conversation.results]
    assert [(error.code, error.retry) for error in errors] == [("call.timeout", "later")]
    assert len(model.received) == 1


@pytest.mark.parametrize(
    ("stop", "code", "retry"), [("refused", "llm.refused", "never"), ("length", "llm.length", "host")]
)
def test_refused_or_truncated_reply_ends_conversation(talk: Any, stop: str, code: str, retry: str) -> None:
    """The error holds the conversation."""
    with pytest.raises(ConversationError) as caught:
        talk(made(), "Go.", model=Stopping(stop))

    assert (caught.value.code, caught.value.retry) == (code, retry)
    assert [turn.content for turn in caught.value.conversation.turns] == ["Go.", "Well"]


def test_model_error_holds_conversation(talk: Any) -> None:
    """An LLMError keeps its code; any other exception is reported by its type, with its cause."""
    lost = LLMError("the connection was lost", code="llm.incomplete", retry="later")
    with pytest.raises(ConversationError) as reported:
        talk(made(), "Go.", model=Script([asks(("t.look", ["a"])), lost]))
    with pytest.raises(ConversationError) as other:
        talk(made(), "Go.", model=Script([KeyError("a value")]))
    with pytest.raises(LLMError) as none:
        talk(made(), "Go.")

    assert (reported.value.code, reported.value.retry, len(reported.value.conversation.results)) == (
        "llm.incomplete",
        "later",
        1,
    )
    assert (other.value.code, other.value.retry) == ("llm.failed", "host")
    assert other.value.text == "the model failed (KeyError)"
    assert isinstance(other.value.__cause__, KeyError)
    assert (none.value.code, none.value.retry) == ("llm.no_model", "host")


def test_default_model_comes_from_host(talk: Any) -> None:
    """The same model that tools use."""
    assert talk(made(host=Host(llm=Script([says("Yes.")]))), "Go?").answer == "Yes."


def test_stopped_session_ends_conversation(talk: Any) -> None:
    """No request or call follows."""
    toolset = Toolset("a")
    toolset.add(ToolSpec("act", "a"), lambda rt: None, policy=ToolPolicy(requires_approval=True))
    policy = ExecutionPolicy(approver=lambda request: Approval.stop())
    model = Script([asks(("a.act", ())), says("never asked")])

    with pytest.raises(ConversationError) as caught:
        talk(Engine(toolsets=[toolset], plugins="none", policy=policy), "Go.", model=model, tools="a.*")

    assert (caught.value.code, caught.value.retry) == ("llm.stopped", "host")
    assert len(model.received) == 1


def test_stop_applies_to_whole_session(talk: Any) -> None:
    """Although the conversation used a narrowed session; no call runs afterwards."""
    engine = approving(lambda request: Approval.stop())
    session = engine.session()

    with pytest.raises(ConversationError):
        talk(session, "Go.", model=Script([asks(("a.act", ()))]), tools="a.*")
    with pytest.raises(PolicyError) as caught:
        session.call("a.free")

    assert (caught.value.code, caught.value.retry) == ("policy.stopped", "host")
    assert engine.call("a.free") == 1


def test_closed_session_runs_no_calls(talk: Any) -> None:
    """Before or during the conversation, with all tools or some."""
    closed = made().session()
    closed.close()
    engine = made()
    session = engine.session()
    toolset = Toolset("c")
    toolset.add(ToolSpec("close", "c"), lambda rt: session.close())
    engine.register(toolset)

    with pytest.raises(ConversationError) as before:
        talk(closed, "Go.", model=Script([asks(("t.look", ["a"]))]), tools="t.*")
    with pytest.raises(ConversationError) as amid:
        talk(session, "Go.", model=Script([asks(("c.close", ()), ("t.look", ["a"]))]), tools=("c.*", "t.*"))

    assert (before.value.code, before.value.retry, before.value.conversation.replies) == ("llm.stopped", "host", ())
    assert (amid.value.code, amid.value.retry) == ("llm.stopped", "host")
    assert [result.ok for result in amid.value.conversation.results][1:] == [False]


@pytest.mark.alone
def test_sequential_calls_share_time_limit(talk: Any) -> None:
    """The second call gets the time that the first one left."""
    toolset = Toolset("s")
    never = threading.Event()
    toolset.add(ToolSpec("wait", "s"), lambda rt: never.wait(5) and None, policy=ToolPolicy(effects=("writes",)))
    model = Script([asks(("s.wait", ()), ("s.wait", ()))])

    with Engine(toolsets=[toolset], plugins="none") as engine:
        with pytest.raises(ConversationError) as caught:
            talk(engine, "Go.", model=model, seconds=0.5)
        never.set()

    errors = [result.error for result in caught.value.conversation.results]
    assert [(error.code, error.retry) for error in errors] == [("call.timeout", "later")] * 2
    assert caught.value.conversation.results[1].seconds < 0.4


def test_cancelled_caller_does_not_wait_for_model() -> None:
    """The event loop can end at once; the reply is read only up to its next piece."""
    requests, free, read = threading.Event(), threading.Event(), list[str]()
    before = {*threading.enumerate()}

    class Slow(Streaming):
        def reply(self, turns: Any, tools: Any = (), on_text: Any = None, on_retry: Any = None) -> Reply:
            requests.set()
            free.wait(10)
            for piece in "ab":
                on_text(piece)
                read.append(piece)
            return Reply(says("ab"))

    async def give_up() -> None:
        task = asyncio.create_task(aconverse(made(), "Go.", model=Slow([])))
        await asyncio.to_thread(requests.wait, 10)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(give_up())
    assert not free.is_set()
    (left,) = [each for each in {*threading.enumerate()} - before if each.name == "neuroscript-model"]
    free.set()
    left.join(10)

    assert read == []


def test_many_conversations_wait_at_the_same_time() -> None:
    """Each has its own thread, beyond the default pool of the event loop."""
    barrier = threading.Barrier(40)

    class Met(Script):
        def ask(self, turns: Sequence[Turn]) -> Turn:
            barrier.wait(10)
            return says("met")

    async def all_of_them() -> list[Any]:
        engine, model = made(), Met([])
        return await asyncio.gather(*(aconverse(engine, "Go.", model=model, tools=()) for _ in range(40)))

    assert [conversation.answer for conversation in asyncio.run(all_of_them())] == ["met"] * 40
