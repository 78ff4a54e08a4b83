"""Streams: items as they come, exact, and closed whichever way they end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.core.gathering import gathered

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
from neuroscript.calls.streams import reading

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


def test_an_annotation_makes_a_stream() -> None:
    """An iterator of T is a stream of T, and the spec says so in plain data too."""
    spec = tool(acounted, group="g").spec

    assert (spec.stream, spec.return_type) == (True, ArgType.INT)
    assert spec_from_data(spec_to_data(spec)) == spec
    with pytest.raises(SpecError, match="the result: "):
        tool(unreadable, group="g")


def unreadable() -> Iterator[set[int]]:
    """Give what no ArgType names."""
    yield {1}


@pytest.mark.parametrize("name", NAMES)
def test_items_come_one_by_one(engine: Engine, name: str) -> None:
    """The tool makes an item when it is asked for, not before; the end closes it."""
    items = engine.stream(name, [3])

    assert EVENTS == []
    assert next(items) == 0
    assert EVENTS == ["give 0"]
    assert [*items] == [1, 2]
    assert EVENTS[-1] == "closed, runtime alive"


@pytest.mark.parametrize("name", NAMES)
def test_items_come_to_a_reader_that_awaits(engine: Engine, name: str) -> None:
    """By name as well; the loop goes on in between."""
    assert asyncio.run(gathered(engine.astream(name, {"most": "3"}))) == [0, 1, 2]
    assert EVENTS[-1] == "closed, runtime alive"


@pytest.mark.parametrize("name", NAMES)
def test_a_closed_stream_ends_its_tool(engine: Engine, name: str) -> None:
    """Its ``finally`` has run, with a live Runtime, when ``close`` returns."""
    items = engine.stream(name, [10**9])
    assert [next(items), next(items)] == [0, 1]

    items.close()  # type: ignore[attr-defined]

    assert EVENTS == ["give 0", "give 1", "closed, runtime alive"]
    assert engine.close() == ()


@pytest.mark.parametrize("name", NAMES)
def test_a_closed_async_stream_ends_its_tool(engine: Engine, name: str) -> None:
    """Whatever runs it."""
    assert asyncio.run(gathered(engine.astream(name, [10**9]), most=2)) == [0, 1]
    assert EVENTS == ["give 0", "give 1", "closed, runtime alive"]


@pytest.mark.parametrize("name", NAMES)
def test_a_call_collects_the_items(engine: Engine, name: str) -> None:
    """Into a list, from every door, and for another tool too."""

    def doubled(rt: Runtime) -> list[int]:
        return [2 * each for each in rt.call_tool(name, [3])]

    engine.register(tool(doubled, group="g"))

    assert engine.call(name, [3]) == engine.call_named(name, {"most": 3}) == [0, 1, 2]
    assert asyncio.run(engine.acall(name, [3])) == [0, 1, 2]
    assert engine.execute(ToolCall(name, '{"most": "3"}')).value == [0, 1, 2]
    assert engine.call(name, [0]) == []
    assert engine.call("g.doubled") == [0, 2, 4]


def test_a_coroutine_tool_collects_an_async_stream(engine: Engine) -> None:
    """Although it holds up the loop on which other coroutine tools run."""

    async def outer(rt: Runtime) -> list[int]:
        await asyncio.sleep(0)
        found: list[int] = rt.call_tool("s.coroutine", [50])
        return found

    engine.register(tool(outer, group="g"))

    assert engine.call("g.outer") == list(range(50))


def test_a_call_collects_so_many_and_no_more(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """And ends the tool then."""
    monkeypatch.setattr("neuroscript.calls.streams.COLLECTED", 5)

    assert engine.call("s.plain", [5]) == [0, 1, 2, 3, 4]
    for name in NAMES:
        EVENTS.clear()
        with pytest.raises(LimitError) as caught:
            engine.call(name, [10**9])
        assert (caught.value.code, caught.value.retry, caught.value.tool) == ("limit.items", "host", name)
        assert EVENTS[-1] == "closed, runtime alive"


def test_a_tool_that_is_no_stream_gives_its_one_result() -> None:
    """So that a host needs no case of its own for it."""
    engine = of_engine(ToolSpec("t", "t", (ArgSpec("a", ArgType.INT),), return_type=ArgType.INT), lambda rt, a: a)

    assert [*engine.stream("t.t", ["7"])] == [7]
    assert asyncio.run(gathered(engine.astream("t.t", {"a": 7}))) == [7]


def test_wrong_arguments_are_said_at_once(engine: Engine) -> None:
    """Not when the first item is asked for."""
    with pytest.raises(ArgumentError, match=r"s\.plain: most: expected int, got str"):
        engine.stream("s.plain", ["x"])
    with pytest.raises(ArgumentError):
        engine.astream("s.plain", {"least": 1})


@pytest.mark.parametrize("asynchronous", [False, True])
def test_each_item_is_exact_or_the_stream_ends(asynchronous: bool) -> None:
    """What the tool promises is held item by item, and what breaks it ends the tool."""

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
def test_what_is_no_iterator_is_a_return_error(returned: Any) -> None:
    """A list is no stream: whoever has one already returns a list."""
    engine = of_engine(ToolSpec("t", "t", return_type=ArgType.INT, stream=True), lambda rt: returned)

    with pytest.raises(ReturnError, match=r"t\.t: result: expected an iterator, got "):
        engine.call("t.t")


@pytest.mark.parametrize("most", [1, 1000])
def test_an_iterator_that_is_no_generator_is_closed_too(tmp_path: Path, most: int) -> None:
    """An open file gives its lines, and is closed when the reader closes the stream and when it has read them all."""
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


def test_a_coroutine_function_may_return_either_iterator() -> None:
    """What it returns is read as what it is."""

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
def test_what_a_stream_raises_is_tool_failed(raised: BaseException, waits: bool) -> None:
    """After the items that came before it."""

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
            continue  # there it is the end
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
def test_time_runs_from_the_first_item_to_the_last(asynchronous: bool) -> None:
    """A stream that does not end in time is closed, if it can be, and otherwise left behind."""
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


def test_a_reader_that_is_cancelled_ends_its_tool(engine: Engine) -> None:
    """The cancellation reaches an async tool where it stands, and the reader sees its own cancellation."""
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
def test_a_tool_that_was_left_behind_is_closed_when_it_gives_its_next_item(engine: Engine, way: str) -> None:
    """By the thread that is in it, for nobody else can; it is not left to the collector of garbage."""
    began, go, kept = threading.Event(), threading.Event(), []

    def slow(rt: Runtime) -> Iterator[int]:
        """Give one, and be late with the next."""
        yield 1
        began.set()
        go.wait(60)
        yield 2

    def held(rt: Runtime) -> Iterator[int]:
        """Give the same, by a generator that somebody holds on to."""
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


def test_a_stream_that_nobody_reads_any_more_is_ended_when_it_is_dropped(engine: Engine) -> None:
    """As every generator is."""
    items = engine.stream("s.plain", [10])
    next(items)
    del items

    assert EVENTS == ["give 0", "closed, runtime alive"]


def test_streams_of_one_engine_do_not_disturb_each_other(engine: Engine) -> None:
    """Sync and async ones, read in turns from several threads."""

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


def test_no_item_is_made_of_a_stream_that_is_over() -> None:
    """On a thread that comes too late; it is closed once, whoever closes it."""

    class Source:
        def __init__(self) -> None:
            self.seen: list[str] = []

        def __next__(self) -> int:
            self.seen.append("asked")
            end()
            return 1

        def close(self) -> None:
            self.seen.append("closed")

    step, end, _ = reading(source := Source(), "plain", "g.late")

    assert (1, END) == (step(), step())
    end()
    assert ["asked", "closed"] == source.seen
