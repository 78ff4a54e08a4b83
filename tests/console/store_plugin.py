"""Tools of a store: quotes for nested orders, refunds that need an approval, and parcels that wait for a carrier."""

from __future__ import annotations

import time
from typing import Annotated, Final, NotRequired, TypedDict

from neuroscript import Arg, Runtime, ToolFailed, ToolPolicy, Toolset

store = Toolset("store", origin="store-tools")
PRICES: Final = {"pen": 1.5, "book": 12.0, "lamp": 30.0}


class Line(TypedDict):
    """One line of an order.

    Attributes:
        item: What is bought, such as pen, book or lamp.
        count: How many.
        gift: Whether it is wrapped.
    """

    item: str
    count: Annotated[int, Arg(minimum=1, maximum=100)]
    gift: NotRequired[bool]


class Order(TypedDict):
    """An order.

    Attributes:
        customer: Who buys.
        lines: What is bought.
    """

    customer: str
    lines: list[Line]


@store.tool(policy=ToolPolicy(effects=("pure",)))
def quote(order: Order, currency: str = "EUR") -> dict[str, object]:
    """Return the price of an order, with one amount for each line.

    Args:
        order: The customer, and what is bought.
        currency: A code such as EUR.
    """
    amounts = [PRICES.get(line["item"], 5.0) * line["count"] for line in order["lines"]]
    return {"customer": order["customer"], "amounts": amounts, "total": sum(amounts), "currency": currency}


@store.tool(policy=ToolPolicy(effects=("pure",)))
def total(amounts: list[float], discount: float = 0.0) -> float:
    """Return the sum of amounts, less a discount.

    Args:
        amounts: In one currency.
        discount: A part of the sum, from 0 to 1.
    """
    if not 0 <= discount <= 1:
        raise ToolFailed("the discount is not between 0 and 1")
    return round(sum(amounts) * (1 - discount), 2)


@store.tool(policy=ToolPolicy(effects=("writes",), requires_approval=True, sinks=("money",)))
def refund(rt: Runtime, order_id: int, amount: float, reason: str = "") -> str:
    """Refund a customer.

    Args:
        order_id: The number of the order.
        amount: How much, in EUR.
        reason: Printed on the receipt.
    """
    return f"refunded {amount:.2f} EUR for order {order_id}"


@store.tool(policy=ToolPolicy(effects=("reads", "idempotent"), capabilities=("fs:read:carrier.txt",)))
def ship(rt: Runtime, order_id: int) -> str:
    """Hand a parcel to the carrier, and wait until a carrier is available.

    Args:
        order_id: The number of the order.
    """
    while not rt.fs.exists("carrier.txt"):
        if rt.cancelled:
            raise ToolFailed("cancelled")
        time.sleep(0.02)
    return f"order {order_id} is with {rt.fs.read_text('carrier.txt').strip()}"
