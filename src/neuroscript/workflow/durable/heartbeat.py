"""A heart: a thread that says again and again that its process is alive, and notices when nobody believes it.

Source: issue "Beyond one machine", the lease.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Final, Self

from neuroscript.errors import SpecError

LEASE: Final = 15.0
"""Seconds after which a process that has not been heard of is taken for dead, if nobody says another number."""

SHORTEST: Final = 0.5
LONGEST: Final = 604_800.0
"""Seconds of the longest lease, a week: until then a run whose process has died waits."""

BEATS: Final = 5
"""How often a heart beats at least in the time of a lease."""

SLOWEST: Final = 1.0
"""Seconds between two beats at the most: a worker looks with each whether there is somebody to take over from."""


def lease_of(seconds: float) -> float:
    """Return a lease in seconds, or raise a `SpecError` if it is shorter than `SHORTEST` or longer than `LONGEST`."""
    if type(seconds) not in (int, float) or not SHORTEST <= seconds <= LONGEST:
        raise SpecError("durable", [f"a lease must be from {SHORTEST:g} to {LONGEST:.0f} seconds"])
    return float(seconds)


class Heart:
    """Beats until it is stopped, or until a beat says that it is too late.

    Args:
        beat: Returns whether the process is still believed to be alive.
        lost: Called once, on the thread of the heart, when it is not, or can not have been heard of for a whole lease.
        lease: Seconds.
    """

    def __init__(self, name: str, beat: Callable[[], bool], lost: Callable[[], object], lease: float) -> None:
        self._beat = beat
        self._lost = lost
        self._lease = lease
        self._stop = Event()
        self._thread = Thread(target=self._run, name=f"neuroscript-{name}", daemon=True)

    def __enter__(self) -> Self:
        """Begin to beat."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        heard = time.monotonic()
        while not self._stop.is_set():
            try:
                is_alive = self._beat()
            except Exception:  # the database is out of reach, and may come back in time
                is_alive = time.monotonic() - heard < self._lease
            else:
                heard = time.monotonic()
            if not is_alive:
                self._lost()
                return
            self._stop.wait(min(self._lease / BEATS, SLOWEST))
