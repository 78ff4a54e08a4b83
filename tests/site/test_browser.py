"""The site in a browser: search, the links of the landing page, and the dark colours. `dev.py test --all` runs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.browsers import PageOpener, brightness_of
from tests.browsers import browser as browser
from tests.browsers import open_page as open_page

pytestmark = [pytest.mark.alone, pytest.mark.slow]


class Handler(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Return the address of a server of the site."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("words", "title", "expected"),
    [
        ("suspended approval", "Approve calls", ["Approve calls"]),
        (
            "FakeRuntime",
            "neuroscript.testing.FakeRuntime",
            ["Test kit", "#neuroscript.testing.FakeRuntime"],
        ),
        ("sanitizefilename", "fs > fs.sanitizefilename", ["fs", "#fs-sanitizefilename"]),
    ],
    ids=["a-guide", "a-class", "a-tool"],
)
def test_search_finds_pages_of_every_kind(
    open_page: PageOpener, address: str, words: str, title: str, expected: list[str]
) -> None:
    """The reader types words in the sidebar, and follows a result."""
    page = open_page(address)
    page.locator(".sidebar-search").fill(words)
    page.keyboard.press("Enter")
    page.locator("#search-results .search-summary").filter(has_not_text="Searching").wait_for()
    page.locator("#search-results ul.search li > a").get_by_text(title, exact=True).first.click()
    page.wait_for_url(re.compile(r"^(?!.*search\.html)"))

    assert [
        page.locator("h1").first.inner_text().rstrip("¶#"),
        *re.findall("#.*", page.url),
    ] == expected


def test_every_link_of_the_landing_page_leads_to_a_page(open_page: PageOpener, address: str) -> None:
    """In the text, in the sidebar and below the text. No page reports an error."""
    page = open_page(address)
    links = page.locator("a[href]").evaluate_all("links => links.map(each => each.href)")
    internal = sorted({link for link in links if link.startswith(address)})
    headings = {}
    for link in internal:
        page.goto(link)
        headings[link] = page.locator("article h1").count()

    assert len(internal) > 70
    assert [link for link, count in headings.items() if count != 1] == []


def test_reader_can_choose_dark_colours(open_page: PageOpener, address: str, tmp_path: Path) -> None:
    """The text is light then, and the choice holds on the next page."""
    page = open_page(f"{address}/tutorial/first-tool.html")
    brightness = {}
    for theme in ("light", "dark"):
        for _ in range(3):  # automatic, light, dark
            if page.locator("body").get_attribute("data-theme") == theme:
                break
            page.locator(".content-icon-container .theme-toggle").click()
        brightness[theme] = [brightness_of(page, name) for name in ("backgroundColor", "color")]
        page.screenshot(path=tmp_path / f"{theme}.png")
    page.goto(address)

    assert brightness["light"][0] > 0.9 > 0.1 > brightness["light"][1]
    assert brightness["dark"][0] < 0.2 < 0.8 < brightness["dark"][1]
    assert page.locator("body").get_attribute("data-theme") == "dark"
