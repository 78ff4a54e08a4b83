"""What one stream has given so far: how many items and bytes, and how many it may give.

Source: issue "neurosurfer and Smith run here", streams to their ends.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import attrs

from neuroscript.errors import CallError, LimitError


@attrs.define(eq=False, repr=False)
class Given:
    """The account of one stream.

    Attributes:
        most: How many items the host permits, or None.
        items: How many it has given.
        size: How many bytes they are together, as limits count them.
    """

    most: int | None
    items: int = 0
    size: int = 0

    def require_room(self, tool: str) -> None:
        """Raise a `LimitError` where the host permits no further item."""
        if self.most is not None and self.items >= self.most:
            error = LimitError(f"gave more than {self.most} items", tool=tool, code="limit.items")
            error.items = self.items
            raise error

    def add(self, size: int) -> None:
        """Count one more item, with which all are *size* bytes."""
        self.items += 1
        self.size = size

    def ending(self, error: BaseException) -> BaseException:
        """Return an error that ends the stream, with the count; one that tells a count already stays as it is."""
        if not isinstance(error, CallError) or error.items is not None:
            return error
        told = copy(error)  # a tool may raise the same one again
        told.items = self.items
        told.text = f"{error.text} (after {self.items} item{'' if self.items == 1 else 's'})"
        return told.with_traceback(error.__traceback__)

    @property
    def spent(self) -> dict[str, int]:
        """What a record tells of it."""
        return {"items": self.items, "result_bytes": self.size}


@attrs.define(eq=False, repr=False)
class Kept:
    """The items of a stream, where the content of calls is kept; none of them once they are too many.

    Attributes:
        most: How many bytes they may be together, as limits count them.
        items: Those that came.
        is_cut: Whether there were more.
    """

    most: int
    items: list[Any] = attrs.field(factory=list)
    is_cut: bool = False

    def add(self, item: Any, size: int) -> None:
        """Keep an item, with which all are *size* bytes."""
        if size > self.most:
            self.is_cut = True
            self.items.clear()
        else:
            self.items.append(item)
