"""Threads that start together, with switches between the lines of the code under test.

Without forced switches the interpreter's lock hides a missing one: a thread usually runs many lines at a time.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


def raced(count: int, work: Callable[[int], None], files: Collection[str | None], yielded: float) -> None:
    """Run *work* in several threads that start together, and raise what one of them raises.

    Args:
        work: Takes the number of its thread.
        files: The source files in which threads switch at random.
        yielded: The fraction of lines after which they switch.
    """
    failed: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            barrier.wait()
            work(number)
        except BaseException as error:
            failed.append(error)

    with _yields(files, yielded):
        threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]


@contextmanager
def _yields(files: Collection[str | None], yielded: float) -> Iterator[None]:
    """Make new threads switch."""
    chance = random.Random(1)

    def on_line(frame: FrameType, event: str, value: Any) -> Any:
        if event == "line" and chance.random() < yielded:
            time.sleep(0)
        return on_line

    def on_call(frame: FrameType, event: str, value: Any) -> Any:
        return on_line if frame.f_code.co_filename in files else None

    before = threading.gettrace()
    threading.settrace(on_call)
    try:
        yield
    finally:
        threading.settrace(before)  # type: ignore[arg-type]
