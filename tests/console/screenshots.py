"""Pictures of the console for the documentation: ``python -m tests.console.screenshots [DIRECTORY]``.

They show a store with the installed toolsets, an audit log of three days, calls that wait for an approval, a plan that
has run, an MCP server that has changed a definition, and a conversation with a scripted model.
"""

from __future__ import annotations

import base64
import logging
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs
from playwright.sync_api import Browser, Page, expect
from tests.browsers import PageOpener, Theme, current_loop, running_chromium
from tests.console.operator_tasks import sign_in
from tests.console.store import Caller, Store, opened
from tests.llm.server import ModelServer, asks, call, says

from neuroscript import Approval
from neuroscript.cli.doctor.command import run_checks
from neuroscript.llm import model

PICTURES: Final = Path(__file__).parents[2] / "docs" / "pictures"
WIDTH, HEIGHT = 1280, 800
QUALITY: Final = 90
LOAD_MILLISECONDS: Final = 60_000
"""Time limit of what takes seconds even on an idle machine."""

QUESTION: Final = "What do two lamps cost for Vera, and does the shop page say the same?"
REPLIES: Final = (
    asks(
        call("store__quote", {"order": {"customer": "Vera", "lines": [{"item": "lamp", "count": "2"}]}}),
        text="I look up the price of the order.",
    ),
    asks(call("http__get", {"url": "https://shop.example/lamps"}), text="Now I compare it with the page of the shop."),
    says(
        "Two lamps cost 60.00 EUR for Vera.\n\nI could not read the page of the shop, because this console does not permit it."
    ),
)


@attrs.frozen
class Screenshot:
    """A picture of a page.

    Attributes:
        name: The name of its file, without the suffix.
        heading: The first heading of the page.
        show: Opens what it shows, in a page that is signed in.
    """

    name: str
    heading: str
    show: Callable[[Store, Page], None]
    theme: Theme = "light"


def show_tools(store: Store, page: Page) -> None:
    """List the tools that a search finds."""
    page.goto(f"{store.console.url}/tools")
    page.get_by_role("searchbox", name="Search for tools").press_sequentially("file")
    expect(page.get_by_role("link", name="crypto.uuid")).to_have_count(0)


def show_tool(store: Store, page: Page) -> None:
    """Fill the form of a tool with a value that is repaired."""
    page.goto(f"{store.console.url}/tools/store.quote")
    page.get_by_role("textbox", name="customer").fill("Vera")
    page.get_by_role("button", name="Add an item to lines").click()
    page.get_by_role("textbox", name="item").fill("lamp")
    page.get_by_role("textbox", name="count").press_sequentially("2.0")
    expect(page.get_by_role("region", name="What would happen")).to_contain_text("would run")
    page.evaluate("scrollTo(0, 0)")


def show_approvals(store: Store, page: Page) -> None:
    """Let two calls wait."""
    page.goto(f"{store.console.url}/approvals")
    expect(page.get_by_role("button", name="Approve once").first).to_be_visible()


def show_audit(store: Store, page: Page) -> None:
    """Show the latest records, after the log was indexed."""
    page.goto(f"{store.console.url}/audit")
    while page.get_by_text("still being indexed").count():
        page.reload()


def show_statistics(store: Store, page: Page) -> None:
    """Show charts of the whole log."""
    show_audit(store, page)
    page.get_by_role("link", name="Statistics").click()
    expect(page.get_by_role("heading", name="By tool")).to_be_visible()


def show_run(store: Store, page: Page) -> None:
    """Run a plan."""
    page.goto(f"{store.console.url}/plans/files/invoice.toml")
    page.get_by_role("textbox", name="customer").fill("Vera")
    page.get_by_role("textbox", name="count int").fill("3")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("The plan succeeded.")).to_be_visible()


def show_policy(store: Store, page: Page) -> None:
    """Show the rules."""
    page.goto(f"{store.console.url}/policy")


def show_chat(store: Store, page: Page) -> None:
    """Ask the model."""
    page.goto(f"{store.console.url}/chat")
    page.get_by_label("Your message").fill(QUESTION)
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("Two lamps cost 60.00 EUR")).to_be_visible()
    page.evaluate("scrollTo(0, 0)")


def show_health(store: Store, page: Page) -> None:
    """Run the checks, and compare the definitions of the MCP server."""
    page.goto(f"{store.console.url}/health/servers/stock")
    page.get_by_role("button", name="Compare now").click()
    expect(page.get_by_role("button", name="Accept these definitions")).to_be_visible(timeout=LOAD_MILLISECONDS)
    page.goto(f"{store.console.url}/health")
    page.get_by_role("button", name="Run the checks").click()
    expect(page.get_by_text("checked at")).to_be_visible(timeout=LOAD_MILLISECONDS)


SCREENSHOTS: Final = (
    Screenshot("console-tools", "Tools", show_tools),
    Screenshot("console-tool", "store.quote", show_tool),
    Screenshot("console-approvals", "Approvals", show_approvals),
    Screenshot("console-audit", "Audit log", show_audit),
    Screenshot("console-statistics", "Audit statistics", show_statistics),
    Screenshot("console-plan", "Run of invoice", show_run),
    Screenshot("console-policy", "Policy", show_policy),
    Screenshot("console-chat", "Chat", show_chat),
    Screenshot("console-health", "Health", show_health),
    Screenshot("console-tool-dark", "store.quote", show_tool, "dark"),
    Screenshot("console-statistics-dark", "Audit statistics", show_statistics, "dark"),
)


def make(browser: Browser, directory: Path, screenshots: Iterable[Screenshot] = SCREENSHOTS) -> Iterator[Screenshot]:
    """Write the pictures to a directory, and yield each one when its page has the right heading."""
    open_page = PageOpener(browser)
    with showcase() as store:
        for each in screenshots:
            context = open_page.new_context(width=WIDTH, height=HEIGHT, theme=each.theme)
            page = sign_in(store, open_page, context)
            each.show(store, page)
            expect(page.get_by_role("heading", level=1)).to_have_text(each.heading)
            (directory / f"{each.name}.webp").write_bytes(captured(page))
            context.close()
            yield each


def captured(page: Page) -> bytes:
    """Return a picture of the visible part of a page, as WebP."""
    session = page.context.new_cdp_session(page)
    found = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    return base64.b64decode(found["data"])


@contextmanager
def showcase() -> Iterator[Store]:
    """Serve the console of the store with a model, and with calls that wait."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with TemporaryDirectory() as name, ModelServer() as server:
        directory = Path(name)
        server.script(*REPLIES)
        options = Namespace(policy=str(directory / "policy.toml"), sandbox=str(directory / "sandbox"))
        with (
            model("small", base_url=server.base_url(), api="openai-chat") as chosen,
            opened(directory, model=chosen, checks=partial(run_checks, options)) as store,
        ):
            callers = [*waiting_calls(store)]
            yield store
            for each in store.inbox.waiting:
                store.inbox.answer(each.id, Approval.reject("the pictures are made"), digest=each.request.digest)
            for caller in callers:
                caller.outcome()


def waiting_calls(store: Store) -> Iterator[Caller]:
    """Start two calls that need an approval, in sessions of agents."""
    refunds = (
        ("agent-orders", {"order_id": 9, "amount": 250}),
        ("agent-support", {"order_id": 7, "amount": 31.5, "reason": "The lamp arrived broken"}),
    )
    for session, arguments in refunds:
        yield store.request("store.refund", arguments, session=session)


def main() -> None:
    """Write all pictures."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    with running_chromium() as browser, current_loop(browser):
        for each in make(browser, directory):
            print(each.name, (directory / f"{each.name}.webp").stat().st_size)


if __name__ == "__main__":
    main()
