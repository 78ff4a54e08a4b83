"""A chat in a real browser, with a real model server on this machine."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browsers import PageOpener, accessibility_violations
from tests.console.approvals.desks import until
from tests.console.chat.conftest import MakeChat
from tests.llm.server import ModelServer, asks, call, drips, hangs, says, status

from neuroscript import Approval
from neuroscript.console import User

PAYLOAD = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def send(page: Page, text: str) -> None:
    """Send a message."""
    page.get_by_label("Your message").fill(text)
    page.get_by_role("button", name="Send").click()


def test_repaired_call_and_answer_are_inline(make_chat: MakeChat, server: ModelServer, open_page: PageOpener) -> None:
    """The page shows the call, what was repaired, the result and the answer as text."""
    server.script(asks(call("shop__price", {"item": "tea", "count": "2"})), says(f"It costs 3.\n\nBye {PAYLOAD}"))
    place = make_chat()
    page = place.page(open_page)
    send(page, "What do two teas cost?")

    expect(page.locator(".chat-text p")).to_have_text(["It costs 3.", f"Bye {PAYLOAD}"])
    expect(page.locator(".chat-call")).to_contain_text("shop.price")
    expect(page.locator(".chat-repairs")).to_have_text("repaired count: str → int")
    expect(page.locator(".chat-call pre").last).to_have_text("3.0")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(page.locator("#chat-controls")).to_contain_text("20 tokens in, 6 out")
    assert ([("tea", 2)], []) == (place.ran, accessibility_violations(page))


@pytest.mark.full
def test_page_is_the_same_after_loading_it_again(
    make_chat: MakeChat, server: ModelServer, open_page: PageOpener
) -> None:
    """While the model answers, a page that is loaded again shows everything once, and follows on."""
    server.script(asks(call("shop__price", {"item": "tea"}), text="I look. "), drips(0.05), says("end"))
    page = make_chat().page(open_page)
    send(page, "Go on")
    expect(page.locator(".chat-text").nth(1)).to_contain_text("word word")
    page.reload()

    expect(page.locator(".chat-text").nth(1)).to_contain_text("word word")
    assert (2, 1) == (page.locator(".chat-text").count(), page.locator(".chat-call").count())
    length = len(page.locator(".chat-text").nth(1).inner_text())
    until(lambda: len(page.locator(".chat-text").nth(1).inner_text()) > length)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".notice.bad")).to_have_text("The turn was stopped.")


@pytest.mark.full
def test_stopped_turn_keeps_its_completed_calls(
    make_chat: MakeChat, server: ModelServer, open_page: PageOpener
) -> None:
    """The next turn sends them to the model, because their effects remain."""
    server.script(asks(call("shop__price", {"item": "tea"})), hangs(60.0), says("done"))
    page = make_chat().page(open_page)
    send(page, "first")
    expect(page.locator(".badge.ok")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".notice.bad")).to_have_text("The turn was stopped.")
    send(page, "second")
    expect(page.locator(".chat-text")).to_have_text("done")

    roles = [each["role"] for each in server.requests[-1].body["messages"]]
    assert ["user", "assistant", "tool", "user"] == roles


@pytest.mark.full
def test_conversation_has_turns_and_can_begin_anew(
    make_chat: MakeChat, server: ModelServer, open_page: PageOpener
) -> None:
    """Each turn reads the former ones; a new conversation reads nothing, and keeps the variables of the session."""
    server.script(asks(call("shop__remember", {"name": "Ada"})), says("one"), says("two"), says("three"))
    place = make_chat(run_effects=True)
    page = place.page(open_page)
    for number, text in enumerate(("one", "two"), 1):
        send(page, f"message {number}")
        expect(page.locator(".chat-text").last).to_have_text(text)
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".chat-exchange")).to_have_count(0)
    page.get_by_label("Your message").fill("message 3")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".chat-text")).to_have_text("three")

    counts = [len(each.body["messages"]) for each in server.requests]
    (visitor,) = place.served.app.console.visitors
    assert ([1, 3, 5, 1], "Ada") == (counts, visitor.session.memory.variables.get("name", ""))


@pytest.mark.full
def test_approval_in_place(make_chat: MakeChat, server: ModelServer, open_page: PageOpener) -> None:
    """The card is inline; the approved call runs, and the model answers."""
    server.script(asks(call("shop__look", {"item": PAYLOAD})), says("I saw it."))
    place = make_chat()
    page = place.page(open_page)
    send(page, "Look")
    card = page.locator(".chat-call .approval")
    expect(card).to_contain_text(PAYLOAD)
    expect(page.locator(".chat-call .badge")).to_have_text("waits for approval")
    assert [] == accessibility_violations(page)
    card.get_by_role("button", name="Approve once").click()

    expect(page.locator(".chat-text")).to_have_text("I saw it.")
    expect(page).to_have_title("Chat · NeuroScript")
    expect(page.locator(".chat-call .notice")).to_contain_text("local approved this call")
    expect(page.locator(".chat-call .code")).to_have_text(f"<b>saw</b> {PAYLOAD}")
    assert [PAYLOAD] == place.ran


@pytest.mark.full
def test_another_user_rejects_a_call_of_a_chat(make_chat: MakeChat, server: ModelServer, open_page: PageOpener) -> None:
    """An operator waits; the page says who rejected the call, and the model reads it."""
    server.script(asks(call("shop__look", {"item": "tea"})), says("Sorry."))
    place = make_chat()
    page = place.page(open_page, User("Olga", "operator"))
    send(page, "Look")
    expect(page.locator(".chat-call")).to_contain_text("Only a user with the role approver can answer")
    (waiting,) = place.inbox.waiting
    place.inbox.answer(waiting.id, Approval.reject("not today"), digest=waiting.request.digest, by="Ada")

    expect(page.locator(".chat-text")).to_have_text("Sorry.")
    expect(page.locator(".chat-call")).to_contain_text("Ada rejected this call at")
    expect(page.locator(".chat-call .badge")).to_have_text("refused")
    expect(page.locator(".chat-call .code")).to_contain_text("policy.rejected: was not approved: not today")
    assert [] == place.ran


@pytest.mark.full
def test_tool_with_effects_is_not_offered(make_chat: MakeChat, server: ModelServer, open_page: PageOpener) -> None:
    """Without ``run_effects`` the model may call only tools without effects; a call of another one is refused."""
    server.script(asks(call("shop__order", {"item": "tea"})), says("I cannot."))
    place = make_chat()
    page = place.page(open_page)
    send(page, "Order tea")

    expect(page.locator(".chat-text")).to_have_text("I cannot.")
    expect(page.locator(".chat-call .badge")).to_have_text("refused")
    expect(page.locator(".chat-call")).to_contain_text("start the console with --run-effects")
    expect(page.locator(".chat-about")).to_contain_text(
        "may call 4 tools. This console runs only tools that declare that they change nothing"
    )
    assert [] == place.ran
    offered = {each["function"]["name"] for each in server.requests[0].body["tools"]}
    assert "shop__order" not in offered


@pytest.mark.full
def test_secret_argument_is_never_shown(make_chat: MakeChat, server: ModelServer, open_page: PageOpener) -> None:
    """Neither in the call, nor in its result, nor in what the model repeats."""
    server.script(
        asks(call("shop__login", {"user": "ada", "password": "hunter2-canary"})), says("The password is hunter2-canary")
    )
    place = make_chat()
    page = place.page(open_page)
    send(page, "Sign in")

    expect(page.locator(".chat-text")).to_contain_text("The password is")
    assert [("ada", "hunter2-canary")] == place.ran
    seen = page.content()
    page.reload()
    (visitor,) = place.served.app.console.visitors
    events = "".join(event.html for each in visitor.activities for event in each.events)
    assert "hunter2-canary" not in seen + page.content() + events


@pytest.mark.full
def test_failing_model_is_reported(make_chat: MakeChat, server: ModelServer, open_page: PageOpener) -> None:
    """The page says why, and the next message works."""
    server.script(status(401), says("Hello"))
    page = make_chat().page(open_page)
    send(page, "one")
    expect(page.locator(".notice.bad")).to_contain_text("llm.")
    send(page, "two")

    expect(page.locator(".chat-text")).to_have_text("Hello")


@pytest.mark.full
def test_chat_without_javascript(make_chat: MakeChat, server: ModelServer, open_page: PageOpener) -> None:
    """The page is loaded again to see what has arrived."""
    server.script(asks(call("shop__look", {"item": "tea"})), says("I saw it."))
    place = make_chat()
    page = place.page(open_page, java_script_enabled=False)
    send(page, "Look")
    until(lambda: place.inbox.waiting)
    page.get_by_role("link", name="Load this page again").click()
    page.get_by_role("button", name="Approve once").click()
    (visitor,) = place.served.app.console.visitors
    until(lambda: all(each.finished for each in visitor.activities))
    page.reload()

    expect(page.locator(".chat-text")).to_have_text("I saw it.")
    expect(page.get_by_role("button", name="Send")).to_be_visible()


@pytest.mark.full
@pytest.mark.parametrize("options", [{"theme": "dark"}, {"width": 320}], ids=["dark", "narrow"])
def test_chat_is_accessible(options: Any, make_chat: MakeChat, server: ModelServer, open_page: PageOpener) -> None:
    """axe finds nothing in the other theme, and on a narrow page."""
    from tests.browsers import has_horizontal_scrolling

    server.script(asks(call("shop__price", {"item": "x" * 300, "count": "2"})), says("word " * 50))
    page = make_chat().page(open_page, **options)
    problems = accessibility_violations(page)
    send(page, "Go " + "on" * 200)
    expect(page.locator(".chat-text")).to_contain_text("word")

    assert ([], [], False) == (problems, accessibility_violations(page), has_horizontal_scrolling(page))
