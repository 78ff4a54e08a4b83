"""What tests with a browser rely on: problems of pages are found, and other tests are not disturbed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.browsers import PageOpener, accessibility_violations, brightness_of, has_horizontal_scrolling
from tests.browsers import browser as browser
from tests.browsers import open_page as open_page

PAGE = """<!doctype html><html lang="en"><head>%s<title>A page</title></head>
<body style="background: #fff; margin: 0"><main><h1>A page</h1>%s</main></body></html>"""


@pytest.fixture
def address(tmp_path: Path) -> str:
    """Return the address of a file that each test writes."""
    return (tmp_path / "page.html").as_uri()


def write(address: str, content: str = "", head: str = "") -> str:
    """Write a page with *content*, and return its address."""
    Path(address.removeprefix("file://")).write_text(PAGE % (head, content))
    return address


def test_problems_of_a_page_are_collected(open_page: PageOpener, address: str) -> None:
    """Messages in the console, uncaught exceptions, and what cannot be loaded."""
    content = "<script>console.log('a'); console.warn('b'); console.error('c')</script><script>missing()</script>"
    open_page(write(address, content + "<img alt='' src='none.png'>"))

    assert sorted(open_page.take_problems()) == [
        "error: Failed to load resource: net::ERR_FILE_NOT_FOUND",
        "error: c",
        "uncaught: missing is not defined",
        "warning: b",
    ]


def test_violations_are_found(open_page: PageOpener, address: str) -> None:
    """Each with its rule and its element, on a page that forbids all scripts."""
    policy = """<meta http-equiv="Content-Security-Policy" content="script-src 'none'">"""
    good = open_page(write(address, "<p>A string.</p>"))
    bad = open_page(write(address, '<p id="pale" style="color: #ddd">A string.</p><input>', policy))

    assert accessibility_violations(good) == []
    assert sorted(found.partition(":")[0] for found in accessibility_violations(bad)) == ["color-contrast", "label"]
    assert accessibility_violations(bad, rules=["color-contrast"]) == [
        "color-contrast: Elements must meet minimum color contrast ratio thresholds: ['#pale']"
    ]


def test_width_and_colours_are_measured(open_page: PageOpener, address: str) -> None:
    """Of the whole page in its window."""
    narrow = open_page(
        write(address, '<div style="width: 320px; color: #333">x</div>'), open_page.new_context(width=320)
    )
    wide = open_page(write(address, '<div style="width: 321px">x</div>'), open_page.new_context(width=320))

    assert (has_horizontal_scrolling(narrow), has_horizontal_scrolling(wide)) == (False, True)
    assert (brightness_of(narrow, "backgroundColor"), brightness_of(narrow, "color", "div")) == (1.0, 0.2)


def test_contexts_share_no_cookies(open_page: PageOpener, address: str) -> None:
    """Pages of the common context do."""
    first, second, other = open_page(write(address)), open_page(address), open_page(address, open_page.new_context())
    first.context.add_cookies([{"name": "a", "value": "b", "url": "http://example.com"}])

    assert first.context is second.context
    assert [len(page.context.cookies()) for page in (first, second, other)] == [1, 1, 0]


def test_other_tests_can_run_an_event_loop(browser: Browser) -> None:
    """While the browser runs, in the same thread."""

    async def answer() -> str:
        await asyncio.sleep(0)
        return "answer"

    assert asyncio.run(answer()) == "answer"
    assert browser.is_connected()
