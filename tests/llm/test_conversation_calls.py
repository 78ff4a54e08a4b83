"""Calls of a conversation: repairs, refusals, order and concurrency."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.llm.scripted_models import Script, approving, asks, made, says

from neuroscript import (
    ArgSpec,
    ArgType,
    Engine,
    ExecutionPolicy,
    Runtime,
    SpecError,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
    Turn,
)
from neuroscript.approval.pending import PendingApproval
from neuroscript.approval.request import Approval
from neuroscript.llm import (
    CallStarted,
    ReplyReceived,
    converse,
    transcript,
)
from neuroscript.llm.events import Event
from neuroscript.llm.steps import is_read_only


def test_reply_without_calls_is_the_answer(talk: Any) -> None:
    """The conversation consists of the prompt and the reply."""
    model = Script([says("Hello.")])

    conversation = talk(made(), "Hello?", model=model, system="Be brief.")

    assert conversation.answer == "Hello."
    assert [(turn.role, turn.content) for turn in conversation.turns] == [
        ("system", "Be brief."), ("user", "Hello?"), ("assistant", "Hello."),
    ]  # fmt: skip
    assert model.offered == [["t.fail", "t.look", "t.note", "t.total"]]


def test_repaired_call_runs_and_is_in_transcript(talk: Any) -> None:
    """The tool receives exact values, the model the result, and the transcript lists the conversions."""
    model = Script([asks(("t__total", '{"numbers": ["1", 2.0]}')), says("3")])

    conversation = talk(made(), "Sum?", model=model)

    assert model.received[1][-1].tool_results[0].value == 3
    assert transcript(conversation).splitlines() == [
        "user: Sum?",
        'assistant: calls t__total {"numbers": ["1", 2.0]}',
        "tool: t.total: 3 (repaired numbers[0]: str -> int, numbers[1]: float -> int)",
        "assistant: 3",
    ]


def test_errors_go_back_to_model_with_hint(talk: Any) -> None:
    """Wrong types, an unknown tool, a refusal, a failure and broken JSON, each with names that the model knows."""
    calls = [
        ("t.total", {"numbers": "x"}),
        ("t.totals", {}),
        ("t.note", {"text": "a"}),
        ("t.fail", {}),
        ("t.look", "{"),
    ]
    model = Script([asks(*calls), says("So be it.")])
    policy = ExecutionPolicy(deny=("t.note",))

    lines = transcript(talk(made(policy=policy), "Go.", model=model)).splitlines()

    assert lines[6:11] == [
        "tool: t.total: error coercion.type: numbers: expected list of int, got str (write a JSON array, such as [1, 2]). "
        "Fix the arguments and call again.",
        "tool: t.totals: error tool.not_found: no tool with this name is available; did you mean t__total? "
        "Fix the arguments and call again.",
        "tool: t.note: error policy.denied: is denied by the host. "
        "Only the host can change that; do not repeat this call.",
        "tool: t.fail: error tool.failed: the disk is full. The same call may succeed later.",
        "tool: t.look: error arg.not_json: expected arguments as JSON, got str (line 1, column 2 is not JSON). "
        "Fix the arguments and call again.",
    ]


def test_calls_of_read_only_tools_run_in_parallel(talk: Any) -> None:
    """Two calls that wait for each other both end, and the results are in the order of the calls."""
    engine = made(barrier=threading.Barrier(2))
    model = Script([asks(("t.look", ["a"]), ("t.look", ["b"])), says("Done.")])

    conversation = talk(engine, "Go.", model=model)

    assert [result.value for result in conversation.results] == ["a", "b"]
    assert [reply.stop for reply in conversation.replies] == ["tools", "end"]


def test_turn_with_writing_call_runs_in_order(talk: Any) -> None:
    """One tool with other effects makes all calls of the turn sequential."""
    log: list[str] = []
    model = Script([asks(*[("t.note", [str(number)]) for number in range(20)], ("t.look", ["z"])), says("Done.")])

    conversation = talk(made(log=log), "Go.", model=model)

    assert log == [str(number) for number in range(20)]
    assert [result.id for result in conversation.results] == [f"c{number}" for number in range(1, 22)]


def test_calls_that_need_approval_run_one_at_a_time() -> None:
    """The approver is asked one call at a time, even for a read-only tool."""
    requests: list[int] = []

    def approver(request: Any) -> Approval:
        requests.append(threading.get_ident())
        return Approval.approve()

    toolset = Toolset("a")
    policy = ToolPolicy(effects=("reads",), requires_approval=True)
    toolset.add(ToolSpec("look", "a", return_type=ArgType.STRING), lambda rt: "x", policy=policy)
    engine = Engine(toolsets=[toolset], plugins="none", policy=ExecutionPolicy(approver=approver))

    converse(engine, "Go.", model=Script([asks(("a.look", ()), ("a.look", ())), says("Done.")]))

    assert requests == [threading.get_ident()] * 2


def test_tools_argument_narrows_permitted_tools(talk: Any) -> None:
    """A tool that was not offered is refused by the call pipeline and recorded as any refusal."""
    engine = made()
    model = Script([asks(("t.note", ["a"])), says("No.")])

    conversation = talk(engine, "Go.", model=model, tools=("t.look", "t.tot*"))

    assert model.offered[0] == ["t.look", "t.total"]
    assert (conversation.results[0].error.code, conversation.results[0].error.retry) == ("policy.not_allowed", "host")
    assert [record.code for record in engine.refusals] == ["policy.not_allowed"]


def test_model_is_asked_without_tools() -> None:
    """No tool is offered, and none is called."""
    model = Script([asks(("t.look", ["a"])), says("No.")])

    conversation = converse(made(), "Go.", model=model, tools=())

    assert model.offered == [[], []]
    assert conversation.results[0].error is not None


def test_unmatched_pattern_is_rejected_before_request(talk: Any) -> None:
    """With every problem, including invalid limits."""
    model = Script([])

    with pytest.raises(SpecError) as caught:
        talk(made(), "Go.", model=model, tools=("x.*", "t.*", "y"))
    with pytest.raises(SpecError) as limits:
        talk(made(), "Go.", model=model, turns=0, calls=True, seconds=0)

    with pytest.raises(SpecError):
        talk(made(), "Go.", model=model, seconds=float("inf"))

    assert str(caught.value) == (
        "converse: tools: x.* matches no tool that may be called here; tools: y matches no tool that may be called here"
    )
    assert str(limits.value) == (
        "converse: turns must be a positive integer; calls must be a positive integer, not bool; "
        "seconds must be a positive, finite number of seconds, or None"
    )


def test_conversation_uses_variables_of_session(tmp_path: Path) -> None:
    """Although the tools are narrowed."""
    toolset = Toolset("v")
    toolset.add(ToolSpec("keep", "v", (ArgSpec("x", ArgType.INT),)), lambda rt, x: rt.set_var("x", x))
    toolset.add(ToolSpec("kept", "v", return_type=ArgType.ANY, return_nullable=True), lambda rt: rt.get_var("x"))
    engine = Engine(toolsets=[toolset], plugins="none")
    session = engine.session()

    converse(session, "Go.", model=Script([asks(("v.keep", [7])), says("Done.")]), tools="v.keep")

    assert session.call("v.kept") == 7
    assert engine.call("v.kept") is None


def test_suspended_call_resumes_with_same_tools(talk: Any) -> None:
    """The conversation continues without it; a session with the same tools resumes it after approval."""
    requests: list[Any] = []

    def later(request: Any) -> Approval:
        requests.append(request)
        return Approval.suspend()

    session = approving(later).session()
    conversation = talk(session, "Go.", model=Script([asks(("a.act", ())), says("Later.")]), tools="a.*")
    (request,) = requests
    bound = (request.fingerprint, request.policy, request.session, request.digest)
    pending = PendingApproval(ToolCall(request.tool, request.arguments), *bound)

    within = session.narrowed(session.policy.narrowed(allow=("a.*",)))
    assert (conversation.answer, conversation.results[0].error.code, conversation.results[0].error.retry) == (
        "Later.",
        "policy.pending",
        "later",
    )
    result = session.resume(pending, Approval.approve())
    assert (result.error.code, result.error.retry) == ("policy.stale", "host")  # type: ignore[union-attr]
    assert within.resume(pending, Approval.approve()).value == 2


def test_at_most_eight_calls_run_in_parallel(talk: Any) -> None:
    """All requested calls are made, in order."""
    lock, now, most = threading.Lock(), [0], [0]

    def look(rt: Runtime, number: int) -> int:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.002)
        with lock:
            now[0] -= 1
        return number

    toolset = Toolset("m")
    spec = ToolSpec("look", "m", (ArgSpec("number", ArgType.INT),), return_type=ArgType.INT)
    toolset.add(spec, look, policy=ToolPolicy(effects=("reads",)))
    model = Script([asks(*[("m.look", [number]) for number in range(1000)]), says("Yes.")])

    with Engine(toolsets=[toolset], plugins="none") as engine:
        conversation = talk(engine, "Go.", model=model, calls=1000)

    assert [result.value for result in conversation.results] == [*range(1000)]
    assert 1 < most[0] <= 8


def test_interrupt_abandons_parallel_calls() -> None:
    """Their threads do not keep the process alive, and the listener receives no more events."""
    begun, free, made_calls = threading.Semaphore(0), threading.Event(), list[str]()
    events: list[Event] = []

    def look(rt: Runtime) -> None:
        made_calls.append("look")
        begun.release()
        free.wait(10)

    def interrupt() -> None:
        for _ in range(8):
            begun.acquire(timeout=10)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    toolset = Toolset("w")
    toolset.add(ToolSpec("look", "w"), look, policy=ToolPolicy(effects=("reads",)))
    threading.Thread(target=interrupt).start()

    with Engine(toolsets=[toolset], plugins="none") as engine:
        with pytest.raises(KeyboardInterrupt):
            converse(engine, "Go.", model=Script([asks(*[("w.look", ())] * 20)]), on_event=events.append)
        left = [thread for thread in threading.enumerate() if thread.name == "neuroscript-calls"]
        free.set()
        for thread in left:
            thread.join(10)

    assert [thread.daemon for thread in left] == [True] * 8
    assert made_calls == ["look"] * 8
    assert [type(event) for event in events] == [ReplyReceived, *[CallStarted] * 8]


@pytest.mark.parametrize(
    ("effects", "looks"),
    [
        ((), False),
        (("idempotent",), False),
        *(((effect,), True) for effect in ("pure", "reads", "net", "clock", "random")),
        *((("reads", effect), False) for effect in ("writes", "deletes", "exec", "prompts", "model")),
    ],
)
def test_read_only_follows_from_declared_effects(effects: tuple[str, ...], looks: bool) -> None:
    """A tool without declared effects counts as writing."""
    toolset = Toolset("e")
    toolset.add(ToolSpec("tool", "e"), lambda rt: None, policy=ToolPolicy(effects=effects))  # type: ignore[arg-type]

    assert is_read_only(Engine(toolsets=[toolset], plugins="none").infos["e.tool"]) is looks


def test_context_variables_reach_tools_and_model(talk: Any) -> None:
    """For example a trace, although all of them run on their own threads."""
    place: ContextVar[str] = ContextVar("place", default="nowhere")
    toolset = Toolset("p")
    policy = ToolPolicy(effects=("reads",))
    toolset.add(ToolSpec("where", "p", return_type=ArgType.STRING), lambda rt: place.get(), policy=policy)

    class Placed(Script):
        def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
            request = super().ask_with_tools(turns, tools)
            return attrs.evolve(request, content=place.get())

    token = place.set("here")
    with Engine(toolsets=[toolset], plugins="none") as engine:
        conversation = talk(engine, "Go.", model=Placed([asks(("p.where", ()), ("p.where", ())), says("")]))
    place.reset(token)

    assert [result.value for result in conversation.results] == ["here", "here"]
    assert conversation.answer == "here"
