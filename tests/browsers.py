"""Chromium for tests: one process for each process of the tests, and what pages report.

The fixtures are for each folder with such tests: ``from tests.browsers import browser as browser``.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

import attrs
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

PROGRAM: Final = "chromium"
"""The program of Debian's package of the same name."""

WAIT_MILLISECONDS: Final = 30_000
"""Time limit of each step in a page. A busy machine needs seconds for what usually takes milliseconds."""

SERVER_ENDED: Final = "net::ERR_CONNECTION_REFUSED"

Theme = Literal["light", "dark"]


@attrs.define
class PageOpener:
    """Opens pages in contexts of their own, which share no cookies, and collects what goes wrong in them.

    Attributes:
        problems: Errors and warnings in the consoles of pages, and uncaught exceptions, in order. The fixture
            `open_page` expects none at the end of a test; a test that causes some removes them with `take_problems`.
    """

    browser: Browser
    problems: list[str] = attrs.field(factory=list)
    _context: BrowserContext | None = None

    def __call__(self, url: str, context: BrowserContext | None = None) -> Page:
        """Open a page in *context*, by default in the one context that all such pages of a test share."""
        if context is None:
            context = self._context = self._context or self.new_context()
        page = context.new_page()
        page.goto(url)
        return page

    def new_context(
        self, *, width: int = 1280, height: int = 900, theme: Theme = "light", **options: Any
    ) -> BrowserContext:
        """Return a new profile of a user, without cookies.

        Args:
            width: Of its pages, in CSS pixels.
            options: See ``Browser.new_context`` of Playwright, such as ``java_script_enabled=False``.
        """
        context = self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce", **options
        )
        context.set_default_timeout(WAIT_MILLISECONDS)
        context.on("console", lambda message: self._log(message))
        context.on("weberror", lambda raised: self.problems.append(f"uncaught: {raised.error}"))
        return context

    def take_problems(self) -> list[str]:
        """Return the problems until now, and forget them."""
        found, self.problems = self.problems, []
        return found

    def close(self) -> None:
        """Close all contexts."""
        for context in self.browser.contexts:
            context.close()

    def _log(self, message: ConsoleMessage) -> None:
        if SERVER_ENDED in message.text:  # a page that loads its content again, while a test ends
            return
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return a running Chromium."""
    if shutil.which(PROGRAM) is None:
        pytest.skip("no Chromium is installed here")
    with running_chromium() as chromium:
        yield chromium


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Run Chromium without a window. Use its pages within `current_loop`.

    Raises:
        playwright.sync_api.Error: It is not installed.
    """
    options = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []  # root cannot run its sandbox
    expect.set_options(timeout=WAIT_MILLISECONDS)
    playwright = sync_playwright().start()
    loop = asyncio.get_running_loop()
    try:
        chromium = playwright.chromium.launch(executable_path=shutil.which(PROGRAM) or PROGRAM, args=options)
        asyncio._set_running_loop(None)
        yield chromium
        asyncio._set_running_loop(loop)
        chromium.close()
    finally:
        asyncio._set_running_loop(loop)
        playwright.stop()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[PageOpener]:
    """Return what opens pages. At the end of the test, no page may have reported a problem."""
    opener = PageOpener(browser)
    with current_loop(browser):
        yield opener
        opener.close()

    assert opener.problems == [], "\n".join(opener.problems)  # pytest shows no values of this file


@contextmanager
def current_loop(browser: Browser) -> Iterator[None]:
    """Mark the event loop of Playwright as the running one.

    Playwright's loop is suspended between its calls, but remains marked as running in this thread. Without that mark,
    other tests in this process can use ``asyncio.run``. Tests with a page cannot; they serve in another thread.
    """
    asyncio._set_running_loop(browser._loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(None)


@cache
def axe_source() -> str:
    """Return the script of axe-core."""
    return files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


def accessibility_violations(page: Page, *, rules: Sequence[str] = ()) -> list[str]:
    """Return what axe-core finds in the page that is open: each rule with the elements that violate it.

    The script is evaluated as the debugger does, because the policy of a page forbids scripts of others.

    Args:
        rules: The only rules to check; by default all.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe_source())
    options = {"resultTypes": ["violations"], **({"runOnly": [*rules]} if rules else {})}
    found = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{violation['id']}: {violation['help']}: {element['target']}"
        for violation in found["violations"]
        for element in violation["nodes"]
    ]


def has_horizontal_scrolling(page: Page) -> bool:
    """Return whether the page is wider than its window."""
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


def brightness_of(page: Page, style: str, selector: str = "body") -> float:
    """Return the brightness of a colour of an element, from 0 to 1."""
    colour = page.locator(selector).evaluate("(element, name) => getComputedStyle(element)[name]", style)
    parts = [int(each) for each in re.findall(r"\d+", colour)[:3]]
    return sum(parts) / 3 / 255
