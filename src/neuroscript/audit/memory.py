"""The last calls, kept in memory.

Source: contract section 2, "tell it"; issue "Authority", audit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import ClassVar

from neuroscript.coercion.parameters import COUNT, require
from neuroscript.runtime.records import CallRecord


class MemoryAudit:
    """A ring of the last calls that ended or were refused.

    Args:
        size: How many records it holds; the oldest makes room.

    Raises:
        SpecError: The size is no whole number above 0.

    Attributes:
        intents: False tells the engine that this sink is not to be told when a call begins. A record of that which
            comes all the same is left out of `records`.
        write: ``append`` of the ring itself, so that a record costs no call of Python; it raises nothing.
    """

    intents: ClassVar[bool] = False

    def __init__(self, size: int = 1000) -> None:
        require("MemoryAudit", size=(size, COUNT))
        self._ring: deque[CallRecord] = deque(maxlen=size)
        self.write: Callable[[CallRecord], None] = self._ring.append

    @property
    def records(self) -> tuple[CallRecord, ...]:
        """The records of calls that ended or were refused, the oldest first."""
        return tuple(record for record in self._ring.copy() if record.kind != "intent")

    def close(self) -> None:
        """Do nothing: the records stay, for whoever made this."""
