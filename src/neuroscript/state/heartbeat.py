"""A heartbeat thread that keeps the lease of a process, and notices when it is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Final, Self

from neuroscript.errors import SpecError

DEFAULT_LEASE_SECONDS: Final = 15.0
"""Default seconds without a heartbeat after which a process is considered dead."""

MIN_LEASE_SECONDS: Final = 0.5
MAX_LEASE_SECONDS: Final = 604_800.0
"""The longest lease in seconds, one week. A run whose process died waits that long."""

BEATS_PER_LEASE: Final = 5
"""Minimum number of heartbeats within a lease."""

MAX_BEAT_SECONDS: Final = 1.0
"""Maximum seconds between two heartbeats; with each one, a worker looks for dead workers."""


def parse_lease(seconds: float, subject: str = "durable") -> float:
    """Return a lease in seconds, or raise a `SpecError` unless it is between the minimum and the maximum."""
    if type(seconds) not in (int, float) or not MIN_LEASE_SECONDS <= seconds <= MAX_LEASE_SECONDS:
        raise SpecError(subject, [f"a lease must be from {MIN_LEASE_SECONDS:g} to {MAX_LEASE_SECONDS:.0f} seconds"])
    return float(seconds)


class Heartbeat:
    """Sends heartbeats until it is stopped or the lease is lost.

    Args:
        beat: Sends a heartbeat and returns whether the process still counts as alive.
        lost: Called once, on the heartbeat thread, when it no longer does, or after a whole lease without contact.
        lease: Seconds.
    """

    def __init__(self, name: str, beat: Callable[[], bool], lost: Callable[[], object], lease: float) -> None:
        self._beat = beat
        self._lost = lost
        self._lease = lease
        self._stop = Event()
        self._thread = Thread(target=self._run, name=f"neuroscript-{name}", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        last_success = time.monotonic()
        while not self._stop.is_set():
            try:
                is_alive = self._beat()
            except Exception:  # the database is unreachable, and may return within the lease
                is_alive = time.monotonic() - last_success < self._lease
            else:
                last_success = time.monotonic()
            if not is_alive:
                self._lost()
                return
            self._stop.wait(min(self._lease / BEATS_PER_LEASE, MAX_BEAT_SECONDS))
