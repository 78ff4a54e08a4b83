"""Streams that exceed any memory: 100,000 items by default, 1,000,000 with the full counts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import start
from tests.conftest import ALL

from neuroscript import Engine, ExecutionPolicy, FileAudit, Limits, MemoryAudit, ToolCall, ToolPolicy, Toolset

ITEMS = 1_000_000 if ALL else 100_000
CROSSING = 100_000 if ALL else 5_000
"""The number of items passed between threads, which takes fifty times as long."""
GROWS = 6 * 1024 * 1024
"""The bytes a process may grow between the first tenth of the items and the last; storing all would take 20 MB."""

PLUGIN = """
from collections.abc import Iterator
from pathlib import Path
import os

def register(registrar):
    @registrar.toolset("long").tool()
    def stream(items: int) -> Iterator[str]:
        try:
            for number in range(items):
                if number % (items // 10) == items // 10 - 1:
                    yield str(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE"))
                else:
                    yield "x" * 200
        finally:
            Path(__file__).with_suffix(".closed").touch()
"""

closed: list[str] = []
tools = Toolset("long")


def texts(most: int) -> Iterator[str]:
    try:
        for number in range(most):
            yield f"{number:200}"
    finally:
        closed.append("closed")


@tools.tool(policy=ToolPolicy(effects=("pure",)))
def plain(most: int) -> Iterator[str]:
    """Yield many items."""
    yield from texts(most)


@tools.tool()
async def awaited(most: int) -> AsyncIterator[str]:
    """Yield as many, as an async generator."""
    try:
        for number in range(most):
            yield f"{number:200}"
    finally:
        closed.append("closed")


def memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def read(engine: Engine, name: str, given: int, most: int) -> tuple[int, int]:
    """Read items, and return how many arrived and how much the process grew after the first tenth."""
    count = first = 0
    items = engine.stream(ToolCall(name, [given]))
    for _ in items:
        count += 1
        if count == given // 10:
            first = memory()
        if count == most:
            items.close()  # type: ignore[attr-defined]
            break
    return count, memory() - first


def aread(engine: Engine, name: str, given: int, most: int) -> tuple[int, int]:
    """Do the same on an event loop."""

    async def reading() -> tuple[int, int]:
        count = first = 0
        items = engine.astream(name, [given])
        async for _ in items:
            count += 1
            if count == given // 10:
                first = memory()
            if count == most:
                await items.aclose()  # type: ignore[attr-defined]
                break
        return count, memory() - first

    return asyncio.run(reading())


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An engine with every kind of accounting."""
    closed.clear()
    audit = [MemoryAudit(), FileAudit(tmp_path / "trail")]
    policy = ExecutionPolicy(limits=Limits(calls=10, items=ITEMS, result_bytes=10**12))
    with Engine(toolsets=[tools], plugins="none", audit=audit, policy=policy) as engine:
        yield engine


Read = Callable[[Engine, str, int, int], tuple[int, int]]
WAYS = [
    pytest.param(read, "long.plain", ITEMS, id="stream"),
    pytest.param(aread, "long.awaited", ITEMS, id="astream of an async tool"),
    pytest.param(aread, "long.plain", CROSSING, id="astream"),
    pytest.param(read, "long.awaited", CROSSING, id="stream of an async tool"),
]
"""The readers, the tools, and the numbers of items."""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is read from /proc")
@pytest.mark.parametrize(("read", "name", "items"), WAYS)
def test_stream_has_constant_memory(engine: Engine, read: Read, name: str, items: int) -> None:
    """It is audited, limited and counted to its end."""
    count, grown = read(engine, name, items, -1)

    assert (items, ["closed"]) == (count, closed)
    assert grown < GROWS


@pytest.mark.parametrize(("read", "name", "items"), WAYS)
def test_closing_a_stream_early_ends_its_tool(engine: Engine, read: Read, name: str, items: int) -> None:
    """The tool has ended when ``close`` or ``aclose`` returns."""
    count, _ = read(engine, name, items, items // 2)

    assert (items // 2, ["closed"]) == (count, closed)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is read from /proc")
def test_command_line_streams_with_constant_memory(tmp_path: Path) -> None:
    """At each tenth of the items the tool reports the size of its process."""
    plugin = tmp_path / "long.py"
    plugin.write_text(PLUGIN)

    child = start("call", "-p", str(plugin), "long.stream", str(ITEMS))
    assert child.stdout
    sizes, count = [], 0
    for line in child.stdout:
        count += 1
        if count % (ITEMS // 10) == 0:
            sizes.append(int(line))
    _, output = child.communicate(timeout=30)

    assert (0, b"", ITEMS, 10) == (child.returncode, output, count, len(sizes))
    assert sizes[-1] - sizes[0] < GROWS
    assert plugin.with_suffix(".closed").exists()
