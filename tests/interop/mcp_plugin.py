"""Tools that the tests of MCP serve, in this process and in others."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import Iterator
from itertools import count as numbered
from pathlib import Path
from typing import Any

from neuroscript import ArgSpec, ArgType, Runtime, ToolFailed, ToolPolicy, ToolSpec

PICTURE = b"\x89PNG\r\n\x1a\n" + b"\x00" * 8


def wait_for(rt: Runtime, mark: Path) -> None:
    """Wait until a file exists, or the call is cancelled."""
    end = time.monotonic() + 60
    while not (mark.exists() or rt.cancelled) and time.monotonic() < end:
        time.sleep(0.01)


def register(registrar: Any) -> None:
    """Register all tools."""
    tools = registrar.toolset("t")

    @tools.tool(policy=ToolPolicy(effects=("pure",)))
    def add(rt: Runtime, a: int, b: int = 1) -> int:
        """Add two numbers.

        Args:
            a: The first.
            b: The second.
        """
        return a + b

    @tools.tool()
    def type_of(rt: Runtime, a: int) -> str:
        return type(a).__name__

    @tools.tool()
    def words(rt: Runtime) -> list[str]:
        return ["a", "b"]

    @tools.tool()
    def facts(rt: Runtime) -> dict[str, Any]:
        return {"a": 1, "b": None}

    @tools.tool()
    def nothing(rt: Runtime) -> None:
        return None

    @tools.tool()
    def breaks(rt: Runtime) -> str:
        raise KeyError("milk")

    @tools.tool(policy=ToolPolicy(capabilities=("shop:open:{name}",)))
    def shop(rt: Runtime, name: str) -> str:
        return name

    @tools.tool()
    def fails(rt: Runtime) -> str:
        raise ToolFailed("there is no milk", retry="later")

    @tools.tool()
    def refused(rt: Runtime) -> str:
        return "ran"

    @tools.tool(policy=ToolPolicy(requires_approval=True, effects=("deletes",)))
    def risky(rt: Runtime, path: str) -> str:
        return f"deleted {path}"

    @tools.tool(policy=ToolPolicy(effects=("prompts",)))
    def asks(rt: Runtime, secret: bool = False) -> str:
        return f"hello {rt.prompt_user('who is there?', secret=secret)}"

    @tools.tool()
    async def asks_on_the_loop(rt: Runtime) -> str:
        return rt.prompt_user("who is there?")

    @tools.tool(policy=ToolPolicy(effects=("deletes",)))
    def outer(rt: Runtime, path: str) -> str:
        return str(rt.call_tool("t.risky", [path]))

    @tools.tool(policy=ToolPolicy(effects=("reads",)))
    def steps(rt: Runtime, count: int) -> int:
        for done in range(count):
            rt.progress(done + 1, count, "going on")
        rt.progress(1, count, "from the start")
        rt.progress(float("nan"))
        rt.logger.warning("nearly there")
        return count

    @tools.tool(policy=ToolPolicy(effects=("reads",)))
    def pieces(rt: Runtime, count: int, mark: str = "") -> Iterator[str]:
        """Yield parts of a string, and wait before the last one until a file exists."""
        try:
            for number in range(count):
                if mark and number == count - 1:
                    wait_for(rt, Path(mark))
                yield f"piece {number}\n" + "x" * (2_000 if number == 1 else 0)
        finally:
            if mark:
                Path(mark).with_suffix(".closed").touch()

    @tools.tool(policy=ToolPolicy(effects=("reads",)))
    def endless(rt: Runtime, mark: str) -> Iterator[str]:
        """Yield items without end, and store their number in a file."""
        try:
            for number in numbered(1):
                Path(mark).write_text(str(number))
                yield "x" * 1_000
        finally:
            Path(mark).with_suffix(".closed").touch()

    @tools.tool(policy=ToolPolicy(effects=("pure",)))
    def numbers(rt: Runtime, count: int) -> Iterator[dict[str, int]]:
        for number in range(count):
            yield {"n": 12 // (3 - number)}

    @tools.tool(policy=ToolPolicy(effects=("pure",)))
    def ahead(rt: Runtime) -> Iterator[str]:
        """Yield two items, and report progress before each."""
        for done, item in ((50, "a"), (60, "b")):
            rt.progress(done, 100, "going on")
            yield item

    @tools.tool()
    def prints(rt: Runtime) -> str:
        rt.println("by println")
        print('{"jsonrpc": "2.0", "id": 1, "result": {}}', flush=True)
        os.system("echo by a program")
        sys.stdout.flush()
        return sys.stdin.readline()

    @tools.tool()
    async def sleeps(rt: Runtime, mark: str) -> str:
        try:
            Path(mark).write_text("began")
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            Path(mark).write_text("stopped")
            raise
        return "slept"

    @tools.tool(policy=ToolPolicy(effects=("reads",)))
    def waits(rt: Runtime, mark: str) -> str:
        Path(mark).write_text("began")
        end = time.monotonic() + 60
        while not rt.cancelled and time.monotonic() < end:
            time.sleep(0.01)
        Path(mark).write_text("looked")
        return "waited"

    @tools.tool()
    def deaf(rt: Runtime, mark: str) -> str:
        Path(mark).write_text("began")
        time.sleep(60)
        return "never looked"

    @tools.tool()
    async def naps(rt: Runtime, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "rested"

    @tools.tool()
    async def stays(rt: Runtime, mark: str) -> str:
        """Create a file, and wait until it contains ``go``."""
        Path(mark).write_text("began")
        while Path(mark).read_text() != "go":
            await asyncio.sleep(0.01)
        return "stayed"

    @tools.tool()
    def remember(rt: Runtime, word: str) -> None:
        rt.set_var("word", word)

    @tools.tool()
    def keeps(rt: Runtime, mark: str) -> str:
        return rt.handles.new(mark, "mark", lambda: Path(mark).write_text("released")).id

    @tools.tool()
    def recall(rt: Runtime) -> str:
        return str(rt.get_var("word", ""))

    @tools.tool()
    async def state(rt: Runtime) -> dict[str, int]:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return {
            "tasks": len(asyncio.all_tasks()),
            "threads": threading.active_count(),
            "descriptors": len([*Path("/proc/self/fd").iterdir()]),
            "memory": pages * os.sysconf("SC_PAGESIZE"),
        }

    blob = ToolSpec("picture", "t", (ArgSpec("data", ArgType.BLOB, default=PICTURE),), return_type=ArgType.BLOB)
    tools.add(blob, lambda rt, data: data)
