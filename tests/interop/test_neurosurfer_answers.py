"""Observations, streams and extras in the answers of tools of neurosurfer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel
from tests.interop.neurosurfer_tools import GRANTED, EchoTool, Recorder, StreamLinesTool, engine_of, invoker_of

from neuroscript import Engine, ExecutionPolicy, Host, LimitError, Limits, ToolFailed
from neuroscript.interop.neurosurfer import Invoker, Toolkit, ToolResponse


@pytest.mark.parametrize("observation", ["a", {"rows": [1]}, [1], 5, 1.5, True, None], ids=repr)
def test_nsf_33_an_observation_is_any_plain_value(observation: Any) -> None:
    """Maps too, as in the document's own tool."""
    with engine_of(Recorder(ToolResponse(False, observation))) as engine:
        result = engine.call("neurosurfer.recorder", ("a",))

    assert (observation, type(observation)) == (result, type(result))


class Delta(BaseModel):
    """A part of a reply, as neurosurfer's models send it."""

    content: str | None = None


class Choice(BaseModel):
    """A choice of a reply, complete or streamed."""

    message: Delta | None = None
    delta: Delta | None = None


class Reply(BaseModel):
    """A complete reply, or a streamed part of it."""

    choices: list[Choice]


def test_nsf_33_a_model_reply_becomes_its_text() -> None:
    """Complete or streamed."""
    whole = Reply(choices=[Choice(message=Delta(content="all of it"))])
    pieces = [Reply(choices=[Choice(delta=Delta(content=each))]) for each in ("a", None, "b")]
    with engine_of(
        Recorder(ToolResponse(True, whole), "whole"),
        Recorder(ToolResponse(True, iter(pieces)), "pieces"),
        Recorder(ToolResponse(True, Delta(content="other")), "other"),
    ) as engine:
        assert "all of it" == engine.call("neurosurfer.whole", ("",))
        assert ["a", "", "b"] == list(engine.stream("neurosurfer.pieces", ("",)))
        assert {"content": "other"} == engine.call("neurosurfer.other", ("",))


class Unserializable(BaseModel):
    """A reply that cannot be converted to plain data."""

    def model_dump(self, **options: Any) -> Any:
        raise StopIteration


def test_nsf_34_an_unserializable_item_is_an_error() -> None:
    """It does not end the stream early, which would silently lose later items."""

    async def pieces() -> AsyncIterator[Any]:
        yield "a"
        yield Unserializable()

    tools = (
        Recorder(ToolResponse(True, iter(["a", Unserializable(), "b"])), "plain"),
        Recorder(ToolResponse(True, pieces()), "far"),
    )
    with engine_of(*tools) as engine:
        raised = []
        for name in ("plain", "far"):
            with pytest.raises(ToolFailed) as caught:
                engine.call(f"neurosurfer.{name}", ("x",))
            raised.append(str(caught.value))

    assert [f"neurosurfer.{name}: the tool failed (RuntimeError) (after 1 item)" for name in ("plain", "far")] == raised


class Poll(BaseModel):
    """A model with choices that is not a reply."""

    choices: list[Any]


@pytest.mark.parametrize("choices", [["tea", "milk"], [{"message": "tea"}], [{"label": "tea"}], [], [None]], ids=repr)
def test_nsf_33_an_object_with_other_choices_is_not_a_reply(choices: list[Any]) -> None:
    """It is returned as plain data."""
    with engine_of(Recorder(ToolResponse(False, Poll(choices=choices)))) as engine:
        assert {"choices": choices} == engine.call("neurosurfer.recorder", ("a",))


def test_nsf_34_a_generator_is_a_stream() -> None:
    """Items arrive one by one; a call returns the list, and a reader that stops ends the generator."""
    tool = StreamLinesTool()
    with engine_of(tool) as engine:
        items = engine.stream("neurosurfer.stream_lines", (["a", "b", "c"],))
        assert ("a", 0) == (next(items), tool.ended)
        items.close()  # type: ignore[attr-defined]
        assert 1 == tool.ended
        assert ["a", "b"] == engine.call("neurosurfer.stream_lines", ('["a", "b"]',))
        assert 2 == tool.ended
    with engine_of(tool, policy=ExecutionPolicy(grants=GRANTED.grants, limits=Limits(result_bytes=20))) as engine:
        with pytest.raises(LimitError):
            engine.call("neurosurfer.stream_lines", (["long enough"] * 3,))
    assert 3 == tool.ended


def test_nsf_34_a_stopped_stream_closes_its_generator() -> None:
    """Even if the tool still references it."""

    async def letters() -> AsyncIterator[str]:
        yield "a"
        yield "b"

    async def read(engine: Engine) -> Any:
        items = engine.astream("neurosurfer.awaited", ("x",))
        await anext(items)
        await items.aclose()  # type: ignore[attr-defined]
        return awaited.ag_frame  # type: ignore[attr-defined]

    plain, awaited = (each for each in "ab"), letters()
    with engine_of(
        Recorder(ToolResponse(True, plain), "plain"), Recorder(ToolResponse(True, awaited), "awaited")
    ) as engine:
        items = engine.stream("neurosurfer.plain", ("x",))
        next(items)
        items.close()  # type: ignore[attr-defined]
        assert asyncio.run(read(engine)) is None

    assert plain.gi_frame is None


def test_nsf_34_an_agent_reads_items_as_they_arrive() -> None:
    """Also from streams with one item or none."""
    tool = StreamLinesTool()
    with invoker_of(tool, EchoTool()) as invoker:
        answer = invoker.invoke("stream_lines", {"lines": ["a", "b"]})
        assert ("a", 0, ["b"], 1) == (next(answer.observation), tool.ended, [*answer.observation], tool.ended)
        assert answer.final_answer
        assert [] == list(invoker.invoke("stream_lines", {"lines": []}).observation)
        assert ["a"] == list(invoker.invoke("stream_lines", {"lines": ["a"]}).observation)
        ended = tool.ended
        answer = invoker.invoke("stream_lines", {"lines": ["a", "b"]})
        next(answer.observation)
        answer.observation.close()
        assert ended + 1 == tool.ended
        assert "text" == invoker.invoke("echo", {"text": "text"}).observation


def test_nsf_35_extras_are_passed_to_later_calls() -> None:
    """As variables of the session, copied for each call; other sessions do not see them."""
    ids = [1, 2]
    first, second = (
        Recorder(ToolResponse(False, "a", {"row_ids": ids}), "first"),
        Recorder(ToolResponse(True, "b"), "second"),
    )
    with engine_of(first, second) as engine:
        session = engine.session()
        session.call("neurosurfer.first", ("x",))
        session.call("neurosurfer.second", ("y",))
        assert {"text": "y", "row_ids": [1, 2]} == second.inputs
        assert ids is not second.inputs["row_ids"]
        engine.call("neurosurfer.second", ("z",))

    assert {"text": "z"} == second.inputs


def test_nsf_35_an_extra_may_be_any_object() -> None:
    """A variable holds its handle, which is released when another extra replaces it."""
    connection, rows = object(), [{"price": Decimal("1.5")}]
    first = Recorder(ToolResponse(False, "a", {"connection": connection, "rows": rows}), "first")
    other = Recorder(ToolResponse(False, "a", {"connection": "closed", "rows": None}), "other")
    second = Recorder(ToolResponse(True, "b"), "second")
    seen = []
    with engine_of(first, other, second) as engine:
        for name in ("first", "other"):
            engine.call(f"neurosurfer.{name}", ("x",))
            engine.call("neurosurfer.second", ("y",))
            seen.append((second.inputs, len(engine.memory.handles)))

    assert connection is seen[0][0]["connection"]
    assert rows is seen[0][0]["rows"]
    assert ({"text": "y", "connection": "closed", "rows": None}, 0) == seen[1]
    assert 2 == seen[0][1]


def test_nsf_35_an_agent_releases_objects_after_the_next_call() -> None:
    """They are not retained longer."""
    connection = object()
    first = Recorder(ToolResponse(False, "a", {"connection": connection}), "first")
    second = Recorder(ToolResponse(True, "b"), "second")
    with engine_of(first, second) as engine:
        invoker = Invoker(engine, Toolkit([first, second]))
        answer = invoker.invoke("first", {"text": "x"})
        stored = len(engine.memory.handles)
        invoker.invoke("second", {"text": "y"})
        assert (1, 0) == (stored, len(engine.memory.handles))

    assert connection is answer.extras["connection"] is second.inputs["connection"]


def test_nsf_35_extras_of_a_failed_call_are_discarded() -> None:
    """Neither the next attempt nor another tool receives them; earlier extras are still passed."""

    class Broken(Recorder):
        def __call__(self, *, text: Any, **kwargs: Any) -> Any:
            seen.append(kwargs)
            return ToolResponse(True, (1 / 0 for each in "a"), {"cursor": 1, "connection": object()})

    seen: list[dict[str, Any]] = []
    first, second = Recorder(ToolResponse(False, "a", {"n": 1}), "first"), Recorder(ToolResponse(True, "b"), "second")
    tools = [first, Broken(None, "broken"), second]
    with engine_of(*tools) as engine:
        invoker = Invoker(engine, Toolkit(tools), max_tool_errors=1, wait=lambda seconds: None)
        for name in ("first", "broken", "second"):
            invoker.invoke(name, {"text": "x"})
        stored = len(engine.memory.handles)

    assert ([{"n": 1}] * 2, {"text": "x", "n": 1}, 0) == (seen, second.inputs, stored)


def test_nsf_35_an_invalid_extra_fails_the_call() -> None:
    """None of the other extras is stored."""
    extras = {"good": 1, 5: "x", "neurosurfer.answer": True, "\ud800": 2}
    generator = (each for each in "ab")
    bad, second = Recorder(ToolResponse(False, generator, extras), "bad"), Recorder(ToolResponse(True, "b"), "second")  # type: ignore[arg-type]
    odd, none = Recorder(ToolResponse(False, "a", [1]), "odd"), Recorder(ToolResponse(True, "a", None), "none")  # type: ignore[arg-type]
    with engine_of(bad, second, odd, none) as engine:
        raised = []
        for name in ("bad", "odd"):
            with pytest.raises(ToolFailed) as caught:
                engine.call(f"neurosurfer.{name}", ("x",))
            raised.append((str(caught.value), caught.value.code, caught.value.retry))
        engine.call("neurosurfer.none", ("y",))
        engine.call("neurosurfer.second", ("y",))

    names = (
        "expected names of type str, got int; neurosurfer.answer: names must not begin with neurosurfer.; "
        "expected names of valid Unicode, got lone surrogates"
    )
    assert [
        (f"neurosurfer.bad: extras: {names}", "neurosurfer.extras", "host"),
        ("neurosurfer.odd: extras: expected a mapping, got list", "neurosurfer.extras", "host"),
    ] == raised
    assert {"text": "y"} == second.inputs
    assert generator.gi_frame is None


@pytest.mark.parametrize("value", ["mallory", object()], ids=["plain", "object"])
def test_nsf_35_an_extra_cannot_replace_a_constant_of_the_host(value: Any) -> None:
    """The call fails, and no extra of it is stored."""
    tool = Recorder(ToolResponse(False, "a", {"before": 1, "user": value, "after": object()}))
    with engine_of(tool, host=Host(constants={"user": "ada"})) as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call("neurosurfer.recorder", ("x",))
        assert 0 == len(engine.memory.handles)
        assert ["user"] == list(engine.memory.variables)

    assert "neurosurfer.recorder: user is a constant" == str(caught.value)


def test_nsf_44_the_streaming_tool_yields_its_lines() -> None:
    """On its own and in an engine."""
    lines = ["Step 1...", "Step 2...", "Done."]
    with engine_of(StreamLinesTool()) as engine:
        assert lines == list(StreamLinesTool()(lines=lines).observation)
        assert lines == list(engine.stream("neurosurfer.stream_lines", (lines,)))
