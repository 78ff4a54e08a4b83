"""Items of a stream as they arrive, for callers that execute a model's call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from neuroscript import (
    ArgumentError,
    Engine,
    ExecutionPolicy,
    Host,
    MemoryAudit,
    PolicyError,
    SpecError,
    ToolCall,
    ToolFailed,
    ToolNotFound,
    ToolPolicy,
    ToolResult,
    Toolset,
)

EVENTS: list[str] = []

tools = Toolset("s")


@tools.tool(name="plain", policy=ToolPolicy(effects=("pure",)))
@tools.tool(name="waits", policy=ToolPolicy(blocking=True))
def up(most: int) -> Iterator[int]:
    """Count up.

    Args:
        most: How far.
    """
    try:
        for number in range(most):
            EVENTS.append(f"give {number}")
            yield number
    finally:
        EVENTS.append("closed")


@tools.tool()
async def aup(most: int) -> AsyncIterator[int]:
    """Count up, as an async generator.

    Args:
        most: How far.
    """
    for each in up(most):
        await asyncio.sleep(0)
        yield each


@tools.tool()
def one(word: str) -> str:
    """Return one result, and no items."""
    return word


@tools.tool()
def words() -> Iterator[str]:
    """Yield a secret among other items."""
    yield from ("open", "sesame-42-and-open", "shut")


NAMES = ["s.plain", "s.waits", "s.aup"]
ENTRY_POINTS = ["execute", "aexecute", "aexecute, awaited"]
Carried = Callable[[str, Any, Callable[[Any], object]], ToolResult]


@pytest.fixture(autouse=True)
def _no_events() -> None:
    EVENTS.clear()


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(toolsets=[tools], plugins="none", host=Host(secrets={"word": "sesame-42-and-open"})) as engine:
        yield engine


@pytest.fixture(params=ENTRY_POINTS)
def carried(request: pytest.FixtureRequest, engine: Engine) -> Carried:
    """Executes a call by either entry point, and collects its items."""

    def out(name: str, arguments: Any, on_item: Callable[[Any], object]) -> ToolResult:
        call = ToolCall(name, arguments)
        if request.param == "execute":
            return engine.execute(call, on_item=on_item)

        async def later(item: Any) -> None:
            await asyncio.sleep(0)
            on_item(item)

        reported = on_item if request.param == "aexecute" else later
        return asyncio.run(engine.aexecute(call, on_item=reported))

    return out


@pytest.mark.parametrize("name", NAMES)
def test_items_are_reported_as_they_arrive_and_still_collected(carried: Carried, name: str) -> None:
    """The next item is made after the previous one was received."""
    result = carried(name, '{"most": "3"}', lambda item: EVENTS.append(f"received {item}"))

    assert (True, [0, 1, 2]) == (result.ok, result.value)
    assert ["give 0", "received 0", "give 1", "received 1", "give 2", "received 2", "closed"] == EVENTS


def test_plain_tool_reports_no_items(carried: Carried) -> None:
    """Its one result is not an item."""
    received: list[Any] = []

    assert "a" == carried("s.one", ["a"], received.append).value
    assert [] == received


def test_items_contain_no_secret(carried: Carried) -> None:
    """Redaction works as for results."""
    received: list[Any] = []

    result = carried("s.words", {}, received.append)

    assert ["open", "[secret]", "shut"] == received == result.value


@pytest.mark.parametrize("name", NAMES)
def test_error_of_a_reader_ends_the_tool_and_propagates(carried: Carried, name: str) -> None:
    """It does not count as a failure of the tool."""

    def full(item: int) -> None:
        if item == 1:
            raise OSError("the disk is full")

    with pytest.raises(OSError, match=r"^the disk is full$"):
        carried(name, [10**9], full)

    assert ["give 0", "give 1", "closed"] == EVENTS


def test_call_error_of_a_reader_becomes_the_result(carried: Carried) -> None:
    """The error contains the item count, as if an item had failed."""

    def enough(item: int) -> None:
        raise ToolFailed("that is enough", retry="never")

    result = carried("s.plain", [5], enough)

    assert result.error is not None
    assert ("that is enough (after 1 item)", 1) == (result.error.text, result.error.items)
    assert "closed" == EVENTS[-1]


def test_stream_accepts_a_call_of_a_model(engine: Engine) -> None:
    """It accepts every spelling and JSON text, hides secrets, and collects nothing."""
    items = engine.stream(ToolCall("s__plain", '{"most": "1000000000"}'))
    assert [0, 1] == [next(items), next(items)]
    items.close()  # type: ignore[attr-defined]

    assert "closed" == EVENTS[-1]
    assert ["open", "[secret]", "shut"] == list(engine.stream(ToolCall("s.words")))


def test_async_stream_accepts_a_call_of_a_model(engine: Engine) -> None:
    async def read() -> list[Any]:
        items = engine.astream(ToolCall("s__words"))
        return [item async for item in items]

    async def begin() -> int:
        items = engine.astream(ToolCall("s__aup", [10**9]))
        async for item in items:
            await items.aclose()  # type: ignore[attr-defined]
            return int(item)
        raise AssertionError

    assert ["open", "[secret]", "shut"] == asyncio.run(read())
    assert 0 == asyncio.run(begin())
    assert ["give 0", "closed"] == EVENTS


def test_call_that_cannot_start_fails_at_once(engine: Engine) -> None:
    """It fails before the first item is requested, because the call already contains its arguments."""
    with pytest.raises(ToolNotFound):
        engine.stream(ToolCall("s.nothing"))
    with pytest.raises(ArgumentError, match=r"^s\.plain: expected arguments as JSON, got str"):
        engine.stream(ToolCall("s.plain", "{"))
    with pytest.raises(ArgumentError, match=r"^s\.plain: most: expected int, got str"):
        engine.astream(ToolCall("s.plain", ["x"]))


def test_denied_tool_stays_denied() -> None:
    policy = ExecutionPolicy(deny=("s.plain",))
    with Engine(toolsets=[tools], plugins="none", policy=policy) as engine:
        refused = engine.execute(ToolCall("s__plain", [1]), on_item=EVENTS.append).error
        for entry_point in (engine.stream, engine.astream):
            with pytest.raises(PolicyError) as caught:
                entry_point(ToolCall("s__plain", [1]))
            assert ("policy.denied", "host", "s.plain") == (caught.value.code, caught.value.retry, caught.value.rule)

    assert refused is not None
    assert ("policy.denied", "host", []) == (refused.code, refused.retry, EVENTS)


def test_async_reader_is_refused_in_sync_code() -> None:
    """Otherwise it would never receive an item."""

    async def told(item: Any) -> None:
        EVENTS.append(item)

    with Engine(toolsets=[tools], plugins="none") as engine, pytest.raises(SpecError) as caught:
        engine.execute(ToolCall("s.plain", [5]), on_item=told)

    assert str(caught.value) == "execute: on_item is a coroutine function; use aexecute, which awaits it"


def test_record_says_that_the_reader_ended_the_stream() -> None:
    """The interrupting error is not a call error."""
    audit = MemoryAudit()
    with Engine(toolsets=[tools], plugins="none", audit=audit) as engine, pytest.raises(ZeroDivisionError):
        engine.execute(ToolCall("s.plain", [5]), on_item=lambda item: 1 // (3 - item))

    (record,) = audit.records
    assert ("call.interrupted", 4) == (record.code, record.spent["items"])
