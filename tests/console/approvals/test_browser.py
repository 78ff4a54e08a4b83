"""Approvals in a real browser."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browsers import PageOpener, accessibility_violations
from tests.console.approvals.conftest import ServedDesk
from tests.console.approvals.desks import in_thread, until

from neuroscript import Approval
from neuroscript.console import User

ADA, BOB = User("Ada", "approver"), User("Bob", "approver")


def inbox_page(desk: ServedDesk, open_page: PageOpener, user: User | None = None, **options: Any) -> Page:
    """Return the page of approvals in a browser of its own."""
    context = open_page.new_context(**options)
    page = open_page(desk.served.link(user), context)
    page.goto(f"{desk.served.url}/approvals")
    return page


def card(page: Page, text: str = "desk.") -> Any:
    """Return the card that contains a string."""
    return page.locator(".approval", has_text=text)


def test_first_of_two_browsers_decides(desk: ServedDesk, open_page: PageOpener) -> None:
    """The other one learns who approved, in place, and its buttons no longer work."""
    call = desk.call("desk.delete", "a")
    desk.waiting()
    ada, bob = inbox_page(desk, open_page, ADA), inbox_page(desk, open_page, BOB)
    before = card(bob).bounding_box()
    ada.get_by_role("button", name="Approve once").click()

    assert call.result().value == "deleted a"
    expect(card(bob)).to_contain_text("Ada approved this call at")
    expect(bob.get_by_role("button", name="Approve once")).to_be_disabled()
    expect(bob).to_have_title("Approvals · NeuroScript")
    assert card(bob).bounding_box() == before
    expect(ada.locator(".notice")).to_contain_text("Ada approved this call at")


@pytest.mark.full
def test_late_answer_says_who_was_first(desk: ServedDesk, open_page: PageOpener) -> None:
    """Without JavaScript the second browser still shows the form, and its answer is refused with the reason."""
    call = desk.call("desk.delete", "a")
    (waiting,) = desk.waiting()
    bob = inbox_page(desk, open_page, BOB, java_script_enabled=False)
    desk.answer(waiting, Approval.reject("in use"), by="Ada")
    call.result()
    bob.get_by_role("button", name="Approve once").click()

    expect(bob.get_by_role("heading", level=1)).to_have_text("Your answer came too late")
    expect(bob.locator(".panel")).to_contain_text("Ada rejected this call at")
    expect(bob.locator(".panel")).to_contain_text("in use")
    assert [] == desk.ran
    open_page.take_problems()  # the browser logs the status 409


@pytest.mark.full
def test_new_requests_are_announced_and_not_inserted(desk: ServedDesk, open_page: PageOpener) -> None:
    """The list does not move under the pointer; a link above it loads the new ones."""
    first = desk.call("desk.delete", "first")
    desk.waiting()
    page = inbox_page(desk, open_page)
    before = card(page).bounding_box()
    second = desk.call("desk.delete", "second")

    news = page.get_by_role("link", name="Show 1 new request")
    expect(news).to_be_visible()
    expect(page).to_have_title("(2) Approvals · NeuroScript")
    expect(page.locator("#announcer")).to_have_text("desk.delete waits for an approval.")
    assert (card(page).bounding_box(), card(page).count()) == (before, 1)
    news.click()
    expect(card(page)).to_have_count(2)
    expect(card(page).first).to_contain_text("second")
    for _ in range(2):
        page.get_by_role("button", name="Approve once").first.click()
        page.wait_for_url("**done=**")
    assert (first.result().ok, second.result().ok) == (True, True)


@pytest.mark.full
def test_expired_request_says_so(desk: ServedDesk, open_page: PageOpener) -> None:
    """The card stays where it is, without working buttons."""
    page = inbox_page(desk, open_page)
    for seconds in (2.0, 8.0, 32.0):  # a busy machine may not show the page before the first request expires
        desk.inbox.timeout_seconds = seconds
        call = desk.call("desk.delete", "a")
        desk.waiting()
        page.reload()
        if card(page).count():
            break
        call.result()

    expect(card(page)).to_contain_text("This request expired at", timeout=60_000)
    expect(page.get_by_role("button", name="Reject", exact=True)).to_be_disabled()
    assert f"no user answered within {seconds:g} s" in str(call.result().error)


@pytest.mark.full
def test_withdrawn_request_says_so(desk: ServedDesk, open_page: PageOpener) -> None:
    """The session of the call was closed meanwhile."""
    session = desk.engine.session()
    call = in_thread(lambda: session.execute({"name": "desk.delete", "arguments": ["a"]}))
    desk.waiting()
    page = inbox_page(desk, open_page)
    session.close()

    expect(card(page)).to_contain_text("This request was withdrawn at")
    error = call.result().error
    assert (error.code, error.retry) == ("engine.closed", "never")


@pytest.mark.full
def test_arguments_are_checked_while_typing_and_used(desk: ServedDesk, open_page: PageOpener) -> None:
    """The call runs with what the user wrote; the secret argument is never in the page, and stays unchanged."""
    call = desk.call("desk.send", "eve@example.com", "hunter2")
    desk.waiting()
    page = inbox_page(desk, open_page)
    page.get_by_text("Change the arguments").click()
    arguments = page.get_by_label("Arguments by name, as JSON")
    arguments.fill('{"to": 5')
    expect(page.locator(".approval-check")).to_contain_text("is not JSON")
    arguments.fill('{"to": "ada@example.com"}')
    expect(page.locator(".approval-check")).to_contain_text("Valid. Changed: to.")
    assert "hunter2" not in page.content()
    page.get_by_role("button", name="Approve with these arguments").click()

    assert call.result().value == "sent to ada@example.com"
    assert [("ada@example.com", "hunter2")] == desk.ran


@pytest.mark.full
def test_arguments_are_changed_in_a_form(desk: ServedDesk, open_page: PageOpener) -> None:
    """It has the fields of the tool with the values of the request, and shows problems at once."""
    call = desk.call("desk.archive", ["a", "b"], 3)
    desk.waiting()
    page = inbox_page(desk, open_page)
    page.get_by_text("Change the arguments").click()
    page.get_by_role("link", name="Change them in a form").click()
    expect(page.locator("#check")).to_contain_text("nothing has changed yet")
    page.get_by_label("days").first.fill("soon")
    expect(page.locator("#check")).to_contain_text("1 problem")
    page.get_by_label("days").first.fill("7")
    page.get_by_role("button", name="Remove").first.click()
    expect(page.locator("#check")).to_contain_text("Valid. Changed: paths, days.")
    assert [] == accessibility_violations(page)
    page.get_by_role("button", name="Approve with these arguments").click()

    assert call.result().value == 1
    assert [(["b"], 7)] == desk.ran
    expect(page.locator(".notice")).to_contain_text("approved this call with other arguments")


@pytest.mark.full
def test_form_without_javascript_keeps_secrets(desk: ServedDesk, open_page: PageOpener) -> None:
    """The form has no field for the secret argument, which stays unchanged."""
    call = desk.call("desk.send", "eve@example.com", "hunter2")
    (waiting,) = desk.waiting()
    page = inbox_page(desk, open_page, java_script_enabled=False)
    page.goto(f"{desk.served.url}/approvals/live/{waiting.id}/change")
    page.get_by_label("to").first.fill("ada@example.com")
    page.get_by_role("button", name="Check", exact=True).last.click()
    expect(page.locator("#check")).to_contain_text("Valid. Changed: to.")
    assert ([], "hunter2" in page.content()) == (desk.ran, False)
    page.get_by_role("button", name="Approve with these arguments").click()

    assert call.result().value == "sent to ada@example.com"
    assert [("ada@example.com", "hunter2")] == desk.ran


@pytest.mark.full
def test_rejection_with_a_reason(desk: ServedDesk, open_page: PageOpener) -> None:
    """Enter in the field of the reason rejects the call, and never approves it."""
    call = desk.call("desk.delete", "a")
    desk.waiting()
    page = inbox_page(desk, open_page, ADA)
    page.get_by_label("Reason").fill("it is <in> use")
    page.keyboard.press("Enter")

    assert "desk.delete: was not approved: it is <in> use" == str(call.result().error)
    expect(page.locator(".notice")).to_contain_text("it is <in> use")
    assert [] == desk.ran


@pytest.mark.full
def test_keys_select_and_only_enter_answers(desk: ServedDesk, open_page: PageOpener) -> None:
    """A stray key answers nothing, neither without a selection nor while the user types."""
    call = desk.call("desk.delete", "a")
    desk.waiting()
    page = inbox_page(desk, open_page)
    for key in "asmrxa":
        page.keyboard.press(key)
    expect(page.locator("#announcer")).to_have_text("Select a request with j first.")
    page.keyboard.press("?")
    expect(page.get_by_text("A key alone never answers a call.")).to_be_visible()
    page.keyboard.press("j")
    expect(card(page)).to_be_focused()
    page.keyboard.press("r")
    page.keyboard.type("aaa sss xxx")
    expect(page.get_by_label("Reason")).to_have_value("aaa sss xxx")
    page.get_by_label("Reason").blur()
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Approve once")).to_be_focused()
    expect(page.locator("#announcer")).to_have_text("Approve once: press Enter to confirm.")
    assert ([], 1) == (desk.ran, len(desk.inbox))
    page.keyboard.press("Enter")

    assert call.result().value == "deleted a"


def test_approval_without_javascript(desk: ServedDesk, open_page: PageOpener) -> None:
    """Forms alone approve a call and change its arguments."""
    call = desk.call("desk.delete", "a")
    desk.waiting()
    page = inbox_page(desk, open_page, java_script_enabled=False)
    page.get_by_text("Change the arguments").click()
    page.get_by_label("Arguments by name, as JSON").fill('{"path": []}')
    page.get_by_role("button", name="Approve with these arguments").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was approved.")
    open_page.take_problems()  # the browser logs the status 422
    page.get_by_role("button", name="Approve once").click()

    assert call.result().value == "deleted a"
    expect(page.locator(".notice")).to_contain_text("approved this call at")


@pytest.mark.full
def test_stored_call_of_another_process(desk: ServedDesk, open_page: PageOpener) -> None:
    """It appears while the page is open, runs once, and its result is text; a changed file says so."""
    page = inbox_page(desk, open_page)
    path = desk.suspend("desk.delete", "<img src=x onerror=alert(1)>")
    page.get_by_role("link", name="Show 1 new request").click()
    page.get_by_role("button", name="Approve once").click()
    expect(page.locator("pre")).to_have_text("deleted <img src=x onerror=alert(1)>")
    assert not path.exists()

    changed = desk.suspend("desk.delete", "a")
    page.goto(f"{desk.served.url}/approvals")
    data = json.loads(changed.read_text())
    changed.write_text(json.dumps({**data, "arguments": {"path": "etc", "force": True}}))
    page.get_by_role("button", name="Approve once").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing was approved")
    expect(page.locator("main")).to_contain_text("these have changed: digest")
    assert 1 == len(desk.ran)
    open_page.take_problems()  # the browser logs the status 409


@pytest.mark.full
def test_stored_call_that_was_answered_elsewhere(desk: ServedDesk, open_page: PageOpener) -> None:
    """Its card says so while the page is open."""
    path = desk.suspend("desk.delete", "a")
    page = inbox_page(desk, open_page)
    path.unlink()

    expect(card(page)).to_contain_text("it was answered elsewhere")


NOTIFICATIONS = """
window.notifications = [];
const Real = window.Notification;
window.Notification = class {
  constructor(title, options) { window.notifications.push(`${title}: ${options.body}`); }
  static get permission() { return window.asked ? "granted" : "default"; }
  static async requestPermission() { window.asked = true; return "granted"; }
};
Object.defineProperty(document, "hidden", { get: () => window.isHidden === true });
"""
"""A browser without windows shows no notifications, so this collects them."""


@pytest.mark.full
def test_notification_is_asked_for_by_a_button(desk: ServedDesk, open_page: PageOpener) -> None:
    """A notification names the tool of a new request, and nothing of its arguments."""
    context = open_page.new_context()
    context.add_init_script(NOTIFICATIONS)
    page = open_page(desk.served.link(), context)
    page.goto(f"{desk.served.url}/approvals")
    assert not page.evaluate("window.asked === true")
    page.get_by_role("button", name="Notify me of new requests").click()
    page.evaluate("window.isHidden = true; document.dispatchEvent(new Event('visibilitychange'))")
    call = desk.call("desk.delete", "private")
    until(lambda: page.evaluate("window.notifications.length") == 1)

    assert page.evaluate("window.notifications") == ["A call waits for approval: desk.delete"]
    desk.answer(desk.waiting()[0], Approval.reject())
    call.result()


@pytest.mark.full
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_are_accessible(theme: Any, desk: ServedDesk, open_page: PageOpener) -> None:
    """axe finds nothing on the list, on a page of one request, and after an end."""
    calls = [desk.call("desk.delete", "a"), desk.call("desk.send", "a", "b")]
    desk.suspend("desk.delete", "x" * 2000)
    first, second = desk.waiting(2)
    page = inbox_page(desk, open_page, theme=theme)
    desk.answer(first, Approval.reject())
    expect(page.locator(".approval.ended")).to_have_count(1)
    problems = accessibility_violations(page)
    page.goto(f"{desk.served.url}/approvals/live/{second.id}")
    page.get_by_text("Change the arguments").click()
    problems += accessibility_violations(page)
    desk.answer(second, Approval.reject())

    assert [] == problems
    for call in calls:
        call.result()


@pytest.mark.full
def test_users_see_who_answered_a_stored_call(desk: ServedDesk, open_page: PageOpener) -> None:
    """On the card of the other browser, and after an answer that came too late."""
    desk.suspend("desk.delete", "a")
    ada, bob = inbox_page(desk, open_page, ADA), inbox_page(desk, open_page, BOB)
    late = inbox_page(desk, open_page, BOB, java_script_enabled=False)
    ada.get_by_role("button", name="Approve once").click()
    expect(ada.locator("pre")).to_have_text("deleted a")
    expect(card(bob)).to_contain_text("Ada approved this call at")
    late.get_by_role("button", name="Approve once").click()

    expect(late.locator(".panel")).to_contain_text("Ada approved this call at")
    assert [("a", False)] == desk.ran
    open_page.take_problems()  # the browser logs the status 409
