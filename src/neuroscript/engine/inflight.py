"""The calls of an engine that are in flight, found without any bookkeeping in a call.

Calls that are carried out in steps are known. A compiled function is found on the stack of the thread that
runs it.

Up to Python 3.11, reading a stack may start a garbage collection, whose finalizers may let that thread run on; its
frames are then freed while they are read, and the process crashes (https://github.com/python/cpython/issues/106883). So
no collection runs while frames are read.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock, get_ident
from types import FrameType
from typing import Final

from neuroscript.calls.compiler import FILE
from neuroscript.calls.steps import CallFrame
from neuroscript.engine.entries import BoundTool
from neuroscript.engine.shared import Shared

ENTRIES: Final = BoundTool.function.__code__.co_filename
"""The file of the functions that a compiled function calls to run the steps."""

_collector = RLock()  # held by the thread that has turned collection off and will turn it on again


def in_flight(shared: Shared) -> tuple[str, ...]:
    """Return the tools whose calls have not ended, in order; the calls around the current code do not count.

    All compiled calls of a tool in a session have the same frame, so they are counted by the stacks they are on.
    """
    calls = list(shared.running)
    with _without_collection():
        for thread, top in sys._current_frames().items():
            if thread != get_ident():
                calls += [frame for frame in _frames_of(top) if frame.session._running is shared.running]
    return tuple(sorted(frame.tool for frame in calls if frame.depth == 1))


@contextmanager
def _without_collection() -> Iterator[None]:
    with _collector:
        was_on = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if was_on:
                gc.enable()


def _frames_of(top: FrameType | None) -> Iterator[CallFrame]:
    """Yield the frames of the compiled functions on a stack; each stores its own in the variable ``frame``.

    A function that left its call to the steps is not counted here.
    """
    callee = ""
    while top is not None:
        frame = top.f_locals.get("frame") if top.f_code.co_filename == FILE else None
        if isinstance(frame, CallFrame) and callee != ENTRIES:
            yield frame
        callee = top.f_code.co_filename
        top = top.f_back
