"""Tools of a store, for the tasks of an operator: an order with nested lines, a refund, and a mail."""

from __future__ import annotations

from typing import Annotated, Final, NotRequired, TypedDict

from neuroscript import Arg, Runtime, ToolPolicy, Toolset

store = Toolset("store")
PRICES: Final = {"pen": 1.5, "book": 12.0, "lamp": 30.0}


class Line(TypedDict):
    """One line of an order.

    Attributes:
        item: What is bought.
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


@store.tool(policy=ToolPolicy(effects=("writes",), requires_approval=True))
def refund(rt: Runtime, order_id: int, amount: float, reason: str = "") -> str:
    """Refund a customer.

    Args:
        order_id: The number of the order.
        amount: How much, in EUR.
        reason: Printed on the receipt.
    """
    return f"refunded {amount:.2f} EUR for order {order_id}"
