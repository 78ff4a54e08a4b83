"""A host clock for tests: it stands still while anything can run, and then jumps to the next wait."""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count


class MovedClock:
    """Seconds that pass only when the event loop is idle.

    Attributes:
        now: The current time.
    """

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self._is_looking = False

    def __call__(self) -> float:
        return self.now

    async def wait(self, seconds: float) -> None:
        """Wait for some seconds."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (self.now + seconds, next(self._numbers), future))
        self._look_soon()
        await future

    def _look_soon(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        self._is_looking = False
        loop = asyncio.get_running_loop()
        if loop._ready:  # type: ignore[attr-defined]  # something can go on without time
            self._look_soon()
            return
        while self._waiting:
            moment, _, future = heappop(self._waiting)
            if not future.done():
                self.now = max(self.now, moment)
                future.set_result(None)
                break
        if self._waiting:
            self._look_soon()
