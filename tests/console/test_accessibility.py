"""Every page for everyone: axe-core, both themes, phones, zoomed pages, and the keyboard alone."""

from __future__ import annotations

from typing import Final

import attrs
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browsers import PageOpener, accessibility_violations, current_loop, has_horizontal_scrolling
from tests.conftest import ALL
from tests.console.conftest import ServedConsole
from tests.console.visits import show, visits
from tests.console.world import world_with

PHONE: Final = {"width": 320, "height": 640}
ZOOMED: Final = {"width": 640, "height": 450}
"""A window of 1280 × 900 pixels at a zoom of 200 %."""
DESKTOP: Final = {"width": 1280, "height": 900}

COLOURS: Final = ("color-contrast", "link-in-text-block")
"""The rules of axe-core whose outcome depends on the theme."""

MAX_TABS: Final = 250 if ALL else 12
"""Maximum number of controls of a page that are reached by the keyboard."""


def text(place: str) -> str:
    """Return a string with a word that is longer than a phone is wide, and lines."""
    return f"A string about {place}: {'long' * 40}.\nAnd a second line."


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


@attrs.define
class Survey:
    """What was found on all pages.

    Attributes:
        violations: What axe-core found, by address, theme and width.
        wide: The addresses that scroll sideways, and how they were shown.
        unreachable: The addresses whose controls the keyboard does not reach in order and visibly.
        headings: The number of headings of the first level, by title.
    """

    violations: dict[tuple[str, str, int], list[str]] = attrs.field(factory=dict)
    wide: list[tuple[str, str]] = attrs.field(factory=list)
    unreachable: list[tuple[str, object]] = attrs.field(factory=list)
    headings: dict[str, int] = attrs.field(factory=dict)

    def check(self, page: Page, path: str) -> None:
        """Check a page that is open in a window of a desktop."""
        self.headings[page.title()] = page.locator("h1").count()
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            for width in (1280, 320) if ALL else (1280,):
                page.set_viewport_size({"width": width, "height": 900})
                rules = () if ALL or (theme, width) == ("light", 1280) else COLOURS
                self.violations[path, theme, width] = accessibility_violations(page, rules=rules)
        page.emulate_media(color_scheme="light")
        self._check_width(page, path)
        self._check_keyboard(page, path)

    def _check_width(self, page: Page, path: str) -> None:
        for name, size in (("phone", PHONE), ("zoom", ZOOMED), ("letters", DESKTOP)):
            page.set_viewport_size(size)  # type: ignore[arg-type]
            page.evaluate(
                "size => { document.documentElement.style.fontSize = size; }", "200%" if name == "letters" else ""
            )
            if has_horizontal_scrolling(page):
                self.wide.append((path, name))
        page.evaluate("document.documentElement.style.fontSize = ''")

    def _check_keyboard(self, page: Page, path: str) -> None:
        elements = page.evaluate_handle(REACHABLE)
        count = elements.evaluate("(elements) => elements.length")
        page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        order = []
        for _ in range(min(count + 3, MAX_TABS)):
            page.keyboard.press("Tab")
            order.append(tuple(elements.evaluate(FOCUS)))
        reached = [index for index, _ in order if index >= 0]
        unmarked = {index for index, is_marked in order if index >= 0 and not is_marked}
        missing = {*range(min(count, MAX_TABS))} - {*reached}
        first = reached[:count]
        begin = first.index(min(first)) if first else 0  # a page that opens at its end begins there
        if missing or unmarked or first[begin:] + first[:begin] != sorted(first):
            texts = elements.evaluate("(elements) => elements.map((each) => each.outerHTML.slice(0, 120))")
            self.unreachable.append((path, [texts[each] for each in sorted(missing | unmarked)] or reached))


@pytest.fixture(scope="module")
def survey(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Survey:
    """Return what was found on every page of a console that shows everything."""
    found, opener = Survey(), PageOpener(browser)
    with current_loop(browser), world_with(tmp_path_factory.mktemp("world"), text) as world:
        page = opener(world.served.link())
        page.wait_for_url(lambda url: "/enter" not in url)
        known = set()
        for visit in visits(world, text):
            if visit.is_part:
                continue
            area = visit.route.partition(".")[0]
            if not ALL and (area in known or visit.path.startswith("+")):
                continue
            known.add(area)
            page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
            show(page, world.served.url, visit)
            found.check(page, visit.path)
        opener.close()
    return found


def test_no_page_has_violations(survey: Survey) -> None:
    """In both themes, on a wide screen and on a phone. All pages are checked, or one of each area."""
    assert {key: violations for key, violations in survey.violations.items() if violations} == {}
    assert len(survey.violations) > (200 if ALL else 12)


def test_no_page_scrolls_sideways(survey: Survey) -> None:
    """On a phone, at a zoom of 200 %, and with letters of twice the size."""
    assert survey.wide == []


def test_keyboard_reaches_everything(survey: Survey) -> None:
    """Each control gets the focus by the tab key, in the order of the page, and a user sees it."""
    assert survey.unreachable == []


def test_each_page_has_a_title_and_a_heading(survey: Survey) -> None:
    """The titles name what the page shows."""
    assert [
        title for title, count in survey.headings.items() if count != 1 or not title.endswith(" · NeuroScript")
    ] == []
    assert len(survey.headings) > (25 if ALL else 6)


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
