"""The history, answer, events and transcript of a conversation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.llm.scripted_models import Script, Streaming, asks, made, says

from neuroscript import (
    ArgSpec,
    ArgType,
    Engine,
    ExecutionPolicy,
    Host,
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
from neuroscript.llm import (
    CallEnded,
    CallStarted,
    Conversation,
    ConversationError,
    ItemProduced,
    ReplyReceived,
    RetryScheduled,
    TextReceived,
    converse,
    transcript,
)
from neuroscript.llm.events import Event
from neuroscript.llm.transcripts import conversation_to_data
from neuroscript.runtime.replies import Reply, RetriedRequest, Usage


def test_history_precedes_prompt(talk: Any) -> None:
    """Its system turn is used only if no other is passed."""
    first = talk(made(), "One?", model=Script([says("1")]), system="Count.")
    model = Script([says("2")])
    talk(made(), "Two?", model=model, history=first.turns)
    other = Script([says("2")])
    talk(made(), "Two?", model=other, history=first.turns, system="Else.")

    assert [turn.content for turn in model.received[0]] == ["Count.", "One?", "1", "Two?"]
    assert [turn.content for turn in other.received[0]] == ["Else.", "One?", "1", "Two?"]


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
    message = '{"user": "ada", "token": "hunter2-hunter2"}'

    conversation = talk(made(), "Go.", model=Script([says(message)]), answer=answer)

    assert conversation.answer == {"user": "ada", "token": "hunter2-hunter2"}
    assert "hunter2" not in repr((conversation.turns, conversation.replies))


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
    assert isinstance(calling, CallStarted)
    assert isinstance(called, CallEnded)
    assert [ItemProduced(calling.call, 0), ItemProduced(calling.call, 1)] == given
    assert [0, 1] == called.result.value


def test_listener_receives_all_events_in_order(talk: Any) -> None:
    """Retries, text as it arrives, replies, and the beginning and end of each call."""
    events: list[Event] = []
    model = Streaming([asks(("t.look", ["a"])), says("ok")])

    conversation = talk(made(), "Go.", model=model, on_event=events.append)

    retry = RetryScheduled(RetriedRequest("llm.rate", 0.5))
    assert [type(event) for event in events] == [
        RetryScheduled,
        ReplyReceived,
        CallStarted,
        CallEnded,
        RetryScheduled,
        TextReceived,
        TextReceived,
        ReplyReceived,
    ]
    assert events[0] == retry
    assert [event.text for event in events if isinstance(event, TextReceived)] == ["o", "k"]
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

    assert (
        model.received[1][-1].tool_results[0].value == "x" * 100 + "\n[400 more characters of this result were omitted]"
    )
    assert [event.result.value for event in events if isinstance(event, CallEnded)] == ["x" * 500]


def test_secrets_are_not_sent_to_model(talk: Any) -> None:
    """Neither from the prompt nor from a result."""
    toolset = Toolset("s")
    policy = ToolPolicy(capabilities=("secret:read:key",))
    toolset.add(ToolSpec("leak", "s", return_type=ArgType.STRING), lambda rt: rt.secret("key"), policy=policy)
    host = Host(secrets={"key": "hunter2-hunter2"})
    engine = Engine(toolsets=[toolset], plugins="none", host=host, policy=ExecutionPolicy(grants=("secret:read:key",)))
    model = Script([asks(("s.leak", ())), says("Done.")])

    conversation = talk(engine, "It is hunter2-hunter2.", model=model, system="hunter2-hunter2")

    assert "hunter2" not in repr(model.received)
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
    assert "hunter2" not in repr([event for event in events if isinstance(event, CallEnded)])
    assert conversation.answer != "It was hunter2-hunter2."


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


def test_history_drops_calls_without_results(talk: Any) -> None:
    """No API accepts a call without a result, so the turns of a failed conversation can be continued."""
    with pytest.raises(ConversationError) as caught:
        talk(made(), "One.", model=Script([asks(("t.look", ["a"])), asks(("t.look", ["b"]))]), calls=1)
    model = Script([says("Yes.")])

    talk(made(), "Two.", model=model, history=caught.value.conversation.turns)

    assert [turn.role for turn in model.received[0]] == ["user", "assistant", "tool", "user"]


def test_history_results_may_span_several_turns(talk: Any) -> None:
    """As OpenAI writes them."""
    calls = asks(("t.look", ["a"]), ("t.look", ["b"]))
    results = [Turn("tool", tool_results=(ToolResult(f"c{number}", "t.look", "x"),)) for number in (1, 2)]
    model = Script([says("Yes.")])

    talk(made(), "Two.", model=model, history=[Turn("user", "One."), calls, *results])

    assert model.received[0][1:4] == (calls, *results)


def test_transcript_shows_retries_with_their_reply() -> None:
    """Even if an incomplete reply follows, or an earlier reply is not included."""
    retried = Reply(says("one"), retries=(RetriedRequest("llm.rate", 1.0),))
    gone = Reply(says("gone"), retries=(RetriedRequest("llm.server", 1.0),))
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


def test_turn_limit_after_calls_is_not_an_answer_error(talk: Any) -> None:
    """A model that continues to call tools after an invalid answer gets the error for too many turns."""
    model = Script([says("x"), asks(("t.look", ["a"]))])

    with pytest.raises(ConversationError) as caught:
        talk(made(), "Go.", model=model, answer="int", turns=2)

    assert (caught.value.code, caught.value.retry) == ("llm.turn_limit", "host")
