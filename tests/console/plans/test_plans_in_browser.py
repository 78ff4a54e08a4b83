"""Plans in a browser: the graph of a run that changes, reload, cancel, approvals, keyboard and accessibility."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browsers import PageOpener, accessibility_violations, has_horizontal_scrolling
from tests.console.conftest import ServedConsole, serving
from tests.console.plans.boxes import Box
from tests.console.plans.test_trace_pages import TRACE

from neuroscript import ExecutionPolicy
from neuroscript.console import Inbox, app
from neuroscript.workflow import save_trace

REJECTED = "error: Failed to load resource: the server responded with a status of 422"


@pytest.fixture
def served(box: Box, plans: Path) -> Iterator[ServedConsole]:
    """Return a console with plans, a trace and an inbox."""
    save_trace(TRACE, plans / "run.json")
    (plans / "ask.toml").write_text('[nodes.a]\ntool = "box.approved"\ninputs = { text = "x" }\n')
    inbox = Inbox()
    engine = box.engine(ExecutionPolicy(approver=inbox))
    with serving(app(engine, plans=plans, inbox=inbox)) as console:
        yield console
        box.go.set()


@pytest.fixture
def page(served: ServedConsole, open_page: PageOpener) -> Page:
    page = open_page(served.link())
    page.wait_for_url(lambda url: "/enter" not in url)
    page.goto(f"{served.url}/plans")
    return page


def run(page: Page, file: str) -> None:
    page.get_by_role("link", name=file).click()
    page.get_by_role("button", name="Run").click()


def test_graph_changes_while_the_plan_runs(page: Page, box: Box) -> None:
    """The row and the box of each node, the progress, and the outcome at the end."""
    run(page, "waits.toml")
    expect(page.locator("#state-slow .badge")).to_have_text("running")
    expect(page.locator("#box-slow .running").first).to_be_attached()
    expect(page.locator("#state-last .badge")).to_have_text("waiting")
    box.go.set()

    expect(page.locator("#plan-outcome")).to_contain_text("The plan succeeded.")
    expect(page.locator("#state-last .badge")).to_have_text("succeeded")
    expect(page.locator("#box-last rect.succeeded")).to_be_attached()
    expect(page.locator("#plan-progress")).to_have_text("3 of 3 nodes ended")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    assert page.locator("#box-last text").first.evaluate("each => each.namespaceURI").endswith("/svg")


@pytest.mark.full
def test_reload_during_a_run_shows_the_same_state(page: Page, box: Box) -> None:
    """Afterwards the page receives the rest, and the back button leads to the plan."""
    run(page, "waits.toml")
    expect(page.locator("#state-slow .badge")).to_have_text("running")
    page.reload()
    expect(page.locator("#state-first .badge")).to_have_text("succeeded")
    expect(page.locator("#state-slow .badge")).to_have_text("running")
    box.go.set()

    expect(page.locator("#plan-outcome")).to_contain_text("The plan succeeded.")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("waits")


@pytest.mark.full
def test_run_is_cancelled(page: Page) -> None:
    run(page, "waits.toml")
    expect(page.locator("#state-slow .badge")).to_have_text("running")
    page.get_by_role("button", name="Cancel").click()

    expect(page.locator("#plan-outcome")).to_contain_text("was cancelled")
    expect(page.locator("#state-last .badge")).to_have_text("unstarted")


@pytest.mark.full
def test_call_that_waits_for_an_approval_leads_to_the_inbox(page: Page, box: Box) -> None:
    """The page of the run names the call; after the answer the run goes on."""
    run(page, "ask.toml")
    address = page.url
    page.locator(".notice").get_by_role("link", name="box.approved").click()
    page.get_by_role("button", name="Approve").first.click()
    page.wait_for_load_state()
    page.goto(address)

    expect(page.locator("#plan-outcome")).to_contain_text("The plan succeeded.")
    assert box.ran == ["approved"]


@pytest.mark.full
def test_nodes_of_the_graph_are_reached_by_keyboard(page: Page) -> None:
    """Each is a link to its row, which receives the focus."""
    page.get_by_role("link", name="sum.toml").click()
    page.locator("svg a.node").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    assert page.url.endswith("#node-double")
    expect(page.locator("#node-double")).to_be_focused()


@pytest.mark.full
def test_invalid_inputs_are_corrected(page: Page, open_page: PageOpener) -> None:
    """The problem is shown at the field while typing, and after sending it; the corrected inputs run."""
    page.get_by_role("link", name="sum.toml").click()
    page.get_by_label("a (required)").fill("many")
    expect(page.locator("#inputs-state")).to_contain_text("1 problem with the inputs")
    expect(page.locator("#fields .error")).to_contain_text("expected int, got str")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("alert")).to_contain_text("expected int, got str")
    assert [each.split(" (")[0] for each in open_page.take_problems()] == [REJECTED]
    page.get_by_label("a (required)").fill("4")
    expect(page.locator("#inputs-state")).to_contain_text("The inputs are valid.")
    page.get_by_role("button", name="Run").click()
    page.get_by_role("link", name="Trace", exact=True).click()

    expect(page.get_by_role("row", name="double")).to_contain_text("12")


@pytest.mark.full
def test_plan_runs_without_javascript(served: ServedConsole, open_page: PageOpener, box: Box) -> None:
    """The page shows the present state when it is loaded again."""
    context = open_page.new_context(java_script_enabled=False)
    page = open_page(served.link(), context)
    page.goto(f"{served.url}/plans")
    run(page, "waits.toml")
    expect(page.get_by_role("heading", level=1)).to_have_text("Run of waits")
    assert box.waiting.wait(30)
    page.get_by_role("link", name="Load this page again").click()
    expect(page.locator("#state-slow .badge")).to_have_text("running")
    box.go.set()
    while page.get_by_role("button", name="Cancel").is_visible():
        page.reload()

    expect(page.locator("#plan-outcome")).to_contain_text("The plan succeeded.")


@pytest.mark.full
def test_trace_is_downloaded(page: Page, tmp_path: Path) -> None:
    page.get_by_role("link", name="sum.toml").click()
    page.get_by_label("a (required)").fill("4")
    page.get_by_role("button", name="Run").click()
    page.get_by_role("link", name="Trace", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()

    assert download.value.suggested_filename.startswith("sum.")
    assert '"output": 12' in Path(download.value.path()).read_text()


@pytest.mark.full
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_of_plans_are_accessible(theme: str, served: ServedConsole, open_page: PageOpener, box: Box) -> None:
    """In both themes, and without horizontal scrolling of the page at a width of 320 pixels."""
    context = open_page.new_context(theme=theme, width=320)  # type: ignore[arg-type]
    page = open_page(served.link(), context)
    page.wait_for_url(lambda url: "/enter" not in url)
    found = {}
    paths = ["", "/files/sum.toml", "/files/broken.toml", "/traces", "/traces/run.json", "/compare?a=file:run.json"]
    page.goto(f"{served.url}/plans")
    run(page, "waits.toml")
    expect(page.locator("#state-slow .badge")).to_have_text("running")
    for path in [page.url, *(f"{served.url}/plans{each}" for each in paths)]:
        page.goto(path)
        found[path] = [*accessibility_violations(page), *(["scrolls"] if has_horizontal_scrolling(page) else [])]

    assert {path: each for path, each in found.items() if each} == {}
