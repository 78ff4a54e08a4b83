"""Ten tasks of an operator in the console, and the table that compares them with MCP Inspector.

``python -m tests.console.operator_tasks`` does them in both, and writes the results into the documentation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import attrs
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.browsers import WAIT_MILLISECONDS, PageOpener, current_loop, running_chromium
from tests.console import inspector_tasks
from tests.console.operator_counts import Effort, Operator, as_data
from tests.console.store import CHANGED, Store, opened, run_and_kill, save_two_runs
from tests.console.store_history import CULPRIT, DELETED, line_of_deletion
from tests.interop.mcp_inspector import VERSION

PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "use-the-web-console.md"
RESULTS: Final = PAGE.with_name("use-the-web-console.json")
BEGIN, END = "<!-- tasks: begin -->\n", "<!-- tasks: end -->\n"


@attrs.frozen
class Task:
    """A task.

    Attributes:
        name: Its key in the results.
        text: What the operator wants.
        max_clicks: The maximum number of clicks in the console.
        run: Does it, beginning with the first page of the console, which lists the tools.
        prepare: Makes what the operator finds.
    """

    name: str
    text: str
    max_clicks: int
    run: Callable[[Store, Operator], None]
    prepare: Callable[[Store], None] = lambda _: None


def find(store: Store, operator: Operator) -> None:
    """Find the tool that computes the checksum of a file, and call it."""
    page = operator.page
    operator.type(page.get_by_role("searchbox", name="Search for tools"), "checksum")
    operator.click(page.get_by_role("link", name="fs.hash"))
    operator.type(page.get_by_role("combobox", name="filepath (required)"), "letter.txt")
    operator.click(page.get_by_role("button", name="Run"))
    expect(page.get_by_text(hashlib.sha256(b"Dear Vera\n").hexdigest())).to_be_visible()


def nested(store: Store, operator: Operator) -> None:
    """Call a tool with a list of maps, and correct a number that is too large."""
    page = operator.page
    operator.type(page.get_by_role("searchbox", name="Search for tools"), "price of an order")
    operator.click(page.get_by_role("link", name="store.quote"))
    operator.type(page.get_by_role("textbox", name="customer"), "Vera")
    operator.click(page.get_by_role("button", name="Add an item to lines"))
    operator.type(page.get_by_role("textbox", name="item"), "pen")
    count = page.get_by_role("textbox", name="count")
    operator.type(count, "200")
    expect(page.locator(".field", has=count).get_by_text("expected int from 1 to 100")).to_be_visible()
    operator.type(count, "20")
    operator.click(page.get_by_role("button", name="Run"))
    expect(page.get_by_role("region", name="Result").get_by_text("30.0").first).to_be_visible()


def refusal(store: Store, operator: Operator) -> None:
    """See why a tool is refused, and what to grant."""
    page = operator.page
    operator.type(page.get_by_role("searchbox", name="Search for tools"), "http.get")
    operator.click(page.get_by_role("link", name="http.get"))
    operator.type(page.get_by_role("textbox", name="url"), "https://example.com/")
    preview = page.get_by_role("region", name="What would happen")
    expect(preview).to_contain_text("needs net:read")
    expect(preview).to_contain_text("--grant 'net:read:example.com:443'")


def approve(store: Store, operator: Operator) -> None:
    """Reduce the amount of a refund, and approve it."""
    caller = store.request("store.refund", {"order_id": 7, "amount": 250})
    open_area(operator, "Approvals")
    operator.click(operator.page.get_by_text("Change the arguments"))
    operator.type(operator.page.get_by_label("Arguments by name, as JSON"), '{"order_id": 7, "amount": 25}')
    operator.click(operator.page.get_by_role("button", name="Approve with these arguments"))
    expect(operator.page.get_by_role("status").filter(has_text="with other arguments")).to_be_visible()

    assert caller.outcome() == "refunded 25.00 EUR for order 7"


def reject(store: Store, operator: Operator) -> None:
    """Reject a refund, and say why."""
    caller = store.request("store.refund", {"order_id": 8, "amount": 12})
    open_area(operator, "Approvals")
    operator.type(operator.page.get_by_label("Reason"), "Olga has not paid yet")
    operator.press("Enter")
    expect(operator.page.get_by_role("status").filter(has_text="rejected")).to_be_visible()

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


def resume(store: Store, operator: Operator) -> None:
    """Resume a durable run whose process died, after its reason is gone."""
    page = operator.page
    open_area(operator, "Plans")
    operator.click(page.get_by_role("link", name="Durable runs"))
    expect(page.get_by_role("row", name="friday")).to_contain_text("interrupted")
    operator.click(page.get_by_role("link", name="friday"))
    operator.click(page.get_by_role("button", name="Resume"))
    expect(page.get_by_text("The plan succeeded.")).to_be_visible(timeout=WAIT_MILLISECONDS)
    expect(page.get_by_text("order 7 is with Parcel Express, worth 31.5 EUR")).to_be_visible()


def compare(store: Store, operator: Operator) -> None:
    """See why two runs of a plan have different outputs."""
    page = operator.page
    open_area(operator, "Plans")
    operator.click(page.get_by_role("link", name="Compare traces"))
    operator.choose(page.get_by_label("First run"), "monday.json")
    operator.choose(page.get_by_label("Second run"), "tuesday.json")
    operator.click(page.get_by_role("button", name="Compare"))
    differences = page.get_by_role("region", name="Differences").first
    expect(differences).to_contain_text("inputs.count")
    expect(differences).to_contain_text("net")


def review(store: Store, operator: Operator) -> None:
    """Read how an MCP server has changed a definition, and accept it."""
    page = operator.page
    open_area(operator, "Health")
    operator.click(page.get_by_role("link", name="stock"))
    operator.click(page.get_by_role("button", name="Compare now"))
    expect(page.get_by_role("region", name="Differences of levels")).to_contain_text(CHANGED.strip())
    operator.click(page.get_by_role("button", name="Accept these definitions"))
    expect(page.get_by_text("The definitions were accepted.")).to_be_visible()


def open_area(operator: Operator, name: str) -> None:
    """Open an area in the navigation."""
    operator.click(operator.page.get_by_role("navigation", name="Areas").get_by_role("link", name=name))


TASKS: Final = (
    Task("find", "find a tool by a word of its description, and call it", 4, find),
    Task("nested", "call a tool with a nested argument, after a problem at a field", 6, nested),
    Task("refusal", "see why a tool is refused, and what to grant", 3, refusal),
    Task("approve", "approve a call with other arguments", 4, approve),
    Task("reject", "reject a call with a reason", 2, reject),
    Task("deletion", "find who deleted a file yesterday", 5, find_deletion),
    Task("verify", "verify an audit log, and see where another is damaged", 5, verify),
    Task(
        "resume",
        "resume a durable plan whose process died",
        4,
        resume,
        lambda store: run_and_kill(store.directory, "friday"),
    ),
    Task("compare", "compare two runs of a plan", 7, compare),
    Task("review", "review and accept the changed definition of an MCP server", 4, review),
)


def do(task: Task, store: Store, page: Page) -> Effort:
    """Do a task in a page that is signed in, and return what it took."""
    task.prepare(store)
    page.goto(store.console.url)
    operator = Operator(page)
    task.run(store, operator)
    return operator.effort()


def sign_in(store: Store, open_page: PageOpener, context: BrowserContext | None = None) -> Page:
    """Open the console in a browser that is signed in, which is not counted."""
    page = open_page(store.console.link(), context)
    page.wait_for_url(lambda url: "/enter" not in url)
    return page


def measure(browser: Browser) -> dict[str, Any]:
    """Do all tasks in the console, and those that are possible in MCP Inspector."""
    console: dict[str, Any] = {}
    inspector: dict[str, Any] = {}
    open_page = PageOpener(browser)
    with TemporaryDirectory() as directory, opened(Path(directory)) as store:
        save_two_runs(store)
        page = sign_in(store, open_page)
        for task in TASKS:
            console[task.name] = as_data(do(task, store, page))
        open_page.close()
    with TemporaryDirectory() as directory, inspector_tasks.connected(Path(directory), PageOpener(browser)) as other:
        for name in inspector_tasks.NOTES:
            operator = Operator(other.page)
            getattr(other, name)(operator)
            inspector[name] = as_data(operator.effort())
    return {"inspector version": VERSION, "console": console, "inspector": inspector}


def table(results: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table in the documentation."""
    yield f"| task | console | MCP Inspector {results['inspector version']} |"
    yield "|---|---|---|"
    for task in TASKS:
        if task.name in inspector_tasks.NOTES:
            other = f"{_words(results['inspector'][task.name])}. {inspector_tasks.NOTES[task.name]}"
        else:
            other = f"not possible: {inspector_tasks.IMPOSSIBLE[task.name]}"
        yield f"| {task.text} | {_words(results['console'][task.name])} | {other} |"


def _words(effort: dict[str, Any]) -> str:
    parts = [f"{effort['clicks']} clicks"]
    if effort["keys"]:
        parts.append(f"{effort['keys']} {'entry' if effort['keys'] == 1 else 'entries'}")
    return ", ".join([*parts, f"{effort['seconds']} s"])


def main() -> None:
    """Measure, and write the results and the table."""
    with running_chromium() as browser, current_loop(browser):
        results = measure(browser)
    RESULTS.write_text(f"{json.dumps(results, indent=1)}\n")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    text = "\n".join(table(results))
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
