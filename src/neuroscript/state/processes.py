"""The processes of a namespace: each sends heartbeats, so that the others notice when it has died."""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from neuroscript.state.database import Database, StateUnavailable
from neuroscript.state.forks import renew_lock
from neuroscript.state.heartbeat import DEFAULT_LEASE_SECONDS, MAX_LEASE_SECONDS, Heartbeat

TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS neuroscript_processes (
        namespace TEXT NOT NULL, id TEXT NOT NULL, host TEXT NOT NULL,
        seen DOUBLE PRECISION NOT NULL, lease DOUBLE PRECISION NOT NULL, ended DOUBLE PRECISION,
        PRIMARY KEY (namespace, id)
    )
    """,
)
"""One row for each process. One that has *ended* holds nothing any more, and comes back only under another id."""


def alive(database: Database, table: str = "neuroscript_processes") -> str:
    """Return the SQL condition that a process in *table* is alive.

    It is false for times and leases that this package does not write, so that nobody waits for them.
    """
    seen, lease, now = f"{table}.seen", f"{table}.lease", database.now
    in_time = f"{seen} BETWEEN {now} - {lease} AND {now} + {MAX_LEASE_SECONDS}"
    return f"({table}.ended IS NULL AND {in_time} AND {lease} BETWEEN 0 AND {MAX_LEASE_SECONDS})"


class Process:
    """This process as a member of a namespace; it begins with the first `id` that is read.

    Args:
        lease: Seconds without a heartbeat after which the others consider it dead.
    """

    def __init__(self, database: Database, namespace: str, lease: float = DEFAULT_LEASE_SECONDS) -> None:
        self._database = database
        self._namespace = namespace
        self._lease = lease
        self._lock = threading.Lock()
        self._id = ""
        self._pid = 0
        self._heartbeat: Heartbeat | None = None
        self._tasks: list[Callable[[], object]] = []
        renew_lock(self)

    @property
    def id(self) -> str:
        """The id of this process. It changes when the others have considered the process dead, and after a fork.

        Raises:
            StateUnavailable: If the process is new and the database cannot be used.
        """
        if not self._id or self._pid != os.getpid():
            with self._lock:
                if not self._id or self._pid != os.getpid():
                    self._join()
        return self._id

    def with_heartbeat(self, task: Callable[[], object]) -> None:
        """Call *task* after each heartbeat, at least once a second; its exceptions are ignored."""
        self._tasks.append(task)

    def _join(self) -> None:
        id = os.urandom(8).hex()
        sql = "INSERT INTO neuroscript_processes (namespace, id, host, seen, lease) VALUES (?, ?, ?, "
        self._database.run(f"{sql}{self._database.now}, ?)", (self._namespace, id, platform.node(), self._lease))
        self._id, self._pid = id, os.getpid()
        self._heartbeat = Heartbeat("state", self._beat, self._lose, self._lease)
        self._heartbeat.__enter__()

    def _beat(self) -> bool:
        sql = "UPDATE neuroscript_processes SET seen = {} WHERE namespace = ? AND id = ? AND ended IS NULL RETURNING id"
        rows = self._database.run(sql.format(self._database.now), (self._namespace, self._id))
        for task in self._tasks if rows else ():
            with suppress(Exception):  # the next heartbeat tries again
                task()
        return bool(rows)

    def _lose(self) -> None:
        with self._lock:
            self._id = ""

    def close(self) -> None:
        """Leave the namespace: what this process holds is free at once, or when its lease expires."""
        with self._lock:
            heartbeat, id, self._heartbeat, self._id = self._heartbeat, self._id, None, ""
        if not id or self._pid != os.getpid():
            return
        if heartbeat is not None:
            heartbeat.__exit__()
        sql = "UPDATE neuroscript_processes SET ended = {} WHERE namespace = ? AND id = ?"
        with suppress(StateUnavailable):
            self._database.run(sql.format(self._database.now), (self._namespace, id))


def bury(database: Database, namespace: str) -> list[str]:
    """Mark the processes whose lease has expired as ended, and return their ids.

    A heartbeat changes the same row, so a process either still counts as alive or learns that it does not.
    """
    is_late = f"ended IS NULL AND NOT {alive(database)}"
    found = f"UPDATE neuroscript_processes SET ended = {database.now} WHERE namespace = ? AND {is_late} RETURNING id"
    return [id for (id,) in database.run(found, (namespace,))]
