"""A tool with nested types, for the tests of exports to model APIs and frameworks."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, Literal

from neuroscript import Toolset, ToolSpec

nested = Toolset("nested")


class Size(enum.Enum):
    """A choice."""

    SMALL = "small"
    LARGE = "large"


@dataclass
class Item:
    """One item of an order."""

    article: str
    price: Decimal
    size: Size = Size.SMALL
    counts: list[int] = field(default_factory=list)


@dataclass
class Card:
    """A kind of payment."""

    number: str
    kind: Literal["card"] = "card"


@dataclass
class Cash:
    """Another one."""

    amount: Decimal
    kind: Literal["cash"] = "cash"


@nested.tool
def order(
    items: list[Item],
    pay: Card | Cash,
    due: datetime.date | None = None,
    tags: set[str] | None = None,
    note: str | list[str] | None = None,
) -> dict[str, list[Item]]:
    """Order items."""
    return {"items": items}


@nested.tool
def place(
    at: tuple[int, str], prices: dict[str, list[Decimal | None]], by_id: dict[int, list[str]]
) -> list[Card | Cash]:
    """Place something; JSON Schema has no strict form of it."""
    return []


ORDER: Final[ToolSpec] = nested.tools[0].spec
PLACE: Final[ToolSpec] = nested.tools[1].spec

SENT: Final[dict[str, Any]] = {
    "items": [{"article": "pen", "price": 1.5, "size": "Large", "counts": ["1"]}],
    "pay": {"kind": "cash", "amount": "2"},
    "due": "2026-11-23",
    "tags": ["a", "a"],
    "note": None,
}
"""Arguments that a model sends."""

RESULT: Final = {"items": [{"article": "pen", "price": "1.5", "size": "large", "counts": [1]}]}
"""The result of the call."""
