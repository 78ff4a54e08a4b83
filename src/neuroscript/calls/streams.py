"""Streams of items: the iterator that a tool returned, its account of items and bytes, and the collected result."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from threading import Lock
from typing import Any, Final

import attrs

from neuroscript.calls.steps import END, RunMode, StreamItem, close
from neuroscript.coercion.context import RESULT, type_name
from neuroscript.errors import CallError, LimitError, ReturnError


@attrs.define(eq=False, repr=False)
class StreamAccount:
    """The account of one stream.

    Attributes:
        max_items: How many items the host permits, or None.
        items: How many items the tool has yielded.
        size: Their bytes together, as limits count them.
    """

    max_items: int | None
    items: int = 0
    size: int = 0

    def require_room(self, tool: str) -> None:
        """Raise a `LimitError` if the host permits no further item."""
        if self.max_items is not None and self.items >= self.max_items:
            error = LimitError(f"yielded more than {self.max_items} items", tool=tool, code="limit.items")
            error.items = self.items
            raise error

    def add(self, size: int) -> None:
        """Count one more item; *size* is the bytes of all items."""
        self.items += 1
        self.size = size

    def ending(self, error: BaseException) -> BaseException:
        """Return an error that ends the stream, with the count; an error that has a count stays as it is."""
        if not isinstance(error, CallError) or error.items is not None:
            return error
        told = copy(error)  # a tool may raise the same object again
        told.items = self.items
        told.text = f"{error.text} (after {self.items} item{'' if self.items == 1 else 's'})"
        return told.with_traceback(error.__traceback__)

    @property
    def spent(self) -> dict[str, int]:
        """The usage of the stream as records show it."""
        return {"items": self.items, "result_bytes": self.size}


@attrs.define(eq=False, repr=False)
class RecordedItems:
    """The items of a stream for a recording; none of them if they are too large together.

    Attributes:
        max_items: How many bytes they may have together, as limits count them.
        items: The items.
        is_cut: Whether there were more.
    """

    max_items: int
    items: list[Any] = attrs.field(factory=list)
    is_cut: bool = False

    def add(self, item: Any, size: int) -> None:
        """Store an item; *size* is the bytes of all items."""
        if size > self.max_items:
            self.is_cut = True
            self.items.clear()
        else:
            self.items.append(item)


def item_reader(source: Any, tool: str) -> tuple[Callable[[], Any], Callable[[], Any], RunMode]:
    """Return what yields the next item of an iterator, what closes it, and how both are run.

    Raises:
        ReturnError: It is not an iterator.
    """
    if hasattr(type(source), "__anext__"):
        awaited = AsyncItems(source)
        return awaited.next, awaited.end, "coroutine"
    if hasattr(type(source), "__next__"):
        plain = SyncItems(source)
        return plain.next, plain.end, "waits"
    close(source)
    raise ReturnError(f"result: expected an iterator, got {type_name(source)}", tool=tool)


class SyncItems:
    """A sync iterator that may be closed while an abandoned thread still runs in it.

    Only one thread at a time runs in it; the last one that leaves closes it.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self._used = Lock()
        self._is_over = self._is_closed = False

    def next(self) -> Any:
        """Return the next item, or `END`; after `end` no further item is made."""
        if not self._used.acquire(blocking=False):
            return END
        try:
            return END if self._is_over else next(self._source, END)
        finally:
            self._used.release()
            if self._is_over:
                with suppress(BaseException):  # no caller is left to receive the error
                    self._close()

    def end(self) -> None:
        """Close the iterator, or let the thread close it that runs in it."""
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


class AsyncItems:
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


MAX_COLLECTED_ITEMS: Final = 100_000
"""Maximum number of items of a stream that a call collects into its result."""


class CollectedItems:
    """The items of a stream that a call collects; together they are no larger than one result may be.

    Args:
        on_item: Called with each item as it comes.
    """

    def __init__(self, on_item: Callable[[Any], object] | None = None) -> None:
        self.items: list[Any] = []
        self._tell = on_item
        self._nodes = self._text = 0

    def add(self, item: StreamItem) -> object:
        """Add an item, and return what *on_item* returned.

        Raises:
            LimitError: There are more items than a call collects.
            BaseException: What *on_item* raised.
        """
        self.items.append(item.value)
        self._nodes += item.nodes
        self._text += item.text
        sizes = RESULT.sizes
        if len(self.items) > MAX_COLLECTED_ITEMS or self._nodes > sizes.nodes or self._text > sizes.text:
            raise self._refusal(item.tool)
        return None if self._tell is None else self._tell(item.value)

    def end(self) -> None:
        """Do nothing after the last item."""

    def ended(self, error: CallError) -> CallError:
        """Return the error to report for a stream that *error* ended: *error* itself."""
        return error

    def _refusal(self, tool: str) -> LimitError:
        sizes = RESULT.sizes
        most = f"{MAX_COLLECTED_ITEMS} items of a stream, {sizes.nodes} values, {sizes.text} bytes of text"
        text = f"a call collects at most {most}"
        error = LimitError(text, tool=tool, code="limit.items")
        error.items = len(self.items)
        return error
