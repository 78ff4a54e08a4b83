"""Every page for everyone: axe-core, both themes, phones, zoomed pages, and the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect
from tests.browsers import PageOpener, accessibility_violations, has_horizontal_scrolling
from tests.conftest import ALL
from tests.console.conftest import ServedConsole
from tests.console.world import Visit, World, show, visits, world_with

PHONE: Final = {"width": 320, "height": 640}
ZOOMED: Final = {"width": 640, "height": 450}
"""A window of 1280 × 900 pixels at a zoom of 200 %."""
DESKTOP: Final = {"width": 1280, "height": 900}

COLOURS: Final = ("color-contrast", "link-in-text-block")
"""The rules of axe-core whose outcome depends on the theme."""

MAX_TABS: Final = 250


def text(place: str) -> str:
    """Return a text with a word that is longer than a phone is wide, and lines."""
    return f"A text about {place}: {'long' * 40}.\nAnd a second line."


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Return a console that shows everything."""
    with world_with(tmp_path, text) as found:
        yield found


@pytest.fixture
def page(world: World, open_page: PageOpener) -> Page:
    """Return a page of a browser that is signed in."""
    found = open_page(world.served.link())
    found.wait_for_url(lambda url: "/enter" not in url)
    return found


def whole_pages(world: World, page: Page) -> Iterator[Visit]:
    """Show each page, one after the other."""
    for visit in visits(world, text):
        if not visit.is_part:
            page.set_viewport_size(DESKTOP)
            show(page, world.served.url, visit)
            yield visit


def test_no_page_has_violations(world: World, page: Page, open_page: PageOpener) -> None:
    """In both themes, on a wide screen and on a phone."""
    found: dict[Any, list[str]] = {}
    for visit in whole_pages(world, page):
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            for width in (320, 1280) if ALL or theme == "light" else (1280,):
                page.set_viewport_size({"width": width, "height": 900})
                rules = () if ALL or (theme, width) == ("light", 1280) else COLOURS
                found[visit.route, visit.path, theme, width] = accessibility_violations(page, rules=rules)
        page.emulate_media(color_scheme="light")
    open_page.close()
    open_page.take_problems()  # pages with a status other than 200

    assert {key: violations for key, violations in found.items() if violations} == {}
    assert len(found) > 30


def test_no_page_scrolls_sideways(world: World, page: Page, open_page: PageOpener) -> None:
    """On a phone, at a zoom of 200 %, and with letters of twice the size."""
    wide = []
    titles = {}
    for visit in whole_pages(world, page):
        titles[page.title()] = page.locator("h1").count()
        for name, size in (("phone", PHONE), ("zoom", ZOOMED), ("letters", DESKTOP)):
            page.set_viewport_size(size)
            if name == "letters":
                page.evaluate("document.documentElement.style.fontSize = '200%'")
            if has_horizontal_scrolling(page):
                wide.append((visit.path, name))
    open_page.close()
    open_page.take_problems()

    assert wide == []
    assert set(titles.values()) == {1}
    assert len(titles) > 10


REACHABLE: Final = """() => [...document.querySelectorAll(
  'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')].filter((each) =>
    !each.disabled && !each.closest('fieldset:disabled') && each.checkVisibility({visibilityProperty: true}) &&
    !(each.type === 'radio' && !each.checked && document.querySelector(`input[name='${each.name}']:checked`)) &&
    each.getAttribute('tabindex') !== '-1')"""
"""Returns the elements that a user can use."""

FOCUS: Final = """(elements) => {
  const active = document.activeElement;
  const style = getComputedStyle(active);
  const box = active.getBoundingClientRect();
  const isMarked = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
  const isSeen = box.bottom > 0 && box.top < innerHeight && box.width > 0;
  return [elements.indexOf(active), isMarked && isSeen];
}"""
"""Returns which element has the focus, and whether a user sees that."""


def test_keyboard_reaches_everything(world: World, page: Page, open_page: PageOpener) -> None:
    """Each control gets the focus by the tab key, in the order of the page, and a user sees it."""
    problems = []
    for visit in whole_pages(world, page):
        elements = page.evaluate_handle(REACHABLE)
        count = elements.evaluate("(elements) => elements.length")
        page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        order = []
        for _ in range(min(count + 3, MAX_TABS)):
            page.keyboard.press("Tab")
            order.append(tuple(elements.evaluate(FOCUS)))
        reached = [index for index, _ in order if index >= 0]
        unmarked = {index for index, is_marked in order if index >= 0 and not is_marked}
        if {*range(min(count, MAX_TABS))} - {*reached} or unmarked or reached[:count] != sorted(reached[:count]):
            problems.append((visit.path, count, order))
    open_page.close()
    open_page.take_problems()

    assert problems == []


def test_content_is_reached_without_the_navigation(signed_in: Page) -> None:
    """The first key leads to a link that skips it."""
    signed_in.keyboard.press("Tab")
    expect(signed_in.get_by_role("link", name="Skip to the content")).to_be_focused()
    expect(signed_in.get_by_role("link", name="Skip to the content")).to_be_in_viewport()
    signed_in.keyboard.press("Enter")

    expect(signed_in.locator("main")).to_be_focused()


def test_chosen_theme_is_stored(console: ServedConsole, signed_in: Page) -> None:
    """It differs from the theme of the system, also without scripts, until the user chooses that again."""
    colours = {}
    for theme in ("Dark", "Light", "As the system"):
        signed_in.goto(f"{console.url}/browser")
        signed_in.get_by_label(theme).check()
        signed_in.get_by_role("button", name="Use this theme").click()
        signed_in.goto(f"{console.url}/browser")
        colours[theme] = signed_in.evaluate("getComputedStyle(document.documentElement).colorScheme")
        assert signed_in.get_by_label(theme).is_checked()

    assert colours == {"Dark": "dark", "Light": "light", "As the system": "light"}
