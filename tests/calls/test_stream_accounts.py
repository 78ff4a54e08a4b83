"""Accounting of streams: items, bytes, and whether a stream ended, was closed or failed."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.calls.stream_reader import gathered

from neuroscript import (
    AuditSink,
    CallError,
    CallRecord,
    CallTimeout,
    Engine,
    ExecutionPolicy,
    FileAudit,
    LimitError,
    Limits,
    MemoryAudit,
    PolicyError,
    Recording,
    ReturnError,
    Runtime,
    SqliteAudit,
    ToolCall,
    ToolFailed,
    Toolset,
    result_to_data,
)
from neuroscript.audit.reader import read as read_audit

EVENTS: list[str] = []
GONE = ToolFailed("nothing is left", retry="later")

tools = Toolset("s")


def made(most: int, then: str, gone: ToolFailed) -> Iterator[str]:
    for _ in range(most):
        yield "abc"
    match then:
        case "raise":
            raise ValueError("a private value")
        case "fail":
            raise gone
        case "number":
            yield 5  # type: ignore[misc]


@tools.tool()
def words(most: int, then: str = "") -> Iterator[str]:
    """Yield strings of three bytes, then optionally something else.

    Args:
        most: How many.
        then: What comes behind them.
    """
    try:
        yield from made(most, then, GONE)
    finally:
        EVENTS.append("closed")


@tools.tool()
async def awords(most: int, then: str = "") -> AsyncIterator[str]:
    """Yield the same, as an async generator.

    Args:
        most: How many.
        then: What comes behind them.
    """
    try:
        for each in made(most, then, ToolFailed("nothing is left")):
            await asyncio.sleep(0)
            yield each
    finally:
        EVENTS.append("closed")


NAMES = ["s.words", "s.awords"]


@pytest.fixture(autouse=True)
def _no_events() -> None:
    EVENTS.clear()


def watched(**limits: Any) -> tuple[Engine, MemoryAudit]:
    audit = MemoryAudit()
    policy = ExecutionPolicy(limits=Limits(**limits) if limits else None)
    return Engine(toolsets=[tools], plugins="none", audit=audit, policy=policy), audit


def recorded(audit: MemoryAudit) -> list[tuple[str, dict[str, Any]]]:
    return [(each.code, dict(each.spent)) for each in audit.records]


@pytest.mark.parametrize("name", NAMES)
def test_record_counts_items_and_bytes_of_a_stream(name: str) -> None:
    """Every entry point counts the same bytes as the limits."""
    engine, audit = watched()

    engine.call(name, (4,))
    list(engine.stream(name, (2,)))
    asyncio.run(gathered(engine.astream(name, (1,))))
    engine.execute(ToolCall(name, {"most": 0}))

    amounts = [(4, 44), (2, 22), (1, 11), (0, 0)]
    assert [("ok", {"items": items, "result_bytes": size}) for items, size in amounts] == recorded(audit)


@pytest.mark.parametrize("name", NAMES)
def test_record_says_that_a_stream_was_closed_early(name: str) -> None:
    """That is neither an error nor a complete read."""
    engine, audit = watched()

    items = engine.stream(name, (9,))
    assert ["abc", "abc"] == [next(items), next(items)]
    items.close()  # type: ignore[attr-defined]
    asyncio.run(gathered(engine.astream(name, (9,)), most=3))

    expected = [("stream.closed", {"items": n, "result_bytes": 11 * n}) for n in (2, 3)]
    assert expected == recorded(audit)
    assert EVENTS == ["closed", "closed"]


@pytest.mark.parametrize("name", NAMES)
def test_failing_item_ends_the_stream_with_an_error_and_a_count(name: str) -> None:
    """The count is in the message for models, an attribute, the plain data and the record."""
    engine, audit = watched()
    found: list[CallError] = []
    for most, then in ((0, "raise"), (1, "raise"), (2, "fail"), (3, "number")):
        with pytest.raises(CallError) as caught:
            list(engine.stream(name, (most, then)))
        found.append(caught.value)

    assert [
        f"{name}: the tool failed (ValueError) (after 0 items)",
        f"{name}: the tool failed (ValueError) (after 1 item)",
        f"{name}: nothing is left (after 2 items)",
        f"{name}: result: expected string, got int (after 3 items)",
    ] == [str(each) for each in found]
    assert [0, 1, 2, 3] == [each.items for each in found]
    assert [ToolFailed, ToolFailed, ToolFailed, ReturnError] == [type(each) for each in found]
    assert ["tool.failed", "tool.failed", "tool.failed", "return.type"] == [code for code, _ in recorded(audit)]
    assert [0, 1, 2, 3] == [spent["items"] for _, spent in recorded(audit)]
    assert isinstance(found[1].__cause__, ValueError)
    assert (None, "nothing is left") == (GONE.items, GONE.text)


def test_count_is_part_of_the_error_data() -> None:
    """It survives serialization."""
    engine, _ = watched()
    failed = engine.execute(ToolCall("s.words", (2, "fail")))
    plain = engine.execute(ToolCall("s.words", ("x",)))

    assert failed.error is not None
    assert {
        "code": "tool.failed",
        "number": 21,
        "retry": "later",
        "message": "s.words: nothing is left (after 2 items)",
        "items": 2,
    } == result_to_data(failed)["error"]
    assert "items" not in result_to_data(plain)["error"]
    assert 2 == pickle.loads(pickle.dumps(failed.error)).items


def test_stream_timeout_reports_its_progress() -> None:
    """It does so like any failed stream."""

    async def slow(rt: Runtime) -> AsyncIterator[int]:
        """Yield two items, then wait."""
        yield 1
        yield 2
        await asyncio.sleep(600)

    engine, audit = watched()
    engine.register(_one(slow))

    with pytest.raises(CallTimeout) as caught:
        engine.call("g.slow", timeout=0.1)

    assert "g.slow: did not end within 0.1 s and was stopped (after 2 items)" == str(caught.value)
    assert [("call.timeout", {"items": 2, "result_bytes": 16})] == recorded(audit)


@pytest.mark.alone
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("entry_point", ["call", "execute", "aexecute", "stream", "astream"])
def test_endless_stream_ends_at_its_timeout(asynchronous: bool, entry_point: str) -> None:
    """This holds for fast items, and if only the reader takes time."""

    def fast(rt: Runtime) -> Iterator[int]:
        """Yield a number repeatedly."""
        while True:
            yield 1

    async def afast(rt: Runtime) -> AsyncIterator[int]:
        """Yield a number repeatedly."""
        while True:
            yield 1

    engine, audit = watched()
    engine.register(_one(afast if asynchronous else fast))
    name = f"g.{'afast' if asynchronous else 'fast'}"
    count = 0

    def slow(item: int) -> None:
        nonlocal count
        count += 1
        if count > 20:
            raise TimeoutError
        threading.Event().wait(0.02)

    async def read() -> None:
        async for each in engine.astream(name, timeout=0.1):
            slow(each)

    with pytest.raises(CallTimeout) as caught:
        match entry_point:
            case "call":
                engine.call(name, timeout=0.1)
            case "execute":
                raise engine.execute(ToolCall(name), 0.1, on_item=slow).error or AssertionError
            case "aexecute":
                raise asyncio.run(engine.aexecute(ToolCall(name), 0.1, on_item=slow)).error or AssertionError
            case "stream":
                for each in engine.stream(name, timeout=0.1):
                    slow(each)
            case "astream":
                asyncio.run(read())

    count = f"{caught.value.items} item{'' if caught.value.items == 1 else 's'}"
    assert f"{name}: did not end within 0.1 s and was stopped (after {count})" == str(caught.value)
    assert ["call.timeout"] == [code for code, _ in recorded(audit)]


def _one(func: Any) -> Toolset:
    toolset = Toolset("g")
    toolset.tool()(func)
    return toolset


def test_nested_stream_is_counted_separately() -> None:
    """A nested refusal by the host keeps the count of the stream that it refused."""

    def outer(rt: Runtime, most: int) -> Iterator[str]:
        """Yield each item of another stream twice."""
        yield "first"
        for each in rt.call_tool("s.words", (most,)):
            yield from (each, each)

    engine, audit = watched(items=3)
    engine.register(_one(outer))

    assert ["first", "abc", "abc"] == engine.call("g.outer", (1,))
    with pytest.raises(LimitError) as caught:
        engine.call("g.outer", (4,))

    assert "s.words: yielded more than 3 items" == str(caught.value)
    assert 3 == caught.value.items
    assert [("ok", 1), ("ok", 3), ("limit.items", 3), ("limit.items", 1)] == [
        (code, spent["items"]) for code, spent in recorded(audit)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_host_limits_the_items_of_a_stream(name: str) -> None:
    """The limit holds for every reader, and the tool is stopped."""
    engine, audit = watched(items=3)

    assert ["abc"] * 3 == list(engine.stream(name, (3,)))
    items = engine.stream(name, (4,))
    assert ["abc"] * 3 == [next(items) for _ in range(3)]
    with pytest.raises(LimitError) as caught:
        next(items)
    for entry_point in (lambda: engine.call(name, (4,)), lambda: asyncio.run(gathered(engine.astream(name, (4,))))):
        with pytest.raises(LimitError):
            entry_point()

    assert (f"{name}: yielded more than 3 items", "limit.items", "host", 3) == (
        str(caught.value),
        caught.value.code,
        caught.value.retry,
        caught.value.items,
    )
    assert ["ok", *["limit.items"] * 3] == [code for code, _ in recorded(audit)]
    assert EVENTS == ["closed"] * 4


def test_lowest_limit_of_all_layers_applies() -> None:
    """A session narrows it; 0 permits no items."""
    engine, _ = watched(items=3)
    session = engine.session(policy=ExecutionPolicy(limits=Limits(items=0)))

    assert [] == session.call("s.words", (0,))
    with pytest.raises(LimitError, match=r"^s\.words: yielded more than 0 items$"):
        session.call("s.words", (1,))
    assert ["abc"] * 3 == engine.call("s.words", (3,))


def test_oversized_stream_reports_its_progress() -> None:
    """Its bytes are added to those used before."""
    engine, audit = watched(result_bytes=32)

    with pytest.raises(LimitError) as caught:
        list(engine.stream("s.words", (3,)))

    assert "s.words: returned a result of more than 32 bytes (after 2 items)" == str(caught.value)
    assert [("limit.result_bytes", {"items": 2, "result_bytes": 22})] == recorded(audit)


def test_refusal_reports_no_items() -> None:
    """No item was made."""
    audit = MemoryAudit()
    engine = Engine(toolsets=[tools], plugins="none", audit=audit, policy=ExecutionPolicy(deny=("s.*",)))

    with pytest.raises(PolicyError) as caught:
        engine.stream("s.words", (1,))

    assert caught.value.items is None
    assert [("policy.denied", {})] == recorded(audit)


def test_audit_logs_store_stream_accounts(tmp_path: Path) -> None:
    """Files and databases contain the same as the record in memory."""
    files: list[AuditSink] = [FileAudit(tmp_path / "trail"), SqliteAudit(tmp_path / "base")]
    with Engine(toolsets=[tools], plugins="none", audit=files) as engine:
        engine.call("s.words", (2,))
        engine.stream("s.words", (9,)).__next__()
        engine.execute(ToolCall("s.words", (1, "raise")))

    expected = [
        ("ok", {"items": 2, "result_bytes": 22}),
        ("stream.closed", {"items": 1, "result_bytes": 11}),
        ("tool.failed", {"items": 1, "result_bytes": 11}),
    ]
    for path in ("trail", "base"):
        records = [each for each in read_audit(tmp_path / path) if each["kind"] == "outcome"]
        assert expected == [(each["code"], each["spent"]) for each in records]
    assert json.loads((tmp_path / "trail").read_bytes().splitlines()[1])["spent"] == expected[0][1]


def test_recording_of_a_stream_is_limited_to_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless stream cannot fill the memory; closed and oversized streams cannot be replayed."""
    monkeypatch.setattr("neuroscript.calls.gate.MAX_RECORDED_BYTES", 33)
    with (
        Recording(tmp_path / "calls") as recording,
        Engine(toolsets=[tools], plugins="none", recording=recording) as engine,
    ):
        assert ["abc"] * 3 == engine.call("s.words", (3,))
        assert ["abc"] * 4 == engine.call("s.words", (4,))
        next(engine.stream("s.words", (9,)))
        engine.execute(ToolCall("s.words", (1, "raise")))

    lines = [*map(json.loads, (tmp_path / "calls").read_text().splitlines())]
    assert (2, 1) == (recording.written, recording.not_recorded)
    assert [["abc"] * 3, "size", "tool.failed"] == [
        each.get("result", each.get("not_recorded", each.get("code"))) for each in lines
    ]


def test_closed_stream_is_not_a_failure_for_observers() -> None:
    """They receive its code, and no interrupt."""
    engine, audit = watched()
    items = engine.stream("s.words", (2,))
    next(items)
    del items

    (record,) = audit.records
    assert isinstance(record, CallRecord)
    assert ("outcome", "stream.closed", 1) == (record.kind, record.code, record.spent["items"])
