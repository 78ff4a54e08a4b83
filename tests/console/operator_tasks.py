"""Ten tasks of an operator in the console, and the table that compares them with MCP Inspector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs
from playwright.sync_api import Page, expect
from tests.console.operator_counts import Operator
from tests.console.store import Store
from tests.console.store_history import CULPRIT, DELETED, line_of_deletion


@attrs.frozen
class Task:
    """A task.

    Attributes:
        name: Its key in the results.
        text: What the operator wants.
        max_clicks: The maximum number of clicks in the console.
        run: Does it in a page that shows the first page of the console.
    """

    name: str
    text: str
    max_clicks: int
    run: Callable[[Store, Operator], None]


def approve(store: Store, operator: Operator) -> None:
    """Reduce the amount of a refund, and approve it."""
    caller = store.request("store.refund", {"order_id": 7, "amount": 250})
    open_area(operator, "Approvals")
    operator.click(operator.page.get_by_text("Change the arguments"))
    operator.type(operator.page.get_by_label("Arguments by name, as JSON"), '{"order_id": 7, "amount": 25}')
    operator.click(operator.page.get_by_role("button", name="Approve with these arguments"))
    expect(operator.page.get_by_text("store.refund").first).to_be_visible()

    assert caller.outcome() == "refunded 25.00 EUR for order 7"


def reject(store: Store, operator: Operator) -> None:
    """Reject a refund, and say why."""
    caller = store.request("store.refund", {"order_id": 8, "amount": 12})
    open_area(operator, "Approvals")
    operator.type(operator.page.get_by_label("Reason"), "Olga has not paid yet")
    operator.press("Enter")

    assert "Olga has not paid yet" in str(caller.outcome())


def find_deletion(store: Store, operator: Operator) -> None:
    """Find the session that deleted a file yesterday."""
    open_area(operator, "Audit")
    operator.choose(operator.page.get_by_label("Effect of the tool"), "deletes")
    operator.choose(operator.page.get_by_label("Time", exact=True), "Yesterday (UTC)")
    rows = operator.page.locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(CULPRIT)
    expect(rows).to_contain_text(DELETED)


def verify(store: Store, operator: Operator) -> None:
    """Verify the log, and a copy from elsewhere in which one record was changed."""
    page = operator.page
    open_area(operator, "Audit")
    operator.click(page.get_by_role("link", name="Verification"))
    operator.click(page.get_by_role("button", name="Verify now"))
    expect(page.get_by_role("status").filter(has_text="Intact")).to_be_visible()
    operator.click(page.get_by_role("link", name="restored.jsonl"))
    operator.click(page.get_by_role("button", name="Verify now"))
    expect(page.get_by_role("alert")).to_contain_text("Not intact")
    line = line_of_deletion(store.directory / "audit.jsonl")
    expect(page.get_by_role("region", name="Problems").get_by_role("row", name=f"{line} edited")).to_be_visible()


def open_area(operator: Operator, name: str) -> None:
    """Open an area in the navigation."""
    operator.click(operator.page.get_by_role("navigation", name="Areas").get_by_role("link", name=name))


TASKS: Final = (
    Task("approve", "approve a call with other arguments", 4, approve),
    Task("reject", "reject a call with a reason", 3, reject),
    Task("deletion", "find who deleted a file yesterday", 5, find_deletion),
    Task("verify", "verify an audit log, and see where another is damaged", 5, verify),
)


def start(store: Store, page: Page) -> Operator:
    """Show the first page, from which each task begins."""
    page.goto(store.console.url)
    return Operator(page)
