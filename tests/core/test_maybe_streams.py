"""Tools that may give a stream: each call says by what it returns whether it is one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.core.gathering import gathered

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
from neuroscript.formats.one_line import returned
from neuroscript.formats.stubs import stub
from neuroscript.interop.agentheaven import ToolSpec as Handle
from neuroscript.interop.mcp.schema import output_schema

EVENTS: list[str] = []


@pytest.fixture(autouse=True)
def _no_events() -> None:
    EVENTS.clear()


def numbers(most: int) -> Iterator[Any]:
    """Count up, and say that it has ended."""
    try:
        yield from range(most)
    finally:
        EVENTS.append("closed")


async def anumbers(most: int) -> AsyncIterator[Any]:
    """Do the same for a reader that awaits."""
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
    """Give what a kind is."""
    return KINDS[kind]()


async def agiven(rt: Runtime, kind: str) -> Any:
    """Give the same, awaited."""
    await asyncio.sleep(0)
    return KINDS[kind]()


def spec(name: str = "plain", **changes: Any) -> ToolSpec:
    """Return the spec of a tool that may give a stream."""
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
def test_an_iterator_is_a_stream_and_anything_else_is_the_result(
    engine: Engine, name: str, kind: str, called: Any, streamed: list[Any]
) -> None:
    """By every door; a list is one result, and not the items of a stream."""
    assert called == engine.call(name, (kind,)) == engine.call_named(name, {"kind": kind})
    assert called == engine.execute(ToolCall(name, {"kind": kind})).value
    assert called == asyncio.run(engine.acall(name, (kind,)))
    assert streamed == list(engine.stream(name, (kind,)))
    assert streamed == asyncio.run(gathered(engine.astream(name, (kind,))))


def test_each_item_is_held_to_the_type_and_so_is_a_result() -> None:
    """What one result may be, each item may be."""
    tools = Toolset("m")
    tools.add(spec(return_type=ArgType.INT), given)
    with Engine(plugins="none", toolsets=[tools]) as engine:
        assert [0, 1, 2] == engine.call("m.plain", ("generator",))
        for kind in ("text", "list", "bad item", "bad"):
            with pytest.raises(ReturnError) as caught:
                engine.call("m.plain", (kind,))
            assert ("return.type", "never") == (caught.value.code, caught.value.retry)


@pytest.mark.parametrize("kind", ["generator", "async generator"])
def test_a_stream_that_nobody_reads_any_more_is_closed(engine: Engine, kind: str) -> None:
    """As every stream is."""
    items = engine.stream("m.plain", (kind,))
    assert 0 == next(items)
    items.close()  # type: ignore[attr-defined]

    assert ["closed"] == EVENTS


def test_limits_count_the_items_together() -> None:
    """What a stream gives beyond them ends it."""
    policy = ExecutionPolicy(limits=Limits(result_bytes=20))
    with Engine(plugins="none", toolsets=[TOOLS], policy=policy) as engine:
        items = engine.stream("m.plain", ("generator",))
        seen = [next(items), next(items)]
        with pytest.raises(LimitError) as caught:
            next(items)

    assert [0, 1] == seen
    assert ("limit.result_bytes", "host") == (caught.value.code, caught.value.retry)
    assert ["closed"] == EVENTS


def test_a_failure_is_the_tools() -> None:
    """Of a function, and of the iterator that it gave."""

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


def test_a_recording_has_what_the_call_gave(tmp_path: Path) -> None:
    """One result as it is, and a stream as the list of its items."""
    from neuroscript.audit.recording import Recording

    path = tmp_path / "calls.jsonl"
    with Recording(path) as recording, Engine(plugins="none", toolsets=[TOOLS], recording=recording) as engine:
        engine.call("m.plain", ("one",))
        list(engine.stream("m.plain", ("generator",)))
    results = [json.loads(line).get("result") for line in path.read_text().splitlines()]

    assert [7, [0, 1, 2]] == [each for each in results if each is not None]


def test_a_client_gets_the_result_or_the_list(engine: Engine) -> None:
    """As `call` gives it."""
    assert [7, [0, 1, 2]] == [client(engine).m.plain("one"), client(engine).m.plain("generator")]
    assert [0, 1, 2] == asyncio.run(aclient(engine).m.plain("generator"))


@pytest.mark.parametrize(("value", "got"), [("Maybe", ""), ("yes", ""), (1, ", not int"), (None, ", not None")])
def test_no_other_word_is_taken(value: Any, got: str) -> None:
    """It is said when the spec is made, and when it is read from data."""
    with pytest.raises(SpecError) as caught:
        spec(stream=value)
    with pytest.raises(SpecError):
        spec_from_data({**spec_to_data(spec()), "stream": value})

    assert f"m.plain: stream must be True, False or 'maybe'{got}" == str(caught.value)


def test_the_word_survives_data_and_schema() -> None:
    """A spec comes back as it was."""
    assert spec() == spec_from_data(json.loads(json.dumps(spec_to_data(spec()))))
    assert spec() == spec_from_schema("plain", json.loads(json.dumps(spec_to_schema(spec()))), group="m")


def test_the_schema_of_the_result_has_both() -> None:
    """One item, or the list of items; in MCP, where a result is an object, below a name."""
    both = {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}
    made = spec(return_type=ArgType.INT, return_help="Numbers.")

    assert {**both, "description": "Numbers."} == result_schema(made)
    assert {**both, "description": "Numbers."} == output_schema(made)["properties"]["result"]  # type: ignore[index]


def test_it_is_shown_in_words_and_in_types() -> None:
    """In a signature, in stubs and in Python."""
    made = spec(return_type=ArgType.INT)
    tools = Toolset("m")
    handle = Handle(tools.add(made, given))

    assert "int or stream of int" == returned(made)
    assert "def plain(self, kind: str) -> int | list[int]:" in stub([made])
    assert "async def plain(self, kind: str) -> int | list[int]:" in stub([made])
    assert "-> int | Iterator[int]:" in handle.code
    assert {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]} == (
        handle.output_schema["properties"]["result"]  # type: ignore[index]
    )
