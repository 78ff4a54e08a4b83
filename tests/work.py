"""The work that a function does, counted rather than timed, so results repeat exactly."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import process_time
from types import CodeType, FrameType
from typing import Any


def calls_in(run: Callable[[], object], ignored: type[Exception] | tuple[()] = Exception) -> int:
    """Return the number of calls of functions, including those written in C; an *ignored* error of *run* is suppressed."""
    count = 0

    def counting(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    _profile(run, counting, ignored)
    return count


def steps_in(run: Callable[[], object]) -> int:
    """Return the number of executed bytecode instructions; an error of *run* is ignored.

    This counts loops without calls. A function written in C counts as one instruction.
    """
    count = 0

    def counting(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return counting

    before = sys.gettrace()
    sys.settrace(counting)
    try:
        with suppress(Exception):
            run()
    finally:
        sys.settrace(before)
    return count


def seconds_in(run: Callable[[], object], repeats: int = 3) -> float:
    """Return the minimum CPU seconds of *run*, for a ratio within one test; its errors are ignored.

    The garbage collector is off, because its time depends on what other tests have left.
    """
    least = float("inf")
    with _without_garbage_collection():
        for _ in range(repeats):
            began = process_time()
            with suppress(Exception):
                run()
            least = min(least, process_time() - began)
    return least


def functions_in(run: Callable[[], object]) -> set[CodeType]:
    """Return the Python functions that are called; an error of *run* is ignored."""
    called: set[CodeType] = set()

    def noting(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    _profile(run, noting)
    return called


def _profile(
    run: Callable[[], object],
    note: Callable[[FrameType, str, object], object],
    ignored: type[Exception] | tuple[()] = Exception,
) -> None:
    """Run a function under a profiler, without the garbage collector, whose callbacks would be counted."""
    with _without_garbage_collection():
        sys.setprofile(note)
        try:
            with suppress(ignored):
                run()
        finally:
            sys.setprofile(None)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
