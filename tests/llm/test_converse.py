"""The conversation loop: repairs, refusals, order, limits, answers, and the returned conversation."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import attrs
import pytest

from neuroscript import (
    ArgSpec,
    ArgType,
    Engine,
    ExecutionPolicy,
    Host,
    LLMError,
    PolicyError,
    Runtime,
    SpecError,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    ToolResult,
    Toolset,
    ToolSpec,
    Turn,
)
from neuroscript.approval.pending import PendingApproval
from neuroscript.approval.request import Approval
from neuroscript.llm import (
    Called,
    Calling,
    Conversation,
    ConversationError,
    Gave,
    Replied,
    Retrying,
    Said,
    aconverse,
    converse,
    transcript,
)
from neuroscript.llm.events import Event
from neuroscript.llm.steps import only_looks
from neuroscript.llm.transcripts import conversation_to_data
from neuroscript.runtime.replies import Reply, Retried, Usage


@attrs.define
class Script:
    """A model that returns fixed turns, one for each request."""

    turns: list[Turn | Exception]
    heard: list[tuple[Turn, ...]] = attrs.Factory(list)
    offered: list[list[str]] = attrs.Factory(list)

    def ask(self, turns: Sequence[Turn]) -> Turn:
        return self.ask_with_tools(turns, ())

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        self.heard.append(tuple(turns))
        self.offered.append([spec.full_name for spec in tools])
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return turn

    def embed(self, text: str) -> Sequence[float]:
        return [0.0]


@attrs.define
class Streaming(Script):
    """The same model with streaming, usage and retries."""

    def reply(self, turns: Any, tools: Any = (), on_text: Any = None, on_retry: Any = None) -> Reply:
        retried = Retried("llm.rate", 0.5)
        on_retry(retried)
        turn = self.ask_with_tools(turns, tools)
        for letter in turn.content:
            on_text(letter)
        return Reply(turn, "tools" if turn.tool_calls else "end", Usage(10, 2), (retried,), 0.1)


@attrs.frozen
class Stopping:
    """A model whose only reply has a given stop reason."""

    stop: Any

    def reply(self, turns: Any, tools: Any = (), on_text: Any = None, on_retry: Any = None) -> Reply:
        return Reply(Turn("assistant", "Well"), self.stop)


def says(text: str) -> Turn:
    return Turn("assistant", text)


def asks(*calls: tuple[str, Any]) -> Turn:
    return Turn("assistant", tool_calls=tuple(ToolCall(n, a, id=f"c{i}") for i, (n, a) in enumerate(calls, start=1)))


class Doors:
    """``converse`` and ``aconverse`` behind one interface, so that each test runs with both."""

    @staticmethod
    def sync(*args: Any, **options: Any) -> Conversation:
        return converse(*args, **options)

    @staticmethod
    def awaited(*args: Any, **options: Any) -> Conversation:
        return asyncio.run(aconverse(*args, **options))


@pytest.fixture(params=["sync", "awaited"])
def talk(request: pytest.FixtureRequest) -> Any:
    """``converse`` or ``aconverse``."""
    return getattr(Doors, request.param)


def made(**options: Any) -> Engine:
    """Return an engine with the toolset of these tests."""
    toolset = Toolset("t")
    log: list[str] = options.pop("log", [])
    barrier: threading.Barrier = options.pop("barrier", None)

    def note(rt: Runtime, text: str) -> str:
        log.append(text)
        return text

    def look(rt: Runtime, text: str) -> str:
        if barrier is not None:
            barrier.wait(10)
        return text

    def fail(rt: Runtime) -> str:
        raise ToolFailed("the disk is full", retry="later")

    def total(rt: Runtime, numbers: list[int]) -> int:
        return sum(numbers)

    text = (ArgSpec("text", ArgType.STRING),)
    toolset.add(ToolSpec("note", "t", text, return_type=ArgType.STRING), note, policy=ToolPolicy(effects=("writes",)))
    toolset.add(ToolSpec("look", "t", text, return_type=ArgType.STRING), look, policy=ToolPolicy(effects=("reads",)))
    toolset.add(ToolSpec("fail", "t", return_type=ArgType.STRING), fail)
    numbers = (ArgSpec("numbers", ArgType.SLICE_INT),)
    toolset.add(ToolSpec("total", "t", numbers, return_type=ArgType.INT), total, policy=ToolPolicy(effects=("pure",)))
    return Engine(toolsets=[toolset], plugins="none", **options)


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

    assert model.heard[1][-1].tool_results[0].value == 3
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
    asked: list[int] = []

    def approver(request: Any) -> Approval:
        asked.append(threading.get_ident())
        return Approval.approve()

    toolset = Toolset("a")
    policy = ToolPolicy(effects=("reads",), requires_approval=True)
    toolset.add(ToolSpec("look", "a", return_type=ArgType.STRING), lambda rt: "x", policy=policy)
    engine = Engine(toolsets=[toolset], plugins="none", policy=ExecutionPolicy(approver=approver))

    converse(engine, "Go.", model=Script([asks(("a.look", ()), ("a.look", ())), says("Done.")]))

    assert asked == [threading.get_ident()] * 2


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


def test_history_precedes_prompt(talk: Any) -> None:
    """Its system turn is used only if no other is passed."""
    first = talk(made(), "One?", model=Script([says("1")]), system="Count.")
    model = Script([says("2")])
    talk(made(), "Two?", model=model, history=first.turns)
    other = Script([says("2")])
    talk(made(), "Two?", model=other, history=first.turns, system="Else.")

    assert [turn.content for turn in model.heard[0]] == ["Count.", "One?", "1", "Two?"]
    assert [turn.content for turn in other.heard[0]] == ["Else.", "One?", "1", "Two?"]


def test_typed_answer_is_exact_and_problems_go_back(talk: Any) -> None:
    """Strings, fences and convertible types are repaired; an invalid answer is requested again."""
    model = Script([says("five"), says('Here:\n```json\n["1", 2]\n```\n')])

    conversation = talk(made(), "Numbers?", model=model, answer=ArgType.SLICE_INT)

    assert conversation.answer == [1, 2]
    assert conversation.turns[0].content == (
        "Give your final answer as JSON that matches this JSON Schema, and nothing else: "
        '{"type": "array", "items": {"type": "integer"}}'
    )
    assert conversation.turns[3].content == (
        "That answer is invalid: answer: expected list of int, got str (write a JSON array, such as [1, 2]). "
        "Answer again."
    )


@pytest.mark.parametrize(
    ("answer", "text", "exact"),
    [
        ("string", '{"a": 1}', '{"a": 1}'),
        ("int", " 5\n", 5),
        ("bool", "TRUE", True),
        ("float", "```\n2\n```", 2.0),
        (ArgSpec("pet", "map", keys=(ArgSpec("age", "int"),)), '{"age": "3"}', {"age": 3}),
        (ArgSpec("size", "string", choices=("s", "m")), "m", "m"),
        (ArgSpec("size", "string", choices=("s", "m")), '"m"', "m"),
        (ArgSpec("size", "string", choices=("s", "m")), '```json\n"m"\n```', "m"),
        (ArgSpec("size", "string", choices=("1", "2")), "1", "1"),
        (ArgSpec("word", "string", max_length=3), '"a\\n"', "a\n"),
        (ArgSpec("word", "string", nullable=True), "null", None),
        (ArgSpec("word", "string", nullable=True), "Sure: ```\nx\n```", "Sure: ```\nx\n```"),
        (ArgSpec("word", "string", description="One word."), "null", "null"),
    ],
)
def test_answers_of_many_types_are_parsed(answer: Any, text: str, exact: Any) -> None:
    """From the form that models write into the exact value."""
    answered = converse(made(), "Go.", model=Script([says(text)]), answer=answer).answer

    assert (type(answered), answered) == (type(exact), exact)


def test_answer_that_stays_invalid_is_an_error(talk: Any) -> None:
    """After the maximum number of turns, with the problems of the last answer."""
    model = Script([says("x"), says("y")])

    with pytest.raises(ConversationError) as caught:
        talk(made(), "Go.", model=model, answer="int", turns=2)

    assert (caught.value.code, caught.value.retry) == ("llm.answer", "never")
    assert caught.value.text == (
        "none of 2 turns gave a valid answer: answer: expected int, got str (a string must be a decimal integer, such as 42)"
    )
    assert len(caught.value.conversation.replies) == 2


@pytest.mark.alone
def test_parsing_fences_takes_linear_time() -> None:
    """Not quadratic time."""
    began = time.monotonic()

    with pytest.raises(ConversationError) as caught:
        converse(made(), "Go.", model=Script([says("a```\n" * 40_000)]), answer="int", turns=1)

    assert (caught.value.code, caught.value.retry) == ("llm.answer", "never")
    assert time.monotonic() - began < 3


def test_invalid_answer_type_is_rejected() -> None:
    """Before any request, like every other invalid argument."""
    with pytest.raises(SpecError):
        converse(made(), "Go.", model=Script([]), answer="number")


def test_secret_answer_is_only_in_answer(talk: Any) -> None:
    """The turns, which are stored and sent again, do not contain it."""
    answer = ArgSpec("login", "map", keys=(ArgSpec("user", "string"), ArgSpec("token", "string", secret=True)))
    said = '{"user": "ada", "token": "hunter2-hunter2"}'

    conversation = talk(made(), "Go.", model=Script([says(said)]), answer=answer)

    assert conversation.answer == {"user": "ada", "token": "hunter2-hunter2"}
    assert "hunter2" not in repr((conversation.turns, conversation.replies))


def test_limits_on_turns_and_calls_end_conversation(talk: Any) -> None:
    """Exactly the permitted number of turns and calls is made, and the error holds all of them."""
    log: list[str] = []
    with pytest.raises(ConversationError) as turns:
        talk(made(), "Go.", model=Script([asks(("t.look", ["a"]))] * 9), turns=3)
    with pytest.raises(ConversationError) as calls:
        talk(made(log=log), "Go.", model=Script([asks(("t.note", ["a"]), ("t.note", ["b"]))] * 9), calls=5)

    assert (turns.value.code, turns.value.retry) == ("llm.turns", "host")
    assert turns.value.text == "the model did not finish within 3 turns"
    assert len(turns.value.conversation.replies) == len(turns.value.conversation.results) == 3
    assert (calls.value.code, calls.value.retry) == ("llm.calls", "host")
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

    assert (caught.value.code, caught.value.retry) == ("llm.seconds", "host")
    errors = [result.error for result in caught.value.conversation.results]
    assert [(error.code, error.retry) for error in errors] == [("call.timeout", "later")]
    assert len(model.heard) == 1


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
    lost = LLMError("the connection was lost", code="llm.cut", retry="later")
    with pytest.raises(ConversationError) as told:
        talk(made(), "Go.", model=Script([asks(("t.look", ["a"])), lost]))
    with pytest.raises(ConversationError) as other:
        talk(made(), "Go.", model=Script([KeyError("a value")]))
    with pytest.raises(LLMError) as none:
        talk(made(), "Go.")

    assert (told.value.code, told.value.retry, len(told.value.conversation.results)) == ("llm.cut", "later", 1)
    assert (other.value.code, other.value.retry) == ("llm.failed", "host")
    assert other.value.text == "the model failed (KeyError)"
    assert isinstance(other.value.__cause__, KeyError)
    assert (none.value.code, none.value.retry) == ("llm.none", "host")


def test_default_model_comes_from_host(talk: Any) -> None:
    """The same model that tools use."""
    assert talk(made(host=Host(llm=Script([says("Yes.")]))), "Go?").answer == "Yes."


def test_listener_receives_stream_items(talk: Any) -> None:
    """Between the beginning and the end of the call; the result contains all of them."""
    events: list[Event] = []
    numbers = Toolset("n")

    @numbers.tool()
    def up(most: int) -> Iterator[int]:
        """Count up."""
        yield from range(most)

    engine = made()
    engine.register(numbers)

    talk(engine, "Go.", model=Script([asks(("n.up", [2])), says("ok")]), on_event=events.append)

    _, calling, *given, called, _, _ = events
    assert isinstance(calling, Calling)
    assert isinstance(called, Called)
    assert [Gave(calling.call, 0), Gave(calling.call, 1)] == given
    assert [0, 1] == called.result.value


def test_listener_receives_all_events_in_order(talk: Any) -> None:
    """Retries, text as it arrives, replies, and the beginning and end of each call."""
    events: list[Event] = []
    model = Streaming([asks(("t.look", ["a"])), says("ok")])

    conversation = talk(made(), "Go.", model=model, on_event=events.append)

    retry = Retrying(Retried("llm.rate", 0.5))
    assert [type(event) for event in events] == [Retrying, Replied, Calling, Called, Retrying, Said, Said, Replied]
    assert events[0] == retry
    assert [event.text for event in events if isinstance(event, Said)] == ["o", "k"]
    assert (conversation.usage, len(conversation.replies)) == (Usage(20, 4), 2)
    assert transcript(conversation).splitlines()[1] == "assistant: retried after 0.5 s (llm.rate)"


def test_listener_exception_is_logged_once(talk: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The conversation continues."""

    def listener(event: Event) -> None:
        raise ValueError("a value")

    assert talk(made(), "Go.", model=Script([says("Yes.")]), on_event=listener).answer == "Yes."
    (record,) = caplog.records
    assert record.getMessage().startswith("the listener of a conversation failed\nTraceback")
    assert record.getMessage().endswith("ValueError: a value")


def test_long_result_is_cut_only_for_model(talk: Any) -> None:
    """The text states how much was left out; the listener receives the whole result."""
    events: list[Event] = []
    model = Script([asks(("t.look", ["x" * 500])), says("Yes.")])

    talk(made(), "Go.", model=model, chars=100, on_event=events.append)

    assert model.heard[1][-1].tool_results[0].value == "x" * 100 + "\n[400 more characters of this result were omitted]"
    assert [event.result.value for event in events if isinstance(event, Called)] == ["x" * 500]


def test_secrets_are_not_sent_to_model(talk: Any) -> None:
    """Neither from the prompt nor from a result."""
    toolset = Toolset("s")
    policy = ToolPolicy(capabilities=("secret:read:key",))
    toolset.add(ToolSpec("leak", "s", return_type=ArgType.STRING), lambda rt: rt.secret("key"), policy=policy)
    host = Host(secrets={"key": "hunter2-hunter2"})
    engine = Engine(toolsets=[toolset], plugins="none", host=host, policy=ExecutionPolicy(grants=("secret:read:key",)))
    model = Script([asks(("s.leak", ())), says("Done.")])

    conversation = talk(engine, "It is hunter2-hunter2.", model=model, system="hunter2-hunter2")

    assert "hunter2" not in repr(model.heard)
    assert "hunter2" not in repr(conversation.results)


def test_secret_argument_is_in_no_turn_or_event(talk: Any) -> None:
    """The tool receives it, but the conversation and the event of the ended call do not contain it."""
    got: list[str] = []
    toolset = Toolset("s")
    args = (ArgSpec("token", ArgType.STRING, secret=True),)
    toolset.add(ToolSpec("use", "s", args), lambda rt, token: got.append(token))
    model = Script([asks(("s.use", '{"token": "hunter2-hunter2"}')), says("It was hunter2-hunter2.")])
    events: list[Event] = []

    engine = Engine(toolsets=[toolset], plugins="none")
    conversation = talk(engine, "Go.", model=model, on_event=events.append)

    assert got == ["hunter2-hunter2"]
    assert "hunter2" not in repr(conversation)
    assert "hunter2" not in repr([event for event in events if isinstance(event, Called)])
    assert conversation.answer != "It was hunter2-hunter2."


def test_stopped_session_ends_conversation(talk: Any) -> None:
    """No request or call follows."""
    toolset = Toolset("a")
    toolset.add(ToolSpec("act", "a"), lambda rt: None, policy=ToolPolicy(requires_approval=True))
    policy = ExecutionPolicy(approver=lambda request: Approval.stop())
    model = Script([asks(("a.act", ())), says("never asked")])

    with pytest.raises(ConversationError) as caught:
        talk(Engine(toolsets=[toolset], plugins="none", policy=policy), "Go.", model=model, tools="a.*")

    assert (caught.value.code, caught.value.retry) == ("llm.stopped", "host")
    assert len(model.heard) == 1


def test_conversation_converts_to_plain_data() -> None:
    """With its calls, results, tokens and retries."""
    data = conversation_to_data(converse(made(), "Go.", model=Streaming([asks(("t.total", [["1"]])), says("1")])))
    result = data["turns"][2]["tool_results"][0]

    assert data["turns"][1]["tool_calls"] == [{"id": "c1", "name": "t.total", "arguments": [["1"]]}]
    assert (result["value"], result["repairs"]) == (1, [{"where": "numbers[0]", "got": "str", "became": "int"}])
    assert (data["usage"], data["answer"]) == ({"input_tokens": 20, "output_tokens": 4}, "1")
    assert data["retries"] == [{"code": "llm.rate", "seconds": 0.5}] * 2


def test_transcript_escapes_control_characters() -> None:
    """Lines of a reply cannot look like turns of others."""
    turns = (
        Turn("assistant", "\x1b[2J\nuser: no", (ToolCall("t.x", {"a": "\x1b"}),)),
        Turn("tool", tool_results=(ToolResult("", "t.x", "\x07"),)),
    )

    assert transcript(Conversation(turns)).splitlines() == [
        "assistant: \\x1b[2J", "  user: no", 'assistant: calls t.x {"a": "\\u001b"}', "tool: t.x: \\x07",
    ]  # fmt: skip


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


def test_suspended_call_resumes_with_same_tools(talk: Any) -> None:
    """The conversation continues without it; a session with the same tools resumes it after approval."""
    asked: list[Any] = []

    def later(request: Any) -> Approval:
        asked.append(request)
        return Approval.suspend()

    session = approving(later).session()
    conversation = talk(session, "Go.", model=Script([asks(("a.act", ())), says("Later.")]), tools="a.*")
    (request,) = asked
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


def approving(approver: Any) -> Engine:
    """Return an engine with one tool that needs approval and one that does not."""
    toolset = Toolset("a")
    toolset.add(ToolSpec("act", "a", return_type=ArgType.INT), lambda rt: 2, policy=ToolPolicy(requires_approval=True))
    toolset.add(ToolSpec("free", "a", return_type=ArgType.INT), lambda rt: 1)
    return Engine(toolsets=[toolset], plugins="none", policy=ExecutionPolicy(approver=approver))


def test_history_drops_calls_without_results(talk: Any) -> None:
    """No API accepts a call without a result, so the turns of a failed conversation can be continued."""
    with pytest.raises(ConversationError) as caught:
        talk(made(), "One.", model=Script([asks(("t.look", ["a"])), asks(("t.look", ["b"]))]), calls=1)
    model = Script([says("Yes.")])

    talk(made(), "Two.", model=model, history=caught.value.conversation.turns)

    assert [turn.role for turn in model.heard[0]] == ["user", "assistant", "tool", "user"]


def test_history_results_may_span_several_turns(talk: Any) -> None:
    """As OpenAI writes them."""
    calls = asks(("t.look", ["a"]), ("t.look", ["b"]))
    results = [Turn("tool", tool_results=(ToolResult(f"c{number}", "t.look", "x"),)) for number in (1, 2)]
    model = Script([says("Yes.")])

    talk(made(), "Two.", model=model, history=[Turn("user", "One."), calls, *results])

    assert model.heard[0][1:4] == (calls, *results)


def test_transcript_shows_retries_with_their_reply() -> None:
    """Even if an incomplete reply follows, or an earlier reply is not included."""
    retried = Reply(says("one"), retries=(Retried("llm.rate", 1.0),))
    gone = Reply(says("gone"), retries=(Retried("llm.server", 1.0),))
    turns = (Turn("user", "Go."), says("one"), says("half"))

    assert transcript(Conversation(turns, (gone, retried))).splitlines() == [
        "user: Go.", "assistant: retried after 1 s (llm.rate)", "assistant: one", "assistant: half",
    ]  # fmt: skip


def test_long_failure_message_is_cut(talk: Any) -> None:
    """A tool may write any amount; the model reads up to the limit."""
    toolset = Toolset("f")

    def fail(rt: Runtime) -> None:
        raise ToolFailed("x" * 500, retry="later") from ValueError("why")

    toolset.add(ToolSpec("fail", "f"), fail)
    engine = Engine(toolsets=[toolset], plugins="none")
    conversation = talk(engine, "Go.", model=Script([asks(("f.fail", ())), says("Yes.")]), chars=100)

    error = conversation.results[0].error
    assert error.text == "x" * 100 + "\n[400 more characters of this result were omitted]"
    assert (error.code, error.retry, error.tool) == ("tool.failed", "later", "f.fail")
    assert type(error.__cause__) is ValueError


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
    assert [type(event) for event in events] == [Replied, *[Calling] * 8]


def test_cancelled_caller_does_not_wait_for_model() -> None:
    """The event loop can end at once; the reply is read only up to its next piece."""
    asked, free, read = threading.Event(), threading.Event(), list[str]()

    class Slow(Streaming):
        def reply(self, turns: Any, tools: Any = (), on_text: Any = None, on_retry: Any = None) -> Reply:
            asked.set()
            free.wait(10)
            for piece in "ab":
                on_text(piece)
                read.append(piece)
            return Reply(says("ab"))

    async def give_up() -> None:
        task = asyncio.create_task(aconverse(made(), "Go.", model=Slow([])))
        await asyncio.to_thread(asked.wait, 10)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(give_up())
    assert not free.is_set()
    (left,) = [thread for thread in threading.enumerate() if thread.name == "neuroscript-model"]
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

    assert only_looks(Engine(toolsets=[toolset], plugins="none").infos["e.tool"]) is looks


def test_turn_limit_after_calls_is_not_an_answer_error(talk: Any) -> None:
    """A model that continues to call tools after an invalid answer gets the error for too many turns."""
    model = Script([says("x"), asks(("t.look", ["a"]))])

    with pytest.raises(ConversationError) as caught:
        talk(made(), "Go.", model=model, answer="int", turns=2)

    assert (caught.value.code, caught.value.retry) == ("llm.turns", "host")


def test_context_variables_reach_tools_and_model(talk: Any) -> None:
    """For example a trace, although all of them run on their own threads."""
    place: ContextVar[str] = ContextVar("place", default="nowhere")
    toolset = Toolset("p")
    policy = ToolPolicy(effects=("reads",))
    toolset.add(ToolSpec("where", "p", return_type=ArgType.STRING), lambda rt: place.get(), policy=policy)

    class Placed(Script):
        def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
            asked = super().ask_with_tools(turns, tools)
            return attrs.evolve(asked, content=place.get())

    token = place.set("here")
    with Engine(toolsets=[toolset], plugins="none") as engine:
        conversation = talk(engine, "Go.", model=Placed([asks(("p.where", ()), ("p.where", ())), says("")]))
    place.reset(token)

    assert [result.value for result in conversation.results] == ["here", "here"]
    assert conversation.answer == "here"
