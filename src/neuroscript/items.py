"""An iterator that a tool returned: what gives its next item, and what closes it.

Source: contract section 6; reliability.md part 4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any

from neuroscript.bodies import END, Manner, close
from neuroscript.errors import ReturnError
from neuroscript.walk import type_name


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
