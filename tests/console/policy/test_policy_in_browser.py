"""The pages of the policy in a browser: live explanations, limits that change, keyboard and accessibility."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.browsers import PageOpener, accessibility_violations, has_horizontal_scrolling
from tests.console.conftest import ServedConsole, serving
from tests.console.policy.test_policy_pages import box

from neuroscript import Engine, ExecutionPolicy, Limits
from neuroscript.console import app

POLICY = ExecutionPolicy(grants=("fs:read:data/**",), deny=("nothing.*",), limits=Limits(calls=10))


@pytest.fixture(scope="module")
def served() -> Iterator[ServedConsole]:
    """Return one console for all tests of this file."""
    with serving(app(Engine(plugins="none", toolsets=box(), policy=POLICY))) as console:
        yield console


@pytest.fixture
def page(served: ServedConsole, open_page: PageOpener) -> Page:
    page = open_page(served.link())
    page.wait_for_url(lambda url: "/enter" not in url)
    page.goto(f"{served.url}/policy/call")
    return page


def test_explanation_follows_the_typing(page: Page) -> None:
    """Each change shows another decision, and the page says what to grant; the field keeps its focus."""
    outcome = page.locator("#explanation .badge").first
    page.get_by_label("Tool").press_sequentially("box.read")
    expect(outcome).to_have_text("Depends on the arguments")
    page.get_by_label("Arguments").press_sequentially('{"path": "secret/a"}')
    expect(outcome).to_have_text("Refused")
    expect(page.locator("#as-option")).to_have_text("--grant 'fs:read:secret/a'")
    page.get_by_label("Arguments").fill('{"path": "data/a"}')

    expect(outcome).to_have_text("Allowed")
    expect(page.get_by_label("Arguments")).to_be_focused()


@pytest.mark.full
def test_grant_is_copied(page: Page, served: ServedConsole) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=served.url)
    page.get_by_label("Tool").fill("box.read")
    page.get_by_label("Arguments").fill('{"path": "x"}')
    page.get_by_role("button", name="Copy for Policy file").click()

    expect(page.locator("#announcer")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == '[policy]\ngrants = ["fs:read:x"]'


@pytest.mark.full
def test_call_is_explained_by_keyboard_alone(page: Page) -> None:
    """From the top of the page: the skip link, the field, and Enter."""
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_label("Tool").focus()
    page.keyboard.type("box.trusted")
    page.keyboard.press("Enter")
    page.wait_for_load_state()

    expect(page.locator("#explanation .badge").first).to_have_text("Refused")
    expect(page.locator("#as-option")).to_have_text("--trusted")


@pytest.mark.full
def test_use_of_limits_is_loaded_again(page: Page, served: ServedConsole) -> None:
    page.goto(f"{served.url}/policy")
    used = page.locator("#limits tbody tr").first
    before = int(used.locator("td").first.inner_text())
    served.engine.call("box.hash", ["abcdef"])

    expect(used.locator("td").first).to_have_text(str(before + 1))


@pytest.mark.full
def test_policies_are_compared_without_javascript(served: ServedConsole, open_page: PageOpener) -> None:
    """TOML is entered in the form; the page lists the tools that differ."""
    context = open_page.new_context(java_script_enabled=False)
    page = open_page(served.link(), context)
    page.goto(f"{served.url}/policy/compare")
    page.locator("#b").select_option("text")
    page.locator("summary").nth(1).click()
    page.locator("#b-text").fill("policy.deny = ['box.delete']")
    page.get_by_role("button", name="Compare").click()

    row = page.get_by_role("row", name="box.delete")
    expect(row).to_contain_text("never runs")
    expect(page.locator("#b-text")).to_have_value("policy.deny = ['box.delete']")


@pytest.mark.full
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_of_the_policy_are_accessible(theme: str, served: ServedConsole, open_page: PageOpener) -> None:
    """In both themes, and without horizontal scrolling of the page at a width of 320 pixels."""
    context = open_page.new_context(theme=theme, width=320)  # type: ignore[arg-type]
    page = open_page(served.link(), context)
    page.wait_for_url(lambda url: "/enter" not in url)
    found = {}
    for path in ("", "/call?tool=box.read", "/findings", "/compare?a=current&b=default"):
        page.goto(f"{served.url}/policy{path}")
        found[path] = [*accessibility_violations(page), *(["scrolls"] if has_horizontal_scrolling(page) else [])]

    assert {path: each for path, each in found.items() if each} == {}
