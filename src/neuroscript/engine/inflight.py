"""Which calls of an engine are in flight, without a word of book-keeping in any call.

Calls that are carried out in steps are known. The function of a compiled line stands on the stack of the thread that
runs it, and is looked for there.

Up to Python 3.11 a collection may begin where a stack is read, and what it finalises may let the thread go on whose
stack that is: then frames are read that are gone, and the process ends. So no collection begins while they are read.

Source: design.md, rule 4; reliability.md part 4.6; https://github.com/python/cpython/issues/106883.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock, get_ident
from types import FrameType

from neuroscript.calls.compiler import FILE
from neuroscript.calls.steps import CallFrame
from neuroscript.engine.shared import World

_collector = RLock()  # held by the one who has stopped it, who is also the one to let it go on


def in_flight(world: World) -> tuple[str, ...]:
    """Return the tools whose calls have not ended, in order; those around the caller's own thread do not count."""
    own = set(_frames_of(sys._getframe()))
    calls = set(world.running)
    with _without_collection():
        for thread, top in sys._current_frames().items():
            if thread != get_ident():
                calls.update(frame for frame in _frames_of(top) if frame.session._running is world.running)
    return tuple(sorted(frame.tool for frame in calls - own if frame.depth == 1))


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
    """Yield where the calls stand whose compiled lines are on a stack; each has that in its variable ``frame``."""
    while top is not None:
        frame = top.f_locals.get("frame") if top.f_code.co_filename == FILE else None
        if isinstance(frame, CallFrame):
            yield frame
        top = top.f_back
