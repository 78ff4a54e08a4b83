"""What one stream has given so far: how many items and bytes, and how many it may give.

Source: issue "neurosurfer and Smith run here", streams to their ends.

An iterator that a tool returned: what gives its next item, and what closes it.

Source: contract section 6; reliability.md part 4.2.

The items of a stream as a call collects them, and whoever is told of each.

Source: docs/decisions/0010-collected-streams.md.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from threading import Lock
from typing import Any, Final

import attrs

from neuroscript.calls.steps import END, Item, Manner, close
from neuroscript.coercion.context import RESULT, type_name
from neuroscript.errors import CallError, LimitError, ReturnError


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


def reading(source: Any, manner: Manner, tool: str) -> tuple[Callable[[], Any], Callable[[], Any], Manner]:
    """Return what gives the next item of an iterator, what closes it, and how both are run.

    Raises:
        ReturnError: It is no iterator.
    """
    if hasattr(type(source), "__anext__"):
        awaited = Awaited(source)
        return awaited.next, awaited.end, "coroutine"
    if hasattr(type(source), "__next__"):
        plain = Plain(source)
        return plain.next, plain.end, manner
    close(source)
    raise ReturnError(f"result: expected an iterator, got {type_name(source)}", tool=tool)


class Plain:
    """An iterator that may still make an item, on a thread that nobody waits for any more, when it is to be closed.

    One thread at a time is in it; whoever leaves it closes it, if it is over.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self._used = Lock()
        self._is_over = self._is_closed = False

    def next(self) -> Any:
        """Return the next item, or `END`; of what is over none is made."""
        if not self._used.acquire(blocking=False):
            return END
        try:
            return END if self._is_over else next(self._source, END)
        finally:
            self._used.release()
            if self._is_over:
                with suppress(BaseException):  # there is nobody to be told
                    self._close()

    def end(self) -> None:
        """Close the iterator, or have the thread close it that is in there."""
        self._is_over = True
        self._close()

    def _close(self) -> None:
        if not self._used.acquire(blocking=False):
            return
        try:
            if not self._is_closed and hasattr(self._source, "close"):  # an open file is an iterator too
                self._is_closed = True
                self._source.close()
        finally:
            self._used.release()


class Awaited:
    """An async iterator; what runs in it is cancelled before it is closed."""

    def __init__(self, source: Any) -> None:
        self._source = source

    async def next(self) -> Any:
        """Return the next item, or `END`."""
        try:
            return await self._source.__anext__()
        except StopAsyncIteration:
            return END

    async def end(self) -> None:
        """Close the iterator."""
        if hasattr(self._source, "aclose"):
            await self._source.aclose()


COLLECTED: Final = 100_000
"""How many items of a stream a call collects into its result."""


class Collected:
    """The items of a stream that a call collects; all of them together are no larger than one result may be.

    Args:
        on_item: Is told each item as it comes.
    """

    def __init__(self, on_item: Callable[[Any], object] | None = None) -> None:
        self.items: list[Any] = []
        self._tell = on_item
        self._nodes = self._text = 0

    def add(self, item: Item) -> object:
        """Add an item, tell of it, and return what whoever was told returned.

        Raises:
            LimitError: It is more than a call collects.
            BaseException: What whoever was told raised.
        """
        self.items.append(item.value)
        self._nodes += item.nodes
        self._text += item.text
        sizes = RESULT.sizes
        if len(self.items) > COLLECTED or self._nodes > sizes.nodes or self._text > sizes.text:
            raise self._refusal(item.tool)
        return None if self._tell is None else self._tell(item.value)

    def end(self) -> None:
        """See that there is no further item."""

    def ended(self, error: CallError) -> CallError:
        """Return an error that ended the stream, as whoever collects it tells it."""
        return error

    def _refusal(self, tool: str) -> LimitError:
        sizes = RESULT.sizes
        text = f"a call collects {COLLECTED} items of a stream, {sizes.nodes} values and {sizes.text} bytes of text"
        error = LimitError(f"{text}, no more", tool=tool, code="limit.items")
        error.items = len(self.items)
        return error
