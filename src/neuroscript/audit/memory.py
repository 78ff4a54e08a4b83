"""An audit log in memory that stores the most recent calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import ClassVar

from neuroscript.coercion.parameters import COUNT, require
from neuroscript.runtime.records import CallRecord


class MemoryAudit:
    """A ring buffer of the most recent calls that ended or were refused.

    Args:
        size: The maximum number of records; the oldest is dropped.

    Raises:
        SpecError: If the size is not an integer above 0.

    Attributes:
        intents: False, so the engine does not report calls that begin. `records` omits such a record anyway.
        write: The ``append`` method of the ring buffer itself, so that a record costs no Python call. Never raises.
    """

    intents: ClassVar[bool] = False

    def __init__(self, size: int = 1000) -> None:
        require("MemoryAudit", size=(size, COUNT))
        self._ring: deque[CallRecord] = deque(maxlen=size)
        self.write: Callable[[CallRecord], None] = self._ring.append

    @property
    def records(self) -> tuple[CallRecord, ...]:
        """The records of calls that ended or were refused, oldest first."""
        return tuple(record for record in self._ring.copy() if record.kind != "intent")

    def close(self) -> None:
        """Do nothing; the records stay available."""
