"""The site in a browser: search, the links of the landing page, and the dark colours. `dev.py test --all` runs it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

pytestmark = [pytest.mark.alone, pytest.mark.slow]

PROGRAMS = ("chromium", "chromedriver")
"""The programs of the Debian packages chromium and chromium-driver."""

WAIT_SECONDS = 30


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


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Return a browser with a new profile."""
    program, driver = map(shutil.which, PROGRAMS)
    if program is None or driver is None:
        pytest.skip("no Chromium with its driver is installed here")
    options = ChromeOptions()
    options.binary_location = program
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for each in ("headless=new", "window-size=1400,1000", f"user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(f"--{each}")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium refuses to run as root with it
    with Chrome(options, Service(driver)) as chrome:
        yield chrome


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
    browser: Chrome, address: str, words: str, title: str, expected: list[str]
) -> None:
    """The reader types words in the sidebar, and follows a result."""
    browser.get(address)
    browser.find_element(By.CSS_SELECTOR, ".sidebar-search").send_keys(words, Keys.ENTER)
    WebDriverWait(browser, WAIT_SECONDS).until(
        lambda _: (
            browser.find_elements(By.CSS_SELECTOR, "#search-results .search-summary")
            and "Searching" not in browser.find_element(By.ID, "search-results").text
        )
    )
    found = browser.find_elements(By.CSS_SELECTOR, "#search-results ul.search li > a")
    results = {each.text: each for each in reversed(found)}

    assert title in results
    results[title].click()
    assert [browser.find_element(By.TAG_NAME, "h1").text, *re.findall("#.*", browser.current_url)] == expected


def test_every_link_of_the_landing_page_leads_to_a_page(browser: Chrome, address: str) -> None:
    """In the text, in the sidebar and below the text."""
    browser.get(address)
    links = {str(each.get_attribute("href")) for each in browser.find_elements(By.CSS_SELECTOR, "a[href]")}
    internal = sorted(link for link in links if link.startswith(address))
    headings = {}
    for link in internal:
        browser.get(link)
        headings[link] = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "article h1")]

    assert len(internal) > 70
    assert [link for link, found in headings.items() if len(found) != 1] == []
    assert [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_reader_can_choose_dark_colours(browser: Chrome, address: str, tmp_path: Path) -> None:
    """The text is light then, and the choice holds on the next page."""
    browser.get(f"{address}/tutorial/first-tool.html")
    brightness = {}
    for theme in ("light", "dark"):
        for _ in range(3):  # automatic, light, dark
            if browser.find_element(By.TAG_NAME, "body").get_attribute("data-theme") == theme:
                break
            browser.find_element(By.CSS_SELECTOR, ".content-icon-container .theme-toggle").click()
        brightness[theme] = [brightness_of(browser, name) for name in ("background-color", "color")]
        browser.save_screenshot(str(tmp_path / f"{theme}.png"))
    browser.get(address)

    assert brightness["light"][0] > 0.9 > 0.1 > brightness["light"][1]
    assert brightness["dark"][0] < 0.2 < 0.8 < brightness["dark"][1]
    assert browser.find_element(By.TAG_NAME, "body").get_attribute("data-theme") == "dark"


def brightness_of(browser: Chrome, style: str) -> float:
    """Return the brightness of a colour of the page, from 0 to 1."""
    colour = browser.find_element(By.TAG_NAME, "body").value_of_css_property(style)
    parts = [int(each) for each in colour.partition("(")[2].rstrip(")").split(",")[:3]]
    return sum(parts) / 3 / 255
