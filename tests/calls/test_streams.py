"""Streams: items arrive as they are made, have exact types, and are closed in every case."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.calls.stream_reader import gathered

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CallTimeout,
    Engine,
    LimitError,
    ReturnError,
    Runtime,
    SpecError,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
    spec_from_data,
    spec_to_data,
    tool,
)
from neuroscript.calls.steps import END
from neuroscript.calls.streams import item_reader

EVENTS: list[str] = []


@pytest.fixture(autouse=True)
def _no_events() -> None:
    EVENTS.clear()


def counted(rt: Runtime, most: int) -> Iterator[int]:
    """Count up, as a generator.

    Args:
        most: How far.
    """
    try:
        for number in range(most):
            EVENTS.append(f"give {number}")
            yield number
    finally:
        EVENTS.append(f"closed, runtime {'ended' if rt.cancelled else 'alive'}")


async def acounted(rt: Runtime, most: int) -> AsyncIterator[int]:
    """Count up, as an async generator.

    Args:
        most: How far.
    """
    try:
        for number in range(most):
            await asyncio.sleep(0)
            EVENTS.append(f"give {number}")
            yield number
    finally:
        await asyncio.sleep(0)
        EVENTS.append(f"closed, runtime {'ended' if rt.cancelled else 'alive'}")


tools = Toolset("s")
tools.tool(name="plain", policy=ToolPolicy(effects=("pure",)))(counted)
tools.tool(name="waits")(counted)
tools.tool(name="coroutine")(acounted)
tools.tool(name="timed", policy=ToolPolicy(timeout=20))(counted)
tools.tool(name="atimed", policy=ToolPolicy(timeout=20))(acounted)
NAMES = ["s.plain", "s.waits", "s.coroutine", "s.timed", "s.atimed"]


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(toolsets=[tools], plugins="none") as engine:
        yield engine


def of_engine(spec: ToolSpec, func: Callable[..., Any], policy: ToolPolicy | None = None) -> Engine:
    toolset = Toolset("t")
    toolset.add(spec, func, policy or ToolPolicy())
    return Engine(toolsets=[toolset], plugins="none")


def test_iterator_annotation_makes_a_stream() -> None:
    """An iterator of T is a stream of T, in the spec and its plain data."""
    spec = tool(acounted, group="g").spec

    assert (spec.stream, spec.return_type) == (True, ArgType.INT)
    assert spec_from_data(spec_to_data(spec)) == spec
    with pytest.raises(SpecError, match="the result: "):
        tool(unreadable, group="g")


def unreadable() -> Iterator[complex]:
    """Yield values without an ArgType."""
    yield 1j


@pytest.mark.parametrize("name", NAMES)
def test_items_arrive_one_by_one(engine: Engine, name: str) -> None:
    """The tool makes an item on request; the end closes it."""
    items = engine.stream(name, [3])

    assert EVENTS == []
    assert next(items) == 0
    assert EVENTS == ["give 0"]
    assert [*items] == [1, 2]
    assert EVENTS[-1] == "closed, runtime alive"


@pytest.mark.parametrize("name", NAMES)
def test_items_arrive_in_an_async_reader(engine: Engine, name: str) -> None:
    """Named arguments work, and the event loop continues in between."""
    assert asyncio.run(gathered(engine.astream(name, {"most": "3"}))) == [0, 1, 2]
    assert EVENTS[-1] == "closed, runtime alive"


@pytest.mark.parametrize("name", NAMES)
def test_closing_a_stream_ends_its_tool(engine: Engine, name: str) -> None:
    """Its ``finally`` block runs with a working Runtime before ``close`` returns."""
    items = engine.stream(name, [10**9])
    assert [next(items), next(items)] == [0, 1]

    items.close()  # type: ignore[attr-defined]

    assert EVENTS == ["give 0", "give 1", "closed, runtime alive"]
    assert engine.close() == ()


@pytest.mark.parametrize("name", NAMES)
def test_closing_an_async_stream_ends_its_tool(engine: Engine, name: str) -> None:
    assert asyncio.run(gathered(engine.astream(name, [10**9]), most=2)) == [0, 1]
    assert EVENTS == ["give 0", "give 1", "closed, runtime alive"]


@pytest.mark.parametrize("name", NAMES)
def test_call_collects_the_items(engine: Engine, name: str) -> None:
    """Every entry point returns a list, also inside another tool."""

    def doubled(rt: Runtime) -> list[int]:
        return [2 * each for each in rt.call_tool(name, [3])]

    engine.register(tool(doubled, group="g"))

    assert engine.call(name, [3]) == engine.call_named(name, {"most": 3}) == [0, 1, 2]
    assert asyncio.run(engine.acall(name, [3])) == [0, 1, 2]
    assert engine.execute(ToolCall(name, '{"most": "3"}')).value == [0, 1, 2]
    assert engine.call(name, [0]) == []
    assert engine.call("g.doubled") == [0, 2, 4]


def test_coroutine_tool_collects_an_async_stream(engine: Engine) -> None:
    """It blocks the loop of the other coroutine tools, but the call succeeds."""

    async def outer(rt: Runtime) -> list[int]:
        await asyncio.sleep(0)
        found: list[int] = rt.call_tool("s.coroutine", [50])
        return found

    engine.register(tool(outer, group="g"))

    assert engine.call("g.outer") == list(range(50))


def test_call_collects_a_limited_number_of_items(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends the tool at the limit."""
    monkeypatch.setattr("neuroscript.calls.streams.MAX_COLLECTED_ITEMS", 5)

    assert engine.call("s.plain", [5]) == [0, 1, 2, 3, 4]
    for name in NAMES:
        EVENTS.clear()
        with pytest.raises(LimitError) as caught:
            engine.call(name, [10**9])
        assert (caught.value.code, caught.value.retry, caught.value.tool) == ("limit.items", "host", name)
        assert EVENTS[-1] == "closed, runtime alive"


def test_plain_tool_streams_its_one_result() -> None:
    """A host needs no special case for it."""
    engine = of_engine(ToolSpec("t", "t", (ArgSpec("a", ArgType.INT),), return_type=ArgType.INT), lambda rt, a: a)

    assert [*engine.stream("t.t", ["7"])] == [7]
    assert asyncio.run(gathered(engine.astream("t.t", {"a": 7}))) == [7]


def test_invalid_arguments_are_refused_at_once(engine: Engine) -> None:
    """The error does not wait for the first item."""
    with pytest.raises(ArgumentError, match=r"s\.plain: most: expected int, got str"):
        engine.stream("s.plain", ["x"])
    with pytest.raises(ArgumentError):
        engine.astream("s.plain", {"least": 1})


@pytest.mark.parametrize("asynchronous", [False, True])
def test_each_item_is_exact_or_the_stream_ends(asynchronous: bool) -> None:
    """Each item is checked against the declared type, and an invalid item ends the tool."""

    def given(rt: object) -> Iterator[Any]:
        try:
            yield (1, 2)
            yield "x"
        finally:
            EVENTS.append("closed")

    async def agiven(rt: object) -> AsyncIterator[Any]:
        for each in given(rt):
            yield each

    func = agiven if asynchronous else given
    engine = of_engine(ToolSpec("t", "t", return_type=ArgType.SLICE_FLOAT, stream=True), func)
    items = engine.stream("t.t")

    first = next(items)
    assert first == [1.0, 2.0]
    assert [type(each) for each in first] == [float, float]
    with pytest.raises(ReturnError, match=r"t\.t: result: expected list of float, got str"):
        next(items)
    assert asynchronous or EVENTS == ["closed"]


@pytest.mark.parametrize("returned", [[1, 2], None, {"a": 1}, "text", range(3)])
def test_non_iterator_is_a_return_error(returned: Any) -> None:
    """A tool that has a list returns it as a list type."""
    engine = of_engine(ToolSpec("t", "t", return_type=ArgType.INT, stream=True), lambda rt: returned)

    with pytest.raises(ReturnError, match=r"t\.t: result: expected an iterator, got "):
        engine.call("t.t")


@pytest.mark.parametrize("most", [1, 1000])
def test_iterator_that_is_not_a_generator_is_closed_too(tmp_path: Path, most: int) -> None:
    """An open file yields its lines, and is closed by the reader and at its end."""
    (tmp_path / "f").write_text("a\nb\n")
    opened: list[Any] = []

    def lines(rt: Runtime) -> Any:
        opened.append((tmp_path / "f").open())
        return opened[-1]

    engine = of_engine(ToolSpec("t", "t", return_type=ArgType.STRING, stream=True), lines)
    items = engine.stream("t.t")

    assert [*islice(items, most)] == ["a\n", "b\n"][:most]
    items.close()  # type: ignore[attr-defined]
    assert opened[0].closed
    assert engine.call("t.t") == ["a\n", "b\n"]
    assert opened[1].closed


def test_coroutine_function_may_return_either_iterator() -> None:
    """Both sync and async iterators are read."""

    async def plain(rt: object) -> Iterator[int]:
        await asyncio.sleep(0)
        return iter((1, 2))

    async def awaited(rt: Runtime) -> AsyncIterator[int]:
        return acounted(rt, 2)

    for func, items in ((plain, [1, 2]), (awaited, [0, 1])):
        engine = of_engine(ToolSpec("t", "t", return_type=ArgType.INT, stream=True), func)

        assert engine.call("t.t") == [*engine.stream("t.t")] == items
        assert asyncio.run(gathered(engine.astream("t.t"))) == items


@pytest.mark.parametrize(
    "raised", [ValueError("x"), StopIteration(1), SystemExit(3), ToolFailed("none left", retry="model")]
)
@pytest.mark.parametrize("waits", [False, True])
def test_stream_exception_becomes_tool_failed(raised: BaseException, waits: bool) -> None:
    """The items before it are delivered first."""

    def broken(rt: object) -> Iterator[int]:
        yield 1
        raise raised

    class Broken:
        def __init__(self) -> None:
            self.items = iter([1])

        def __next__(self) -> int:
            for each in self.items:
                return each
            raise raised

    for func in (broken, lambda rt: Broken()):
        if isinstance(raised, StopIteration) and func is not broken:
            continue  # this is the end there
        policy = ToolPolicy(blocking=waits)
        engine = of_engine(ToolSpec("t", "t", return_type=ArgType.INT, stream=True), func, policy)
        items = engine.stream("t.t")
        assert next(items) == 1
        with pytest.raises(ToolFailed) as caught:
            next(items)
        assert caught.value.tool == "t.t"
        with pytest.raises(ToolFailed):
            asyncio.run(gathered(engine.astream("t.t")))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_timeout_runs_from_the_first_item_to_the_last(asynchronous: bool) -> None:
    """At the timeout a stream is closed, or abandoned if it cannot be closed."""
    never = threading.Event()

    def slow(rt: object) -> Iterator[int]:
        yield 1
        never.wait()

    async def aslow(rt: object) -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.sleep(600)
        finally:
            EVENTS.append("closed")

    func = aslow if asynchronous else slow
    engine = of_engine(
        ToolSpec("t", "t", return_type=ArgType.INT, stream=True), func, ToolPolicy(timeout=0.2 if asynchronous else 600)
    )
    items = engine.stream("t.t", timeout=0.2)
    assert next(items) == 1

    with pytest.raises(CallTimeout, match=r"t\.t: did not end within 0\.2 s") as caught:
        next(items)

    assert caught.value.state == ("stopped" if asynchronous else "abandoned")
    assert EVENTS == (["closed"] if asynchronous else [])
    never.set()


def test_cancelled_reader_ends_its_tool(engine: Engine) -> None:
    """The cancellation reaches an async tool at its await, and the reader sees its own cancellation."""
    events: list[str] = []

    async def slow(rt: Runtime) -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.sleep(600)
        finally:
            events.append("closed")

    engine.register(tool(slow, group="g"))

    async def main() -> None:
        task = asyncio.ensure_future(gathered(engine.astream("g.slow")))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert events == ["closed"]


@pytest.mark.parametrize("way", ["timeout", "cancelled"])
def test_abandoned_stream_is_closed_at_its_next_item(engine: Engine, way: str) -> None:
    """The thread that runs it closes it, because no other can; garbage collection is not needed."""
    began, go, kept = threading.Event(), threading.Event(), []

    def slow(rt: Runtime) -> Iterator[int]:
        """Yield one item, and delay the next."""
        yield 1
        began.set()
        go.wait(60)
        yield 2

    def held(rt: Runtime) -> Iterator[int]:
        """Yield the same from a generator that is referenced elsewhere."""
        kept.append(slow(rt))
        return kept[0]

    engine.register(tool(held, group="g"))

    async def cancelled() -> None:
        task = asyncio.ensure_future(gathered(engine.astream("g.held")))
        await asyncio.to_thread(began.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    if way == "timeout":
        with pytest.raises(CallTimeout):
            engine.call("g.held", timeout=0.1)
    else:
        asyncio.run(cancelled())
    assert kept[0].gi_frame is not None
    go.set()
    end = time.monotonic() + 10
    while kept[0].gi_frame is not None and time.monotonic() < end:
        time.sleep(0.005)

    assert kept[0].gi_frame is None


def test_unreferenced_stream_ends_its_tool(engine: Engine) -> None:
    """Generators behave the same way."""
    items = engine.stream("s.plain", [10])
    next(items)
    del items

    assert EVENTS == ["give 0", "closed, runtime alive"]


def test_streams_of_one_engine_are_independent(engine: Engine) -> None:
    """Several threads read sync and async streams in turn."""

    def read(name: str, found: list[int]) -> None:
        for item in engine.stream(name, [200]):
            found.append(item)
            if item % 50 == 0:
                time.sleep(0)

    found: list[list[int]] = [[] for _ in range(8)]
    threads = [threading.Thread(target=read, args=(NAMES[i % 5], found[i])) for i in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert found == [list(range(200))] * 8


def test_closed_stream_makes_no_item() -> None:
    """A late thread makes none; the stream is closed only once."""

    class Source:
        def __init__(self) -> None:
            self.seen: list[str] = []

        def __next__(self) -> int:
            self.seen.append("asked")
            end()
            return 1

        def close(self) -> None:
            self.seen.append("closed")

    step, end, _ = item_reader(source := Source(), "g.late")

    assert (1, END) == (step(), step())
    end()
    assert ["asked", "closed"] == source.seen
