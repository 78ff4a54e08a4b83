"""Tools that may return a stream: the result of each call decides whether it is one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.calls.stream_reader import gathered

from neuroscript import (
    ArgSpec,
    ArgType,
    Engine,
    ExecutionPolicy,
    LimitError,
    Limits,
    ReturnError,
    Runtime,
    SpecError,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
    aclient,
    client,
    result_schema,
    spec_from_data,
    spec_from_schema,
    spec_to_data,
    spec_to_schema,
)
from neuroscript.formats.one_line import return_text
from neuroscript.formats.stubs import stub
from neuroscript.interop.agentheaven import ToolSpec as Handle
from neuroscript.interop.mcp.schema import output_schema

EVENTS: list[str] = []


@pytest.fixture(autouse=True)
def _no_events() -> None:
    EVENTS.clear()


def numbers(most: int) -> Iterator[Any]:
    """Count up, and record the end."""
    try:
        yield from range(most)
    finally:
        EVENTS.append("closed")


async def anumbers(most: int) -> AsyncIterator[Any]:
    """Do the same for an async reader."""
    try:
        for number in range(most):
            await asyncio.sleep(0)
            yield number
    finally:
        EVENTS.append("closed")


KINDS: dict[str, Callable[[], Any]] = {
    "one": lambda: 7,
    "list": lambda: [1, 2],
    "text": lambda: "abc",
    "none": list,
    "generator": lambda: numbers(3),
    "async generator": lambda: anumbers(3),
    "iterator": lambda: iter((4, 5)),
    "empty": lambda: numbers(0),
    "bad item": lambda: iter((1, object())),
    "bad": object,
}


def given(rt: Runtime, kind: str) -> Any:
    """Return the result of this kind."""
    return KINDS[kind]()


async def agiven(rt: Runtime, kind: str) -> Any:
    """Return the same from a coroutine."""
    await asyncio.sleep(0)
    return KINDS[kind]()


def spec(name: str = "plain", **changes: Any) -> ToolSpec:
    """Return the spec of a tool that may return a stream."""
    return ToolSpec(name, "m", (ArgSpec("kind", ArgType.STRING),), **{"stream": "maybe", **changes})


TOOLS = Toolset("m")
TOOLS.add(spec(), given, ToolPolicy(effects=("pure",)))
TOOLS.add(spec("waits"), given)
TOOLS.add(spec("coroutine"), agiven)
TOOLS.add(spec("timed"), given, ToolPolicy(timeout=20))
NAMES = [each.name for each in TOOLS]


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine with these tools."""
    with Engine(plugins="none", toolsets=[TOOLS]) as engine:
        yield engine


GIVEN = [
    ("one", 7, [7]),
    ("list", [1, 2], [[1, 2]]),
    ("text", "abc", ["abc"]),
    ("none", [], [[]]),
    ("generator", [0, 1, 2], [0, 1, 2]),
    ("async generator", [0, 1, 2], [0, 1, 2]),
    ("iterator", [4, 5], [4, 5]),
    ("empty", [], []),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("kind", "called", "streamed"), GIVEN, ids=[each[0] for each in GIVEN])
def test_iterator_is_a_stream_and_other_results_are_one_result(
    engine: Engine, name: str, kind: str, called: Any, streamed: list[Any]
) -> None:
    """Every entry point agrees; a list is one result and not a stream."""
    assert called == engine.call(name, (kind,)) == engine.call_named(name, {"kind": kind})
    assert called == engine.execute(ToolCall(name, {"kind": kind})).value
    assert called == asyncio.run(engine.acall(name, (kind,)))
    assert streamed == list(engine.stream(name, (kind,)))
    assert streamed == asyncio.run(gathered(engine.astream(name, (kind,))))


def test_items_and_single_results_have_the_declared_type() -> None:
    tools = Toolset("m")
    tools.add(spec(return_type=ArgType.INT), given)
    with Engine(plugins="none", toolsets=[tools]) as engine:
        assert [0, 1, 2] == engine.call("m.plain", ("generator",))
        for kind in ("text", "list", "bad item", "bad"):
            with pytest.raises(ReturnError) as caught:
                engine.call("m.plain", (kind,))
            assert ("return.type", "never") == (caught.value.code, caught.value.retry)


@pytest.mark.parametrize("kind", ["generator", "async generator"])
def test_abandoned_stream_is_closed(engine: Engine, kind: str) -> None:
    """This works as for every stream."""
    items = engine.stream("m.plain", (kind,))
    assert 0 == next(items)
    items.close()  # type: ignore[attr-defined]

    assert ["closed"] == EVENTS


def test_limits_apply_to_all_items_together() -> None:
    """An item over the limit ends the stream."""
    policy = ExecutionPolicy(limits=Limits(result_bytes=20))
    with Engine(plugins="none", toolsets=[TOOLS], policy=policy) as engine:
        items = engine.stream("m.plain", ("generator",))
        seen = [next(items), next(items)]
        with pytest.raises(LimitError) as caught:
            next(items)

    assert [0, 1] == seen
    assert ("limit.result_bytes", "host") == (caught.value.code, caught.value.retry)
    assert ["closed"] == EVENTS


def test_failure_is_a_tool_failure() -> None:
    """This covers the function and the iterator that it returns."""

    def failing(rt: Runtime, kind: str) -> Any:
        if kind == "now":
            raise ValueError(kind)
        return (1 // each for each in (1, 0))

    tools = Toolset("m")
    tools.add(spec(), failing)
    with Engine(plugins="none", toolsets=[tools]) as engine:
        for kind, error in (("now", ValueError), ("later", ZeroDivisionError)):
            with pytest.raises(ToolFailed) as caught:
                engine.call("m.plain", (kind,))
            assert error is type(caught.value.__cause__)
        items = engine.stream("m.plain", ("later",))
        assert 1 == next(items)
        items.close()


def test_recording_contains_the_results_of_the_call(tmp_path: Path) -> None:
    """A single result is stored as it is, and a stream as the list of its items."""
    from neuroscript.audit.recording import Recording

    path = tmp_path / "calls.jsonl"
    with Recording(path) as recording, Engine(plugins="none", toolsets=[TOOLS], recording=recording) as engine:
        engine.call("m.plain", ("one",))
        list(engine.stream("m.plain", ("generator",)))
    results = [json.loads(line).get("result") for line in path.read_text().splitlines()]

    assert [7, [0, 1, 2]] == [each for each in results if each is not None]


def test_client_receives_the_result_or_the_list(engine: Engine) -> None:
    """It returns what `call` returns."""
    assert [7, [0, 1, 2]] == [client(engine).m.plain("one"), client(engine).m.plain("generator")]
    assert [0, 1, 2] == asyncio.run(aclient(engine).m.plain("generator"))


@pytest.mark.parametrize(("value", "got"), [("Maybe", ""), ("yes", ""), (1, ", not int"), (None, ", not None")])
def test_invalid_stream_value_is_refused(value: Any, got: str) -> None:
    """The error is raised when the spec is made or read from data."""
    with pytest.raises(SpecError) as caught:
        spec(stream=value)
    with pytest.raises(SpecError):
        spec_from_data({**spec_to_data(spec()), "stream": value})

    assert f"m.plain: stream must be True, False or 'maybe'{got}" == str(caught.value)


def test_stream_value_survives_data_and_schema() -> None:
    """A spec is restored unchanged."""
    assert spec() == spec_from_data(json.loads(json.dumps(spec_to_data(spec()))))
    assert spec() == spec_from_schema("plain", json.loads(json.dumps(spec_to_schema(spec()))), group="m")


def test_result_schema_allows_an_item_or_a_list() -> None:
    """In MCP, where a result is an object, both are below a key."""
    both = {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}
    made = spec(return_type=ArgType.INT, return_help="Numbers.")

    assert {**both, "description": "Numbers."} == result_schema(made)
    assert {**both, "description": "Numbers."} == output_schema(made)["properties"]["result"]  # type: ignore[index]


def test_stream_value_is_shown_in_signatures_and_stubs() -> None:
    made = spec(return_type=ArgType.INT)
    tools = Toolset("m")
    handle = Handle(tools.add(made, given))

    assert "int or stream of int" == return_text(made)
    assert "def plain(self, kind: str) -> int | list[int]:" in stub([made])
    assert "async def plain(self, kind: str) -> int | list[int]:" in stub([made])
    assert "-> int | Iterator[int]:" in handle.code
    assert {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]} == (
        handle.output_schema["properties"]["result"]  # type: ignore[index]
    )
