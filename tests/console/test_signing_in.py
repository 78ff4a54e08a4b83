"""Signing in: with the link of the command, with a link for another browser, and with the token of a user."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.browsers import PageOpener
from tests.console.conftest import ServedConsole, small_tools

from neuroscript import Engine
from neuroscript.console import User, app

USERS = (User("vera", "viewer", "v" * 20), User("olga", "operator", "o" * 20))


def test_command_prints_a_link_that_works_once(cli_console: Callable[..., Any], open_page: PageOpener) -> None:
    """The browser follows it to the console; another browser learns why it cannot."""
    _, link = cli_console("-p", "no:neuroscript-git")
    page = open_page(link)
    page.wait_for_url(re.compile(r"^(?!.*/enter)"))
    expect(page.get_by_role("link", name="local")).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name="local")).to_be_visible()
    other = open_page(link, open_page.new_context())

    expect(other.get_by_role("heading", level=1)).to_have_text("The link is no longer valid")
    assert open_page.take_problems() == [
        "error: Failed to load resource: the server responded with a status of 403 (Forbidden)"
    ]


@pytest.mark.full
def test_link_for_another_browser(signed_in: Page, open_page: PageOpener) -> None:
    """It signs in as the same user."""
    signed_in.get_by_role("link", name="local").click()
    signed_in.get_by_role("button", name="Create a link for another browser").click()
    other = open_page(signed_in.locator("#link").inner_text(), open_page.new_context())

    expect(other.get_by_role("link", name="local · approver")).to_be_visible()
    assert signed_in.context.cookies() != other.context.cookies()


@pytest.mark.full
@pytest.mark.parametrize("make_app", [lambda: app(Engine(plugins=(), toolsets=[small_tools()]), users=USERS)], ids=[""])
def test_user_signs_in_with_a_token_and_signs_out(console: ServedConsole, open_page: PageOpener) -> None:
    """A wrong token is refused at the field; the cookie of a browser that signed out is worthless."""
    page = open_page(f"{console.url}/")
    page.get_by_label("Your token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("This token is not valid.")).to_be_visible()
    page.get_by_label("Your token").fill(USERS[1].token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="olga · operator").click()
    (cookie,) = page.context.cookies()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You are signed out")
    response = httpx.get(f"{console.url}/browser", cookies={cookie["name"]: cookie["value"]})

    assert (response.status_code, response.headers["location"]) == (303, "/sign-in")
    assert page.context.cookies() == []
    assert open_page.take_problems() == [
        "error: Failed to load resource: the server responded with a status of 403 (Forbidden)"
    ]
