"""Which calls of an engine are in flight, without a word of book-keeping in any call.

Calls that are carried out in steps are known. The function of a compiled line stands on the stack of the thread that
runs it, and is looked for there.

Source: design.md, rule 4; reliability.md part 4.6.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from threading import get_ident
from types import FrameType

from neuroscript.compiled import FILE
from neuroscript.entries import World
from neuroscript.frames import CallFrame


def in_flight(world: World) -> tuple[str, ...]:
    """Return the tools whose calls have not ended, in order; those around the caller's own thread do not count."""
    own = set(_frames_of(sys._getframe()))
    calls = set(world.running)
    for thread, top in sys._current_frames().items():
        if thread != get_ident():
            calls.update(frame for frame in _frames_of(top) if frame.session._world is world)
    return tuple(sorted(frame.tool for frame in calls - own if frame.depth == 1))


def _frames_of(top: FrameType | None) -> Iterator[CallFrame]:
    """Yield where the calls stand whose compiled lines are on a stack; each has that in its variable ``frame``."""
    while top is not None:
        frame = top.f_locals.get("frame") if top.f_code.co_filename == FILE else None
        if isinstance(frame, CallFrame):
            yield frame
        top = top.f_back
