"""The pages of tools in a real browser."""

from __future__ import annotations

import datetime
import re
from time import monotonic, sleep

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browsers import PageOpener, accessibility_violations
from tests.console.conftest import ServedConsole
from tests.console.tools.workshop import SECRET, Workshop


@pytest.fixture
def page(signed_in: Page) -> Page:
    """Return a page that is signed in."""
    return signed_in


def open_tool(page: Page, console: ServedConsole, name: str) -> None:
    """Open the page of a tool."""
    page.goto(f"{console.url}/tools/{name}")


def box(page: Page, label: str) -> Locator:
    """Return the field for text whose label begins with a name."""
    return page.get_by_role("textbox", name=re.compile(f"^{label} "))


def names_in(page: Page) -> list[str]:
    """Return the names of the tools in the list."""
    return page.locator("#results tbody th a").all_inner_texts()


@pytest.mark.full
def test_search_as_you_type_changes_list_and_address(page: Page, console: ServedConsole) -> None:
    """The list follows each key, without a page load, and the address can be shared."""
    page.goto(f"{console.url}/tools")
    page.evaluate("window.notReloaded = true")
    page.keyboard.press("/")
    page.keyboard.type("passw")
    page.keyboard.type("ord")
    expect(page.locator("#results tbody tr")).to_have_count(1)

    assert names_in(page) == ["shop.login"]
    assert page.url.endswith("/tools?q=password")
    assert page.evaluate("window.notReloaded") is True
    page.reload()
    assert names_in(page) == ["shop.login"]


@pytest.mark.full
def test_filter_and_back_button(page: Page, console: ServedConsole) -> None:
    """After looking at a tool, the back button shows the same filtered list."""
    page.goto(f"{console.url}/tools")
    page.get_by_label("Decision").select_option("refused")
    expect(page.locator("#results tbody tr")).to_have_count(2)
    page.get_by_role("link", name="shop.denied").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("shop.denied")
    page.go_back()

    expect(page.locator("#results tbody tr")).to_have_count(2)
    expect(page.get_by_label("Decision")).to_have_value("refused")


def test_nested_form_is_filled_and_run(page: Page, console: ServedConsole, workshop: Workshop) -> None:
    """Items and entries are added in place, and the tool receives what was entered."""
    open_tool(page, console, "shop.ship")
    box(page, "street").fill("Main")
    box(page, "city").fill("Rome")
    box(page, "weight").fill("2.5")
    for text in ("red", "blue"):
        page.get_by_role("button", name="Add an item to tags").click()
        expect(page.locator(":focus")).to_have_attribute("name", re.compile(r"arg\.parcel\.tags\.\d"))
        page.keyboard.type(text)
    page.get_by_role("button", name="Remove Item 1").click()
    expect(box(page, "Item 2")).to_have_count(0)
    page.get_by_role("combobox", name="express").select_option("true")
    page.get_by_role("button", name="Add an entry to notes").click()
    box(page, "Key").fill("door")
    box(page, "Value").fill("ring")
    expect(page.locator("#preview")).to_contain_text("would run")
    page.get_by_role("button", name="Run").click()

    expect(page.locator("#outcome")).to_contain_text("done")
    ((parcel, express, notes),) = workshop.received
    assert (parcel.to, parcel.tags, parcel.weight) == ({"street": "Main", "city": "Rome"}, ["blue"], 2.5)
    assert (express, notes) == (True, {"door": "ring"})


@pytest.mark.full
def test_repair_is_shown_while_typing(page: Page, console: ServedConsole) -> None:
    """The field and the preview show from which type to which type a value is converted."""
    open_tool(page, console, "shop.price")
    box(page, "item").fill("pen")
    box(page, "count").fill("2.0")

    expect(page.locator("#preview .repairs")).to_have_text("count float → int")
    expect(page.locator('.live[data-field="count"] .note')).to_have_text("float → int")


@pytest.mark.full
def test_problem_is_shown_at_its_field(page: Page, console: ServedConsole) -> None:
    """The field is marked, described by the problem, and the summary links to it."""
    open_tool(page, console, "shop.price")
    box(page, "item").fill("pen")
    count = page.locator('[name="arg.count"]')
    count.fill("many")
    expect(count).to_have_attribute("aria-invalid", "true")
    described = str(count.get_attribute("aria-describedby")).split()
    page.locator("#preview").get_by_role("link", name="count").click()

    assert "f-arg.count-error" in described
    expect(page.locator('[id="f-arg.count-error"]')).to_contain_text("expected int")
    expect(page.locator(":target")).to_have_attribute("name", "arg.count")
    count.fill("2")
    expect(count).not_to_have_attribute("aria-invalid", "true")


@pytest.mark.full
def test_json_and_fields_stay_in_sync(page: Page, console: ServedConsole, workshop: Workshop) -> None:
    """Editing one changes the other; the one that was edited last is sent."""
    open_tool(page, console, "shop.price")
    box(page, "item").fill("pen")
    page.get_by_text("The same arguments as JSON").click()
    json = page.get_by_label("Arguments as JSON")
    expect(json).to_have_value('{\n  "item": "pen"\n}')
    json.fill('{"item": "ink", "count": 4}')
    expect(page.locator('[name="arg.count"]')).to_have_value("4")
    expect(page.locator('[name="arg.item"]')).to_have_value("ink")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#outcome")).to_contain_text("done")

    assert workshop.received == [("ink", 4, None, None)]


def test_stream_items_progress_and_log_arrive_one_by_one(
    page: Page, console: ServedConsole, workshop: Workshop
) -> None:
    """The first items are shown before the tool ends, and a reload in between shows each of them once."""
    open_tool(page, console, "shop.count")
    box(page, "to").fill("4")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#items li")).to_have_count(2)
    expect(page.locator("#messages li")).to_have_count(2)
    expect(page.locator("#outcome .running")).to_be_visible()
    page.reload()
    expect(page.locator("#items li")).to_have_count(2)
    workshop.go.set()

    expect(page.locator("#items li")).to_have_count(4)
    expect(page.locator("#outcome")).to_contain_text("done")
    assert page.locator("#items li").all_inner_texts() == [f"number {number}" for number in (1, 2, 3, 4)]
    assert page.locator("#messages li").last.inner_text().endswith("counted 4")


@pytest.mark.full
def test_running_call_is_cancelled(page: Page, console: ServedConsole, workshop: Workshop) -> None:
    """The button stops the tool, and the page says that it was cancelled."""
    open_tool(page, console, "shop.wait")
    page.get_by_role("button", name="Run").click()
    page.get_by_role("button", name="Cancel").click()

    expect(page.locator("#outcome")).to_contain_text("cancelled")
    end = monotonic() + 30
    while not workshop.ended and monotonic() < end:
        sleep(0.01)
    assert workshop.ended == ["wait"]


@pytest.mark.full
def test_secret_never_comes_back(page: Page, console: ServedConsole, workshop: Workshop) -> None:
    """The password stays in its field while the form changes, and no response contains it."""
    responses: list[str] = []
    page.on("response", lambda response: responses.append(response.url))
    bodies: list[str] = []
    page.on("requestfinished", lambda request: bodies.append(request.response().text()))  # type: ignore[union-attr]
    open_tool(page, console, "shop.login")
    box(page, "user").fill("ada")
    page.locator('[name="arg.password"]').fill(SECRET)
    page.get_by_text("The same arguments as JSON").click()
    expect(page.get_by_label("Arguments as JSON")).to_have_value(re.compile(r'"\$secret": "arg.password"'))
    page.get_by_label("user: how the value is read").select_option("json")
    page.get_by_label("user: how the value is read").select_option("")
    expect(page.locator("#preview")).to_contain_text("[secret]")
    expect(page.locator('[name="arg.password"]')).to_have_value(SECRET)
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#outcome")).to_contain_text("done")
    page.get_by_role("link", name="Change the arguments").click()
    expect(page.locator('[name="arg.password"]')).to_have_value("")

    assert workshop.received[-1] == ("ada", SECRET)
    assert len(bodies) > 5
    assert [body for body in bodies if SECRET in body] == []


@pytest.mark.full
def test_picture_in_a_result_is_shown(page: Page, console: ServedConsole) -> None:
    """It is decoded, and what the result is as text is one link away."""
    open_tool(page, console, "shop.picture")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#outcome")).to_contain_text("bytes")
    picture = page.locator("#outcome img")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 5

    page.get_by_role("link", name="Text", exact=True).click()
    expect(page.locator("#result-text")).to_contain_text("bytes")


@pytest.mark.full
def test_keyboard_alone_finds_and_runs_a_tool(page: Page, console: ServedConsole, workshop: Workshop) -> None:
    """From the list to the result without a pointer."""
    page.goto(f"{console.url}/tools")
    page.keyboard.press("/")
    page.keyboard.type("shop.price")
    expect(page.locator("#results tbody tr").first).to_contain_text("shop.price")
    page.locator("#results tbody th a").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("shop.price")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "arg.item":
            break
    page.keyboard.type("pen")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#outcome")).to_contain_text("done")

    assert workshop.received == [("pen", 1, None, None)]


def test_form_works_without_javascript(console: ServedConsole, open_page: PageOpener, workshop: Workshop) -> None:
    """Items are added and the tool is run by submitting the form; Enter in a field does not remove an item."""
    context = open_page.new_context(java_script_enabled=False)
    page = open_page(console.link(), context)
    page.goto(f"{console.url}/tools/shop.ship")
    box(page, "street").fill("Main")
    box(page, "city").fill("Rome")
    box(page, "weight").fill("1")
    page.get_by_role("button", name="Add an item to tags").click()
    box(page, "Item 1").fill("red")
    box(page, "weight").press("Enter")
    expect(box(page, "Item 1")).to_have_value("red")
    page.get_by_role("combobox", name="express").select_option("false")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Call of shop.ship")

    expect(page.locator("#outcome")).to_contain_text("done")
    assert workshop.received[0][0].tags == ["red"]


@pytest.mark.full
def test_example_of_the_page_fills_the_form(page: Page, console: ServedConsole) -> None:
    """A finished call offers its arguments again."""
    open_tool(page, console, "shop.price")
    box(page, "item").fill("pen")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#outcome")).to_contain_text("done")
    page.get_by_role("link", name="Change the arguments").click()

    expect(page.locator('[name="arg.item"]')).to_have_value("pen")


@pytest.mark.full
def test_file_and_date_are_entered(page: Page, console: ServedConsole, workshop: Workshop) -> None:
    """A file is uploaded as bytes, and stays chosen while the form changes; a date has the control of the browser."""
    open_tool(page, console, "shop.measure")
    page.locator('[name="arg.data.$file"]').set_input_files(
        {"name": "data.bin", "mimeType": "application/octet-stream", "buffer": b"\x00\xff\x10"}
    )
    day = page.locator('[name="arg.day"]')
    assert day.get_attribute("type") == "date"
    day.fill("2026-01-31")
    expect(page.locator("#preview .values")).to_contain_text("2026-01-31")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#outcome")).to_contain_text("3 bytes")

    assert workshop.received == [(b"\x00\xff\x10", datetime.date(2026, 1, 31))]


@pytest.mark.full
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_are_accessible(console: ServedConsole, open_page: PageOpener, theme: str) -> None:
    """axe finds nothing on the list, a nested form, a form with problems, a result and the session."""
    context = open_page.new_context(theme=theme)  # type: ignore[arg-type]
    page = open_page(console.link(), context)
    for path in ("/tools", "/tools/shop.ship", "/tools/shop.login", "/tools/shop.order", "/session"):
        page.goto(f"{console.url}{path}")
        assert accessibility_violations(page) == [], path
    page.goto(f"{console.url}/tools/shop.ship")
    page.get_by_role("button", name="Add an item to tags").click()
    box(page, "weight").fill("heavy")
    expect(page.locator("#preview .notice")).to_be_visible()
    assert accessibility_violations(page) == []
    open_tool(page, console, "shop.rows")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#outcome")).to_contain_text("done")
    assert accessibility_violations(page) == []
    page.get_by_role("link", name="Tree").click()
    assert accessibility_violations(page) == []
