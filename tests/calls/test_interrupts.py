"""An interrupt of the caller stops the tool at once, wherever in the call pipeline it arrives."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from neuroscript import Engine, Toolset


class Streams:
    """Two streams that record whether they were closed.

    Attributes:
        closed: How many streams have ended.
    """

    def __init__(self) -> None:
        self.closed = 0
        tools = Toolset("s")
        tools.tool()(self.up)
        tools.tool()(self.aup)
        self.engine = Engine(toolsets=[tools], plugins="none")

    def up(self) -> Iterator[int]:
        """Count up."""
        try:
            yield from (0, 1)
        finally:
            self.closed += 1

    async def aup(self) -> AsyncIterator[int]:
        """Count up on a loop."""
        try:
            yield 0
            await asyncio.sleep(0.001)
            yield 1
        finally:
            self.closed += 1


class InterruptAt:
    """Interrupts this thread at one line of the call pipeline, counted from the first item.

    Attributes:
        is_armed: Whether the first item has arrived.
        place: Where the thread was interrupted, or None.
    """

    def __init__(self, number: int) -> None:
        self.is_armed = False
        self.place: tuple[str, int] | None = None
        self._left = number

    def trace(self, frame: FrameType, event: str, arg: object) -> Any:
        """Follow the functions of the call pipeline; a trace function of `sys.settrace`."""
        is_ours = (
            "/neuroscript/calls/" in frame.f_code.co_filename or "/neuroscript/engine/" in frame.f_code.co_filename
        )
        return self._line if is_ours else None

    def _line(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "line" and self.is_armed:
            self._left -= 1
            if self._left < 0:
                self.is_armed = False
                self.place = (frame.f_code.co_qualname, frame.f_lineno)
                raise KeyboardInterrupt
        return self._line


def execute(streams: Streams, name: str, first: Callable[[], None]) -> None:
    """Pass on each item, as the command line does."""
    streams.engine.execute({"name": name, "arguments": {}}, on_item=lambda item: first())


def read(streams: Streams, name: str, first: Callable[[], None]) -> None:
    """Read the items one by one."""
    for _ in streams.engine.stream(name):
        first()


@pytest.mark.parametrize("name", ["s.up", "s.aup"])
@pytest.mark.parametrize("way", [execute, read])
def test_interrupt_at_any_line_closes_the_stream(
    way: Callable[[Streams, str, Callable[[], None]], None], name: str
) -> None:
    """The tool has been closed when the caller receives the interrupt, at each line after the first item."""
    streams = Streams()
    way(streams, name, lambda: None)
    number, before = 0, sys.gettrace()
    while True:
        streams.closed = 0
        interrupt = InterruptAt(number)
        sys.settrace(interrupt.trace)
        try:
            way(streams, name, lambda: setattr(interrupt, "is_armed", True))
            ended = "whole"
        except KeyboardInterrupt:
            ended = "interrupted"
        finally:
            sys.settrace(before)
        if interrupt.place is None:
            break
        assert (ended, streams.closed) == ("interrupted", 1), interrupt.place
        number += 1

    assert number > 50
