"""Which request states have been used, so that an approval is valid once: in memory, or in a file of several processes.

See MCP 2026-07-28, "Multi Round-Trip Requests", server requirements.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Final, Protocol

from neuroscript.coercion.parameters import PATH, require
from neuroscript.errors import SpecError

MAX_USED_STATES: Final = 100_000
"""Maximum number of states that one process records; while there are as many, it accepts no further one."""

LOCK_TIMEOUT_SECONDS: Final = 10.0
"""Time to wait for another process that writes to the file, in seconds."""

TABLE: Final = "CREATE TABLE IF NOT EXISTS used_states (id TEXT PRIMARY KEY, expires REAL NOT NULL) WITHOUT ROWID"


class UsedStates(Protocol):
    """A record of used states, which all processes that share the keys must share. Its method must be thread-safe."""

    def claim(self, id: str, expires: float) -> bool:
        """Record that a state is used, and return whether it was unused.

        Args:
            id: The random id of the state.
            expires: When the state is certainly invalid, in seconds since 1970; it can be forgotten then.
        """


class UsedStatesInMemory:
    """The states that this process has accepted."""

    def __init__(self) -> None:
        self._expiries: dict[str, float] = {}
        self._lock = Lock()

    def claim(self, id: str, expires: float) -> bool:
        """Record that a state is used, and return whether it was unused and there was room for it."""
        with self._lock:
            if len(self._expiries) >= MAX_USED_STATES:
                now = time.time()
                self._expiries = {each: end for each, end in self._expiries.items() if end > now}
            if id in self._expiries or len(self._expiries) >= MAX_USED_STATES:
                return False
            self._expiries[id] = expires
            return True


class UsedStatesInFile:
    """The states that several processes of one machine have accepted, in an SQLite file.

    Args:
        path: The file; it is created if it does not exist, and only its owner can access it.

    Raises:
        SpecError: It cannot be opened, or is not such a file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        require("used states", path=(path, PATH))
        self._path = Path(path)
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            with closing(self._opened()) as database, database:
                database.execute(TABLE)
        except (OSError, sqlite3.Error) as error:
            raise SpecError("used states", [f"the file cannot be used ({type(error).__name__})"]) from None

    def claim(self, id: str, expires: float) -> bool:
        """Record that a state is used, and return whether it was unused.

        Raises:
            sqlite3.Error: The file cannot be written.
        """
        with closing(self._opened()) as database, database:
            database.execute("DELETE FROM used_states WHERE expires < ?", (time.time(),))
            return database.execute("INSERT OR IGNORE INTO used_states VALUES (?, ?)", (id, expires)).rowcount == 1

    def _opened(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=LOCK_TIMEOUT_SECONDS)
