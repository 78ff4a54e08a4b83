"""An engine with tools for the plans of the tests."""

from __future__ import annotations

import threading
import time
from typing import Any

from neuroscript import ArgSpec, ArgType, Engine, Runtime, ToolFailed, ToolPolicy, Toolset, ToolSpec

WAITS = ToolPolicy(effects=("net",))


class Lab:
    """Tools that record their calls.

    Attributes:
        seen: The tools and values of the calls, in the order in which they began.
        most: How many of them ran at once.
        gate: The event that `wait` waits for.
    """

    def __init__(self, **options: Any) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self.most = self._now = 0
        self.gate = threading.Event()
        self._lock = threading.Lock()
        lab = Toolset("lab")
        for each in (self.add, self.sum, self.fail, self.echo, self.items, self.forget):
            lab.tool()(each)
        lab.tool(name="nap", policy=WAITS)(self.nap)
        lab.tool(name="wait", policy=ToolPolicy(effects=("net", "idempotent")))(self.wait)
        lab.tool(name="rest", policy=ToolPolicy(effects=("net", "idempotent")))(self.rest)
        lab.tool(name="write", policy=ToolPolicy(capabilities=("fs:write:{path}",)))(self.write)
        secret = (ArgSpec("key", ArgType.STRING, secret=True),)
        lab.add(ToolSpec("unlock", "lab", secret, return_type=ArgType.STRING), lambda rt, key: f"with {key}")
        self.engine = Engine(toolsets=[lab], plugins="none", **options)

    def add(self, a: int, b: int = 1) -> int:
        """Add two numbers."""
        self.seen.append(("add", a, b))
        return a + b

    def sum(self, a: int, b: int) -> int:
        """Add two numbers without recording the call."""
        return a + b

    def fail(self, text: str) -> str:
        """Fail with a message."""
        self.seen.append(("fail", text))
        raise ToolFailed(text)

    def echo(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return the argument."""
        self.seen.append(("echo", value))
        return value

    def items(self, count: int) -> list[int]:
        """Return a list of numbers."""
        return list(range(count))

    def forget(self, values: list[int]) -> None:
        """Accept numbers and return nothing."""

    def nap(self, seconds: float) -> float:
        """Sleep, and count the calls that sleep at the same time."""
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(seconds)
        with self._lock:
            self._now -= 1
        return seconds

    def wait(self, number: int) -> int:
        """Wait until the test opens the gate; only the first call waits."""
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            self.seen.append(("wait", number))
            is_first = len(self.seen) == 1
        if is_first:
            self.gate.wait(30)
        with self._lock:
            self._now -= 1
        return number

    async def rest(self, seconds: float) -> float:
        """Wait without a thread."""
        import asyncio

        self.seen.append(("rest", seconds))
        await asyncio.sleep(seconds)
        return seconds

    def write(self, rt: Runtime, path: str, text: str) -> str:
        """Write a file."""
        rt.fs.write_text(path, text)
        return path
