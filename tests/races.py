"""Threads that begin at once, with other threads let in between the lines of the code that is watched.

Without that the interpreter's own lock hides a missing one: a thread mostly does many lines before another has its turn.
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
    """Do *work* in so many threads that begin at once; what one of them raises is raised.

    Args:
        work: Takes the number of its thread.
        files: Between the lines of which code others are let in, at random.
        yielded: At which part of those lines.
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
    """Have threads that are started let others in."""
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
