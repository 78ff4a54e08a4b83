"""Audit logs in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.audit_records import KEY, outcome
from tests.browsers import PageOpener, Theme, accessibility_violations, has_horizontal_scrolling
from tests.console.audit.conftest import DELETE, write
from tests.console.conftest import ServedConsole

PAGES = ("/audit", "/audit?since=x", "/audit/statistics", "/audit/verification")


@pytest.fixture
def page(console: ServedConsole, open_page: PageOpener) -> Page:
    """The list of calls in a browser that is signed in."""
    return audit_page(console, open_page)


def audit_page(console: ServedConsole, open_page: PageOpener, **options: object) -> Page:
    page = open_page(console.link(), open_page.new_context(**options))  # type: ignore[arg-type]
    page.goto(f"{console.url}/audit")
    return page


def calls(page: Page) -> list[str]:
    """Return the tools of the calls that are shown."""
    return page.locator("tbody tr td:nth-child(2) a").all_inner_texts()


def test_who_deleted_a_file_yesterday(page: Page) -> None:
    """Two choices show the call, and its session is who; the address has the selection, for a colleague."""
    page.get_by_label("Effect of the tool").select_option("deletes")
    page.get_by_label("Time").select_option("Yesterday (UTC)")

    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("fs:delete:plan.txt")
    expect(page.get_by_role("link", name="bob")).to_be_visible()
    assert page.url.endswith("/audit?effect=deletes&period=yesterday")


@pytest.mark.full
def test_form_works_without_scripts(console: ServedConsole, open_page: PageOpener) -> None:
    page = audit_page(console, open_page, java_script_enabled=False)
    page.get_by_label("Tool", exact=True).fill("math.*")
    page.get_by_role("button", name="Show").click()
    assert calls(page) == ["math.add", "math.add"]
    page.get_by_role("link", name="Clear the filters").click()

    assert len(calls(page)) == 7
    expect(page.get_by_label("Show new calls as they happen")).to_be_hidden()


@pytest.mark.full
def test_new_calls_appear_while_the_page_is_open(page: Page, lines: Path) -> None:
    """Only those that are selected, and the focus stays where it is."""
    page.get_by_label("Tool", exact=True).fill("fs.*")
    expect(page.locator("tbody tr")).to_have_count(4)
    page.get_by_label("Show new calls as they happen").check()
    expect(page.locator("#calls [data-refresh]")).to_be_attached()
    page.get_by_role("link", name="fs.write").first.focus()
    write(lines, outcome(20, about=DELETE, session="eve"), outcome(21), key=KEY)

    expect(page.get_by_role("link", name="eve")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(6)
    assert page.evaluate("document.activeElement.textContent") == "fs.write"


@pytest.mark.full
def test_back_returns_to_the_selected_calls(page: Page) -> None:
    """From a nested call and the call that it is nested in."""
    page.get_by_label("Outcome").select_option("ok")
    page.locator("tbody tr", has_text="in call 2").get_by_role("link", name="math.add").click()
    expect(page.get_by_role("listitem").filter(has_text="this call")).to_contain_text("call 3")
    page.get_by_role("link", name="math.add").nth(0).click()
    page.go_back()
    page.go_back()

    expect(page.get_by_label("Outcome")).to_have_value("ok")
    expect(page.locator("tbody tr")).to_have_count(4)
    assert calls(page) == ["math.add", "fs.delete", "math.add", "fs.delete"]


@pytest.mark.full
def test_verification_shows_its_result_when_it_ends(page: Page, lines: Path) -> None:
    """With the place where the log breaks, by keyboard alone."""
    lines.write_bytes(lines.read_bytes().replace(b'"session":"bob"', b'"session":"ann"', 1))
    page.get_by_role("link", name="Verification").press("Enter")
    page.get_by_role("button", name="Verify now").press("Enter")

    expect(page.locator(".notice.bad")).to_contain_text("Not intact")
    expect(page.locator("tbody tr")).to_have_text(re.compile("4.*edited"))


@pytest.mark.full
def test_selected_calls_are_downloaded(page: Page) -> None:
    page.get_by_label("Outcome").select_option("refused")
    expect(page.locator("tbody tr")).to_have_count(1)
    with page.expect_download() as started:
        page.get_by_role("link", name="CSV").click()

    assert re.fullmatch(r"audit-trail-\d{8}-\d{6}\.csv", started.value.suggested_filename)
    assert len(started.value.path().read_text().splitlines()) == 2


@pytest.mark.full  # test_accessibility.py looks at the same pages
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_are_accessible(theme: Theme, console: ServedConsole, open_page: PageOpener) -> None:
    """In both themes; none is wider than a phone."""
    page = audit_page(console, open_page, theme=theme, width=320)
    page.locator("tbody a").nth(4).click()
    page.get_by_role("heading", name="Record").wait_for()
    problems = accessibility_violations(page)
    for path in PAGES:
        page.goto(console.url + path)
        problems += [f"{path}: {each}" for each in accessibility_violations(page)]
        if has_horizontal_scrolling(page):
            problems.append(f"{path} is too wide")

    assert problems == []
