"""The functions that pydantic's `validate_call` validates: the same work as the tools, without a Runtime.

pydantic reads the annotations of this file when it is loaded, so nothing loads it without pydantic.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from pydantic import ValidationError, validate_call
from typing_extensions import TypedDict


class Row(TypedDict):
    """A map of four keys, as the tool ``rows`` declares it."""

    id: int
    name: str
    weight: float
    active: bool


class Line(TypedDict):
    """A line of an order."""

    sku: str
    count: int
    price: Decimal


class Order(TypedDict):
    """An order, as the tool ``orders`` declares it."""

    id: int
    day: datetime.date
    lines: list[Line]


def two(a: int, b: int) -> int:
    return a + b


def default(a: int, b: int = 3) -> int:
    return a + b


def tags(text: str, tags: list[str]) -> int:
    return len(tags)


def eight(a: int, b: float, c: str, d: bool, e: int, f: float, g: str, h: bool) -> int:
    return a


def integers(items: list[int]) -> int:
    return len(items)


def strings(items: list[str]) -> int:
    return len(items)


def rows(items: list[Row]) -> int:
    return len(items)


def orders(items: list[Order]) -> int:
    return len(items)


def maps(items: list[dict[str, Any]]) -> int:
    return len(items)


guarded_two = validate_call(two)


def nested(a: int, b: int) -> int:
    return guarded_two(a, b)


GUARDED: Final[Mapping[str, Callable[..., Any]]] = {
    each.__name__: validate_call(each)
    for each in (two, default, tags, eight, integers, strings, rows, orders, maps, nested)
}
"""By the name of the equivalent tool."""

WRONG: Final = ValidationError
