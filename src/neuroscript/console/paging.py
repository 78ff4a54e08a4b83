"""Pages of lists that are longer than one page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

import attrs
from starlette.requests import Request

T = TypeVar("T")

MAX_DIGITS: Final = 6
"""Maximum number of digits of the number of a page."""


@attrs.frozen
class ListPage(Generic[T]):
    """One page of a list.

    Attributes:
        items: The items of the page.
        number: Its number, from 1.
        last: The number of the last page.
        count: The number of all items.
    """

    items: Sequence[T]
    number: int
    last: int
    count: int

    @classmethod
    def of(cls, items: Sequence[T], number: int, size: int) -> ListPage[T]:
        """Return a page of at most *size* items; a number beyond the end is the last page.

        >>> ListPage.of("abcde", 9, 2)
        ListPage(items='e', number=3, last=3, count=5)
        """
        last = max(1, -(-len(items) // size))
        number = min(max(1, number), last)
        return cls(items[(number - 1) * size : number * size], number, last, len(items))


def page_number(request: Request) -> int:
    """Return the number of the page in the query; 1 if it has none, or no valid one."""
    text = request.query_params.get("page", "1")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else 1
