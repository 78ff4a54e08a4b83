"""Wake-ups of drivers and workers when a call was queued or has ended, so that they need not poll quickly.

PostgreSQL notifies all processes. SQLite has no notifications, so a thread reads the change counter of the file, and
writers in the same process wake the others directly.
"""

from __future__ import annotations

import os
import select
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from threading import Event, Lock, Thread
from typing import Any, Final, Literal

from neuroscript._imports import missing_extra
from neuroscript.workflow.durable.schema import CHANNEL

try:
    import psycopg
except ModuleNotFoundError as error:
    raise missing_extra("durable runs need psycopg", "durable", error) from None

Kind = Literal["queued", "ended"]
Callback = Callable[[], object]

FALLBACK_SECONDS: Final = 1.0
"""Seconds after which drivers and workers look without a wake-up, in case a notification was lost."""

RECONNECT_SECONDS: Final = 1.0

MIN_CHECK_SECONDS: Final = 0.004
MAX_CHECK_SECONDS: Final = 0.04
"""Seconds between two checks of an SQLite file: the minimum after a change, the maximum while nothing changes."""

CHECK_GROWTH: Final = 1.25

BATCH_SECONDS: Final = 0.01
"""Minimum seconds between two queries of the same driver or worker, so that one query serves several wake-ups."""


class Wakeup:
    """Calls back when calls were queued or have ended. The thread that listens runs while there are subscribers."""

    def __init__(self, url: str, file: str | None) -> None:
        """Prepare to listen.

        Args:
            url: The address of a PostgreSQL database, as libpq takes it.
            file: The SQLite file, or None.
        """
        self._url = url
        self._file = file
        self._lock = Lock()
        self._callbacks: dict[Kind, list[Callback]] = {"queued": [], "ended": []}
        self._listener: tuple[Thread, Event, int] | None = None

    def subscribe(self, kind: Kind, callback: Callback) -> None:
        """Call *callback* on another thread after each event; it must not block."""
        with self._lock:
            self._callbacks[kind].append(callback)
            if self._listener is None:
                self._listener = self._started()

    def unsubscribe(self, kind: Kind, callback: Callback) -> None:
        """Stop calling *callback*."""
        with self._lock:
            self._callbacks[kind].remove(callback)
            listener = self._listener
            if listener is None or any(self._callbacks.values()):
                return
            self._listener = None
        thread, stop, pipe = listener
        stop.set()
        os.close(pipe)
        thread.join()

    def ring(self, *kinds: Kind) -> None:
        """Wake the subscribers in this process; for PostgreSQL, which notifies them, do nothing."""
        if self._file is not None:
            self._call(*kinds)

    def _call(self, *kinds: Kind) -> None:
        with self._lock:
            callbacks = [each for kind in kinds for each in self._callbacks[kind]]
        for each in callbacks:
            each()

    def _started(self) -> tuple[Thread, Event, int]:
        stop = Event()
        reader, writer = os.pipe()
        listen: Callable[[Event, int], None] = self._watch if self._file is not None else self._listen
        thread = Thread(target=self._guarded, args=(listen, stop, reader), name="neuroscript-wakeup", daemon=True)
        thread.start()
        return thread, stop, writer

    def _guarded(self, listen: Callable[[Event, int], None], stop: Event, reader: int) -> None:
        """Listen until *stop* is set; after an error, listen again, and wake all because something may be missed."""
        try:
            while not stop.is_set():
                with suppress(psycopg.Error, sqlite3.Error, OSError):
                    listen(stop, reader)
                stop.wait(0 if stop.is_set() else RECONNECT_SECONDS)
                self._call("queued", "ended")
        finally:
            os.close(reader)

    # PostgreSQL

    def _listen(self, stop: Event, reader: int) -> None:
        with closing(psycopg.connect(self._url, autocommit=True)) as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            self._call("queued", "ended")
            while not stop.is_set():
                select.select([connection.fileno(), reader], [], [])
                kinds = {note.payload for note in connection.notifies(timeout=0)}
                self._call(*(kind for kind in self._callbacks if kind in kinds))

    # SQLite

    def _watch(self, stop: Event, _: int) -> None:
        seconds, version = MIN_CHECK_SECONDS, None
        with closing(sqlite3.connect(f"file:{_quoted(self._file)}?mode=ro", uri=True)) as connection:
            while not stop.wait(seconds):
                found: Any = connection.execute("PRAGMA data_version").fetchone()[0]
                if found == version:
                    seconds = min(seconds * CHECK_GROWTH, MAX_CHECK_SECONDS)
                    continue
                seconds, version = MIN_CHECK_SECONDS, found
                self._call("queued", "ended")


class Bell:
    """An event that a thread waits for; wake-ups in quick succession are answered together."""

    def __init__(self) -> None:
        self._event = Event()
        self._last = 0.0

    def ring(self) -> None:
        """Wake the thread that waits."""
        self._event.set()

    def wait(self, seconds: float) -> None:
        """Wait until the next ring, at most *seconds*."""
        self._event.wait(seconds)
        rest = self._last + BATCH_SECONDS - time.monotonic()
        if rest > 0:
            time.sleep(rest)
        self._event.clear()
        self._last = time.monotonic()


def _quoted(file: str | None) -> str:
    from urllib.parse import quote

    return quote(str(file))
